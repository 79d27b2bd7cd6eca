// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%c: tensor<2xi1>, %x: tensor<4xf32>) {
  // CHECK: the condition is i1, or i1 in the result's shape
  %a = arith.select %c, %x, %x : tensor<2xi1>, tensor<4xf32>
  tt.return
}
