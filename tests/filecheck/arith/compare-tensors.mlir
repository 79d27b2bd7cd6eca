// RUN: triton-dist opt %s | filecheck %s
// The results are i1 in the operands' shape, or the and would not verify.

tt.func public @kernel(%i: i32, %t: tensor<4xi32>, %c: i1, %m: tensor<4xi1>, %x: tensor<4xf32>) {
  // CHECK: %a = arith.cmpi slt, %t, %t : tensor<4xi32>
  %a = arith.cmpi slt, %t, %t : tensor<4xi32>
  // CHECK: %b = arith.andi %a, %m : tensor<4xi1>
  %b = arith.andi %a, %m : tensor<4xi1>
  // CHECK: %d = arith.cmpf une, %x, %x fastmath<nnan> : tensor<4xf32>
  %d = arith.cmpf une, %x, %x fastmath<nnan> : tensor<4xf32>
  // CHECK: %e = arith.xori %d, %m : tensor<4xi1>
  %e = arith.xori %d, %m : tensor<4xi1>
  tt.return
}
