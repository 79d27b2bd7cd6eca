// RUN: triton-dist opt -p convert-triton-distributed-to-hivm %s | filecheck %s
// RUN: triton-dist opt -p 'convert-triton-distributed-to-hivm{dot_free_cores="both"}' %s | filecheck %s --check-prefix=BOTH
// RUN: triton-dist opt -p 'convert-triton-distributed-to-hivm{dot_free_cores="table"}' %s | filecheck %s --check-prefix=TABLE
tt.func @k(%pe: i32) {
  %0 = distributed.get_rank %pe : i32
  distributed.extern_call {libname = "l", libpath = "", pure = false, symbol = "aclshmem_barrier_all"} : () -> ()
  tt.return
}
// CHECK:      #hivm.tcore_type<VECTOR>{{.*}}"dist.aclshmem_my_pe"
// CHECK-NEXT: #hivm.tcore_type<VECTOR>{{.*}}"dist.aclshmem_barrier_all"
// BOTH:       #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}"dist.aclshmem_my_pe"
// BOTH-NEXT:  #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}"dist.aclshmem_barrier_all"
// TABLE:      #hivm.tcore_type<VECTOR>{{.*}}"dist.aclshmem_my_pe"
// TABLE-NEXT: #hivm.tcore_type<CUBE_AND_VECTOR>{{.*}}"dist.aclshmem_barrier_all"
