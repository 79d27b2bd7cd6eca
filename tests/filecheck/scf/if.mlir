// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) {
  // CHECK: %r = scf.if %c -> (tensor<4xf32>) {
  // CHECK-NEXT: scf.yield %x : tensor<4xf32>
  // CHECK-NEXT: } else {
  // CHECK-NEXT: scf.yield %y : tensor<4xf32>
  // CHECK-NEXT: }
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %y : tensor<4xf32>
  }
  tt.return
}
