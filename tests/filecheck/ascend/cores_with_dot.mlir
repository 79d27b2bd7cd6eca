// RUN: triton-dist opt -p convert-triton-distributed-to-hivm %s | filecheck %s
// With a dot the table of prefixes counts, and all else runs on both cores. Other IR stays as it is.
tt.func @k(%p: !tt.ptr<f16>, %pe: i32, %a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  %0 = distributed.get_rank %pe : i32
  %1 = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  distributed.extern_call {libname = "l", libpath = "", pure = false, symbol = "aclshmem_barrier_all"} : () -> ()
  distributed.extern_call {libname = "l", libpath = "", pure = false, symbol = "aclshmemx_barrier_all_vec"} : () -> ()
  distributed.extern_call %p, %p, %pe, %pe {libname = "l", libpath = "", pure = false, symbol = "aclshmem_half_getmem_nbi"} : (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32) -> ()
  distributed.extern_call {libname = "l", libpath = "", pure = false, symbol = "aclshmem_quiet"} : () -> ()
  tt.return
}
// CHECK:      #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}"dist.aclshmem_my_pe"
// CHECK-NEXT: %1 = tt.dot %a, %a, %c
// CHECK-NEXT: #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}"dist.aclshmem_barrier_all"
// CHECK-NEXT: #hivm.tcore_type<VECTOR>{{.*}}"dist.aclshmemx_barrier_all_vec"
// CHECK-NEXT: #hivm.tcore_type<VECTOR>{{.*}}"dist.aclshmem_half_getmem_nbi"
// CHECK-NEXT: #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}"dist.aclshmem_quiet"
