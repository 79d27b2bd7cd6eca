// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// A kernel that chooses its threads, as in CUDA, is taken at its word: each thread that comes to a call makes it.

tt.func public @kernel(%p: !tt.ptr<i64>, %v: i64, %pe: i32, %n: i32) {
  %tid = tt.elementwise_inline_asm "mov.u32 $0, %tid.x;" {constraints = "=r", packed_element = 1 : i32, pure = true} -> i32
  %c = arith.cmpi slt, %tid, %n : i32
  scf.if %c {
    // CHECK: scf.if
    // CHECK: "triton_dist_each_nvshmemx_signal_op"
    %op = arith.constant 9 : i32
    distributed.extern_call %p, %v, %op, %tid {libname = "libnvshmem_device", libpath = "", pure = false, symbol = "nvshmemx_signal_op"} : (!tt.ptr<i64>, i64, i32, i32) -> ()
    // CHECK: "triton_dist_each_notify_set"
    "distributed.notify"(%p, %v, %tid) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
    // CHECK: "{ .reg .pred p; .reg .b32 i; .reg .b64 at; .reg .b64 seen; mov.b32 i, 0;
    // CHECK-SAME: add.s32 i, i, 1; bra EACH; DONE: mov.b32 $0, 0; }"
    %t = distributed.wait %p, %n, %v, scope = sys semantic = acquire : !tt.ptr<i64>, i32, i64 -> i32
  }
  // CHECK: "triton_dist_one_notify_set"
  "distributed.notify"(%p, %v, %pe) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  tt.return
}
