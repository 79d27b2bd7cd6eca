// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: a scalar pointer expected, found tensor<8x!tt.ptr<f16>>
  %a = "distributed.symm_at"(%tp, %i) : (tensor<8x!tt.ptr<f16>>, i32) -> tensor<8x!tt.ptr<f16>>
  tt.return
}
