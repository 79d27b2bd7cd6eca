// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: waitValue has the pointee's type, i32, not i64
  %a = distributed.wait %p, %i, %w, scope = gpu semantic = acquire : !tt.ptr<i32>, i32, i64 -> i32
  tt.return
}
