// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<f32>, %pt: tensor<4x!tt.ptr<f32>>, %x: tensor<4xf32>, %m: tensor<4xi1>, %s: f32, %i: i32) {
  // CHECK: %a = tt.load %p : !tt.ptr<f32>
  %a = tt.load %p : !tt.ptr<f32>
  // CHECK: %b = tt.load %pt, %m : tensor<4x!tt.ptr<f32>>
  %b = tt.load %pt, %m : tensor<4x!tt.ptr<f32>>
  // CHECK: %d = tt.load %pt, %m, %x {isVolatile = true} : tensor<4x!tt.ptr<f32>>
  %d = tt.load %pt, %m, %x {isVolatile = true} : tensor<4x!tt.ptr<f32>>
  // CHECK: %e = tt.load %pt cacheModifier = ca evictionPolicy = evict_first : tensor<4x!tt.ptr<f32>>
  %e = tt.load %pt cacheModifier = ca evictionPolicy = evict_first : tensor<4x!tt.ptr<f32>>
  // CHECK: %f = tt.load %pt {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last>} : tensor<4x!tt.ptr<f32>>
  %f = tt.load %pt {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last>} : tensor<4x!tt.ptr<f32>>
  tt.return
}
