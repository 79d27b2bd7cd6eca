// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// In a loop the barrier is part of the asm: an op of its own would end software pipelining.

tt.func public @kernel(%p: !tt.ptr<i64>, %v: i64, %pe: i32, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // CHECK: scf.for
  // CHECK-NOT: gpu.barrier
  // CHECK: scf.if
  // CHECK-NEXT: "{{.*}}bar.sync 0; mov.u32 i, %tid.x; setp.eq.u32 p, i, 0; @p st.release.gpu
  scf.for %i = %zero to %n step %one : i32 {
    "distributed.notify"(%p, %v, %pe) <{sigOp = 1 : i32, commScope = 1 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  }
  tt.return
}
