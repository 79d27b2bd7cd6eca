// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%i: i32, %t: tensor<4xi32>, %c: i1, %m: tensor<4xi1>, %x: tensor<4xf32>) {
  // CHECK: %a = arith.extui %t nneg : tensor<4xi32> to tensor<4xi64>
  %a = arith.extui %t nneg : tensor<4xi32> to tensor<4xi64>
  // CHECK: %b = arith.trunci %t overflow<nsw> : tensor<4xi32> to tensor<4xi8>
  %b = arith.trunci %t overflow<nsw> : tensor<4xi32> to tensor<4xi8>
  // CHECK: %d = arith.truncf %x to_nearest_even fastmath<contract> : tensor<4xf32> to tensor<4xf16>
  %d = arith.truncf %x to_nearest_even fastmath<contract> : tensor<4xf32> to tensor<4xf16>
  // CHECK: %e = arith.sitofp %t : tensor<4xi32> to tensor<4xf32>
  %e = arith.sitofp %t : tensor<4xi32> to tensor<4xf32>
  // CHECK: %f = arith.uitofp %i nneg : i32 to f32
  %f = arith.uitofp %i nneg : i32 to f32
  // CHECK: %g = arith.index_cast %i : i32 to index
  %g = arith.index_cast %i : i32 to index
  tt.return
}
