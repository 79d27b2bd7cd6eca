// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<f32>, %pt: tensor<4x!tt.ptr<f32>>, %x: tensor<4xf32>, %m: tensor<4xi1>, %s: f32, %i: i32) {
  // CHECK: tt.store %p, %s : !tt.ptr<f32>
  tt.store %p, %s : !tt.ptr<f32>
  // CHECK: tt.store %pt, %x, %m : tensor<4x!tt.ptr<f32>>
  tt.store %pt, %x, %m : tensor<4x!tt.ptr<f32>>
  // CHECK: tt.store %pt, %x cacheModifier = wt : tensor<4x!tt.ptr<f32>>
  tt.store %pt, %x cacheModifier = wt : tensor<4x!tt.ptr<f32>>
  // CHECK: tt.store %pt, %x {cachePolicy = #tt.cache_policy<cache_modifier = wt>} : tensor<4x!tt.ptr<f32>>
  tt.store %pt, %x {cachePolicy = #tt.cache_policy<cache_modifier = wt>} : tensor<4x!tt.ptr<f32>>
  tt.return
}
