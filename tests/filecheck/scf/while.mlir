// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%c: i1, %x: tensor<4xf32>) {
  // CHECK: %r = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: scf.condition(%c) %a : tensor<4xf32>
  // CHECK-NEXT: } do {
  // CHECK-NEXT: ^{{.*}}(%b: tensor<4xf32>):
  // CHECK-NEXT: scf.yield %b : tensor<4xf32>
  // CHECK-NEXT: }
  %r = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    scf.condition(%c) %a : tensor<4xf32>
  } do {
  ^bb0(%b: tensor<4xf32>):
    scf.yield %b : tensor<4xf32>
  }
  tt.return
}
