// RUN: not triton-dist opt -p convert-triton-distributed-to-host %s 2>&1 | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i8>, %w: i64, %i: i32) {
  // CHECK: error: kernel.py:7: the cpu back end does not support distributed.notify: the signal is of type i8; it can be i32, i64
  "distributed.notify"(%p, %w, %i) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i8>, i64, i32) -> () loc("kernel.py":7:1)
  tt.return
}
