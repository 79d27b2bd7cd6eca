// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%s: f32, %x: tensor<4xf32>, %m: tensor<4xi1>, %c: i1) {
  // CHECK: %a = arith.select %m, %x, %x : tensor<4xi1>, tensor<4xf32>
  %a = arith.select %m, %x, %x : tensor<4xi1>, tensor<4xf32>
  // CHECK: %b = arith.select %c, %x, %x : tensor<4xf32>
  %b = arith.select %c, %x, %x : tensor<4xf32>
  // CHECK: %d = arith.select %c, %s, %s : f32
  %d = arith.select %c, %s, %s : f32
  tt.return
}
