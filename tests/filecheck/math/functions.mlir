// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%s: f32, %x: tensor<4xf32>, %m: tensor<4xi1>, %c: i1) {
  // CHECK: %a = math.exp %x : tensor<4xf32>
  %a = math.exp %x : tensor<4xf32>
  // CHECK: %b = math.fma %x, %x, %x : tensor<4xf32>
  %b = math.fma %x, %x, %x : tensor<4xf32>
  // CHECK: %d = math.rsqrt %s fastmath<afn> : f32
  %d = math.rsqrt %s fastmath<afn> : f32
  // CHECK: %e = math.powf %x, %x : tensor<4xf32>
  %e = math.powf %x, %x : tensor<4xf32>
  tt.return
}
