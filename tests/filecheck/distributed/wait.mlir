// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %a = distributed.wait %p, %i, %i, scope = gpu semantic = acquire : !tt.ptr<i32>, i32, i32 -> i32
  %a = distributed.wait %p, %i, %i, scope = gpu semantic = acquire : !tt.ptr<i32>, i32, i32 -> i32
  // CHECK: %b = distributed.wait %l, %i, %w, scope = sys semantic = relaxed : !tt.ptr<i64>, i32, i64 -> i32
  %b = distributed.wait %l, %i, %w, scope = sys semantic = relaxed : !tt.ptr<i64>, i32, i64 -> i32
  tt.return
}
