// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%x: tensor<4xf32>) {
  // CHECK: operand and result have one shape
  %a = arith.truncf %x : tensor<4xf32> to tensor<8xf16>
  tt.return
}
