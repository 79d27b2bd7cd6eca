// RUN: triton-dist opt -p convert-triton-distributed-to-hivm %s | filecheck %s
// The pointee names the function; an argument of the kernel is listed, a computed pointer is not.
tt.func @k(%h: !tt.ptr<f16>, %b: !tt.ptr<bf16>, %f: !tt.ptr<f32>, %i: !tt.ptr<i8>, %pe: i32) {
  %0 = distributed.symm_at %h, %pe, : !tt.ptr<f16>
  %1 = distributed.symm_at %b, %pe, : !tt.ptr<bf16>
  %2 = distributed.symm_at %f, %pe, : !tt.ptr<f32>
  %3 = tt.addptr %i, %pe : !tt.ptr<i8>, i32
  %4 = distributed.symm_at %3, %pe, : !tt.ptr<i8>
  tt.return
}
// CHECK:      %0 = hivm.hir.custom {gm_addr_args_indices = array<i32: 0>, hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, symbol = "aclshmem_ptr_half"} "dist.aclshmem_ptr_half" ins(%h, %pe : !tt.ptr<f16>, i32) -> !tt.ptr<f16>
// CHECK-NEXT: %1 = hivm.hir.custom {{.*}}symbol = "aclshmem_ptr_bfloat16"
// CHECK-NEXT: %2 = hivm.hir.custom {{.*}}symbol = "aclshmem_ptr_float"
// CHECK-NEXT: %3 = tt.addptr
// CHECK-NEXT: %4 = hivm.hir.custom {gm_addr_args_indices = array<i32>, {{.*}}symbol = "aclshmem_ptr_int8"
