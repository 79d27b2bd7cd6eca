// RUN: triton-dist opt %s | filecheck %s
// Both spellings of the type, and types written without their names.

tt.func public @kernel(%p: !tt.ptr<f16>, %i: i32, %w: i64, %x: tensor<4x8xf16>, %o: tensor<32xi32>) {
  // CHECK: %d = tt.make_tensor_descriptor %p, [%i, %i], [%w, %w] {padding = 2 : i32} : !tt.ptr<f16>, !tt.tensordesc<tensor<4x8xf16>>
  %d = tt.make_tensor_descriptor %p, [%i, %i], [%w, %w] {padding = 2 : i32} : <f16>, <tensor<4x8xf16>>
  // CHECK: %e = tt.make_tensor_descriptor %p, [%i, %i], [%w, %w] : !tt.ptr<f16>, !tt.tensordesc<4x8xf16>
  %e = tt.make_tensor_descriptor %p, [%i, %i], [%w, %w] : <f16>, <4x8xf16>
  // CHECK: %a = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<4x8xf16>> -> tensor<4x8xf16>
  %a = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<4x8xf16>> -> tensor<4x8xf16>
  // CHECK: tt.descriptor_load %e[%i, %i] cacheModifier = cg evictionPolicy = evict_last : !tt.tensordesc<4x8xf16> -> tensor<4x8xf16>
  %b = tt.descriptor_load %e[%i, %i] cacheModifier = cg evictionPolicy = evict_last : !tt.tensordesc<4x8xf16> -> tensor<4x8xf16>
  // CHECK: tt.descriptor_store %e[%i, %i], %x : !tt.tensordesc<4x8xf16>, tensor<4x8xf16>
  tt.descriptor_store %e[%i, %i], %x : !tt.tensordesc<4x8xf16>, tensor<4x8xf16>
  // CHECK: tt.descriptor_reduce max
  tt.descriptor_reduce max, %e[%i, %i], %x : !tt.tensordesc<4x8xf16>, tensor<4x8xf16>
  // CHECK: tt.descriptor_gather %e[%o, %i] : (!tt.tensordesc<4x8xf16>, tensor<32xi32>, i32) -> tensor<32x8xf16>
  %g = tt.descriptor_gather %e[%o, %i] : (!tt.tensordesc<4x8xf16>, tensor<32xi32>, i32) -> tensor<32x8xf16>
  // CHECK: tt.descriptor_scatter %e[%o, %i], %g : !tt.tensordesc<4x8xf16>, tensor<32xi32>, i32, tensor<32x8xf16>
  tt.descriptor_scatter %e[%o, %i], %g : !tt.tensordesc<4x8xf16>, tensor<32xi32>, i32, tensor<32x8xf16>
  tt.return
}
