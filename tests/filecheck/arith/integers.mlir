// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%i: i32, %t: tensor<4xi32>, %c: i1, %m: tensor<4xi1>) {
  // CHECK: %a = arith.addi %t, %t : tensor<4xi32>
  %a = arith.addi %t, %t : tensor<4xi32>
  // CHECK: %b = arith.muli %i, %i overflow<nsw,nuw> : i32
  %b = arith.muli %i, %i overflow<nsw,nuw> : i32
  // CHECK: %d = arith.shrsi %t, %t exact : tensor<4xi32>
  %d = arith.shrsi %t, %t exact : tensor<4xi32>
  // CHECK: %e = arith.divui %i, %i exact : i32
  %e = arith.divui %i, %i exact : i32
  // CHECK: %f = arith.floordivsi %i, %i : i32
  %f = arith.floordivsi %i, %i : i32
  // CHECK: %g = arith.maxui %t, %t : tensor<4xi32>
  %g = arith.maxui %t, %t : tensor<4xi32>
  tt.return
}
