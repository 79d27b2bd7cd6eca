// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%i: i32, %x: tensor<4x8xf32>, %v: tensor<8xf32>, %o: tensor<1xf32>, %z: tensor<8x2xf32>) {
  // CHECK: %a = tt.splat %i : i32 -> tensor<4xi32>
  %a = tt.splat %i : i32 -> tensor<4xi32>
  // CHECK: %b = tt.expand_dims %v {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %b = tt.expand_dims %v {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  // CHECK: %d = tt.broadcast %b : tensor<1x8xf32> -> tensor<4x8xf32>
  %d = tt.broadcast %b : tensor<1x8xf32> -> tensor<4x8xf32>
  // CHECK: %e = tt.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %e = tt.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  // CHECK: %f = tt.reshape %x allow_reorder : tensor<4x8xf32> -> tensor<2x16xf32>
  %f = tt.reshape %x allow_reorder : tensor<4x8xf32> -> tensor<2x16xf32>
  // CHECK: %g = tt.trans %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %g = tt.trans %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK: %h = tt.join %v, %v : tensor<8xf32> -> tensor<8x2xf32>
  %h = tt.join %v, %v : tensor<8xf32> -> tensor<8x2xf32>
  // CHECK: %j, %k = tt.split %z : tensor<8x2xf32> -> tensor<8xf32>
  %j, %k = tt.split %z : tensor<8x2xf32> -> tensor<8xf32>
  // CHECK: %l = tt.cat %v, %v : tensor<8xf32> -> tensor<16xf32>
  %l = tt.cat %v, %v : tensor<8xf32> -> tensor<16xf32>
  // CHECK: %n = tt.unsplat %o : tensor<1xf32>
  %n = tt.unsplat %o : tensor<1xf32>
  // CHECK: %q = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %q = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  tt.return
}
