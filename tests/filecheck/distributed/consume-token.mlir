// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %a = distributed.consume_token %q, %i, : !tt.ptr<f16>, i32 -> !tt.ptr<f16>
  %a = distributed.consume_token %q, %i, : !tt.ptr<f16>, i32 -> !tt.ptr<f16>
  // CHECK: %b = distributed.consume_token %tp, %i, : tensor<8x!tt.ptr<f16>>, i32 -> tensor<8x!tt.ptr<f16>>
  %b = distributed.consume_token %tp, %i, : tensor<8x!tt.ptr<f16>>, i32 -> tensor<8x!tt.ptr<f16>>
  tt.return
}
