// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%s: f32, %x: tensor<4xf32>, %m: tensor<4xi1>, %c: i1, %t: tensor<4xi32>) {
  // CHECK: %a = tt.fp_to_fp %x, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
  %a = tt.fp_to_fp %x, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
  // CHECK: %b = tt.fp_to_fp %a : tensor<4xf8E5M2> -> tensor<4xf32>
  %b = tt.fp_to_fp %a : tensor<4xf8E5M2> -> tensor<4xf32>
  // CHECK: %d = tt.clampf %x, %x, %x, propagateNan = none : tensor<4xf32>
  %d = tt.clampf %x, %x, %x, propagateNan = none : tensor<4xf32>
  // CHECK: %e = tt.clampf %s, %s, %s, propagateNan = all : f32
  %e = tt.clampf %s, %s, %s, propagateNan = all : f32
  // CHECK: %f = tt.precise_sqrt %x : tensor<4xf32>
  %f = tt.precise_sqrt %x : tensor<4xf32>
  // CHECK: %g = tt.precise_divf %x, %x : tensor<4xf32>
  %g = tt.precise_divf %x, %x : tensor<4xf32>
  // CHECK: %h = tt.mulhiui %t, %t : tensor<4xi32>
  %h = tt.mulhiui %t, %t : tensor<4xi32>
  tt.return
}
