// RUN: not triton-dist opt -p convert-triton-distributed-to-hivm %s 2>&1 | filecheck %s
tt.func @k(%q: !tt.ptr<i64>, %v: i64, %pe: i32) {
  "distributed.notify"(%q, %v, %pe) <{sigOp = 2 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> () loc("kernel.py":7:4)
  tt.return
}
// CHECK: kernel.py:7: the ascend back end does not support distributed.notify: ADD of a signal of type i64; i32 has SET and ADD, i64 has SET
