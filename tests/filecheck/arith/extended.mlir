// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%i: i32, %t: tensor<4xi32>, %c: i1, %m: tensor<4xi1>) {
  // CHECK: %a, %b = arith.mului_extended %t, %t : tensor<4xi32>
  %a, %b = arith.mului_extended %t, %t : tensor<4xi32>
  // CHECK: %d, %e = arith.addui_extended %i, %i : i32, i1
  %d, %e = arith.addui_extended %i, %i : i32, i1
  tt.return
}
