// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<f32>, %i: i32, %w: i64, %q: !tt.ptr<f32, 3>, %pt: tensor<4x!tt.ptr<f32>>, %t: tensor<4xi32>) {
  // CHECK: %a = tt.addptr %p, %i : !tt.ptr<f32>, i32
  %a = tt.addptr %p, %i : !tt.ptr<f32>, i32
  // CHECK: %b = tt.addptr %pt, %t : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  %b = tt.addptr %pt, %t : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  // CHECK: %d = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %d = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  // CHECK: %e = tt.int_to_ptr %w : i64 -> !tt.ptr<f16>
  %e = tt.int_to_ptr %w : i64 -> !tt.ptr<f16>
  // CHECK: %f = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i8>
  %f = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i8>
  // CHECK: %g = tt.addptr %q, %i : !tt.ptr<f32, 3>, i32
  %g = tt.addptr %q, %i : !tt.ptr<f32, 3>, i32
  tt.return
}
