// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// The rank and the number of ranks are NVSHMEM's, and pure: loops may hoist them.

tt.func public @kernel(%axis: i32) {
  // CHECK: tt.extern_elementwise {libname = "libnvshmem_device", libpath = "", symbol = "nvshmem_my_pe", pure = true} : () -> i32
  %a = distributed.get_rank %axis : i32
  // CHECK: symbol = "nvshmem_n_pes", pure = true} : () -> i32
  %b = distributed.get_num_ranks %axis : i32
  tt.return
}
