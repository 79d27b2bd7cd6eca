// RUN: triton-dist opt -p convert-triton-distributed-to-host %s | filecheck %s
// Its token is not used, and it stays.

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %a = tt.extern_elementwise %l, %i, %w {{{.*}}symbol = "host_shmem_wait_i64"{{.*}}pure = false} : (!tt.ptr<i64>, i32, i64) -> i32
  %a = distributed.wait %l, %i, %w, scope = sys semantic = acquire : !tt.ptr<i64>, i32, i64 -> i32
  tt.return
}
