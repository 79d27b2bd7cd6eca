// RUN: triton-dist opt -p convert-triton-distributed-to-host %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %a = tt.extern_elementwise %q, %i {{{.*}}symbol = "host_shmem_ptr"{{.*}}pure = true} : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
  %a = distributed.symm_at %q, %i, : !tt.ptr<f16>
  tt.return
}
