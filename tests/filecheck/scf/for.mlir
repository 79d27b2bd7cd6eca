// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%n: i32, %x: tensor<4xf32>) {
  // CHECK: %r, %r_1 = scf.for %i = %n to %n step %n iter_args(%a = %x, %b = %n) -> (tensor<4xf32>, i32) : i32 {
  // CHECK-NEXT: scf.yield %a, %i : tensor<4xf32>, i32
  // CHECK-NEXT: } {tt.num_stages = 3 : i32}
  %r:2 = scf.for %i = %n to %n step %n iter_args(%a = %x, %b = %n) -> (tensor<4xf32>, i32)  : i32 {
    scf.yield %a, %i : tensor<4xf32>, i32
  } {tt.num_stages = 3 : i32}
  tt.return
}
