// RUN: triton-dist opt -p convert-triton-distributed-to-host %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %a = tt.extern_elementwise {{{.*}}symbol = "host_shmem_my_pe"{{.*}}pure = true{{.*}}} : () -> i32
  %a = distributed.get_rank %i : i32
  // CHECK-NEXT: %b = tt.extern_elementwise {{{.*}}symbol = "host_shmem_n_pes"{{.*}}} : () -> i32
  %b = distributed.get_num_ranks %i : i32
  tt.return
}
