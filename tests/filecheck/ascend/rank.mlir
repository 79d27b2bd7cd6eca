// RUN: triton-dist opt -p convert-triton-distributed-to-hivm %s | filecheck %s
// The axis is dropped; without effects, no_side_effect is set.
tt.func @k(%axis: i32) {
  %me = distributed.get_rank %axis : i32
  %n = distributed.get_num_ranks %axis : i32
  tt.return
}
// CHECK:      %me = hivm.hir.custom {gm_addr_args_indices = array<i32>, hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, no_side_effect, symbol = "aclshmem_my_pe"} "dist.aclshmem_my_pe" -> i32
// CHECK-NEXT: %n = hivm.hir.custom {gm_addr_args_indices = array<i32>, hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, no_side_effect, symbol = "aclshmem_n_pes"} "dist.aclshmem_n_pes" -> i32
// CHECK-NEXT: tt.return
