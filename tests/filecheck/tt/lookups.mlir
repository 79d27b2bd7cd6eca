// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%x: tensor<4x8xf32>, %n: tensor<4x8xi32>, %t: tensor<8xi32>, %m: tensor<8xi1>) {
  // CHECK: %a = tt.gather %x[%n] {axis = 1 : i32} : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  %a = tt.gather %x[%n] {axis = 1 : i32} : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  // CHECK: %b = tt.histogram %t : tensor<8xi32> -> tensor<16xi32>
  %b = tt.histogram %t : tensor<8xi32> -> tensor<16xi32>
  // CHECK: %d = tt.histogram %t, %m : tensor<8xi32> -> tensor<16xi32>
  %d = tt.histogram %t, %m : tensor<8xi32> -> tensor<16xi32>
  tt.return
}
