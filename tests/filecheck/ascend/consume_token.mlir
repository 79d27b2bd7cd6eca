// RUN: triton-dist opt -p convert-triton-distributed-to-hivm %s | filecheck %s
// A tensor of pointers gets a destination, SrcPtrIndex and the mark; a scalar gets none of them.
tt.func @k(%x: f32, %p: !tt.ptr<bf16>, %t: tensor<64x!tt.ptr<f16>>, %u: tensor<8x16x!tt.ptr<i32>>, %token: i32) {
  %0 = distributed.consume_token %x, %token, : f32, i32 -> f32
  %1 = distributed.consume_token %p, %token, : !tt.ptr<bf16>, i32 -> !tt.ptr<bf16>
  %2 = distributed.consume_token %t, %token, : tensor<64x!tt.ptr<f16>>, i32 -> tensor<64x!tt.ptr<f16>>
  %3 = distributed.consume_token %u, %token, : tensor<8x16x!tt.ptr<i32>>, i32 -> tensor<8x16x!tt.ptr<i32>>
  tt.return
}
// CHECK:      %0 = hivm.hir.custom {gm_addr_args_indices = array<i32>, hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, no_side_effect, symbol = "aclshmem_consume_token_float"} "dist.aclshmem_consume_token_float" ins(%x, %token : f32, i32) -> f32
// CHECK-NEXT: %1 = hivm.hir.custom {gm_addr_args_indices = array<i32: 0>, {{.*}}no_side_effect, symbol = "aclshmem_consume_token_bfloat16_ptr_1d"} {{.*}} -> !tt.ptr<bf16>
// CHECK-NEXT: [[E:%.*]] = tensor.empty() : tensor<64x!tt.ptr<f16>>
// CHECK-NEXT: [[R:%.*]] = hivm.hir.custom {SrcPtrIndex = array<i32: 0>, gm_addr_args_indices = array<i32>, hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, no_side_effect, symbol = "aclshmem_consume_token_half_ptr_1d"} "dist.aclshmem_consume_token_half_ptr_1d" ins(%t, %token : tensor<64x!tt.ptr<f16>>, i32) outs([[E]] : tensor<64x!tt.ptr<f16>>) -> tensor<64x!tt.ptr<f16>>
// CHECK-NEXT: annotation.mark [[R]] {ContinuousMemAccess} : tensor<64x!tt.ptr<f16>>
// CHECK-NEXT: tensor.empty() : tensor<8x16x!tt.ptr<i32>>
// CHECK-NEXT: "dist.aclshmem_consume_token_int32_ptr_2d"
// CHECK-NEXT: annotation.mark
