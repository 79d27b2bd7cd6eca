// RUN: triton-dist opt -p convert-triton-distributed-to-host %s | filecheck %s
// The value takes the pointee's width.

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %[[V:.*]] = arith.trunci %w : i64 to i32
  // CHECK-NEXT: tt.extern_elementwise %p, %[[V]], %i {{{.*}}symbol = "host_shmem_signal_set_i32"{{.*}}pure = false} : (!tt.ptr<i32>, i32, i32) -> i32
  "distributed.notify"(%p, %w, %i) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i32>, i64, i32) -> ()
  // CHECK-NEXT: tt.extern_elementwise %l, %w, %i {{{.*}}symbol = "host_shmem_signal_add_i64"{{.*}}} : (!tt.ptr<i64>, i64, i32) -> i32
  "distributed.notify"(%l, %w, %i) <{sigOp = 2 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  // With the scope of a device, the signal at the pointer itself.
  // CHECK-NEXT: tt.extern_elementwise %l, %w {{{.*}}symbol = "host_shmem_signal_here_add_i64"{{.*}}} : (!tt.ptr<i64>, i64) -> i32
  "distributed.notify"(%l, %w, %i) <{sigOp = 2 : i32, commScope = 1 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  tt.return
}
