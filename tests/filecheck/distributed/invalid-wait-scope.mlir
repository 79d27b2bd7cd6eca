// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: expected one of gpu, cta, sys
  %a = distributed.wait %p, %i, %i, scope = node semantic = acquire : !tt.ptr<i32>, i32, i32 -> i32
  tt.return
}
