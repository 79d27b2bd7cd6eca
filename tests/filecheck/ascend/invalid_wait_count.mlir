// RUN: not triton-dist opt -p convert-triton-distributed-to-hivm %s 2>&1 | filecheck %s
tt.func @k(%q: !tt.ptr<i32>, %n: i32, %m: i64) {
  %0 = distributed.wait %q, %m, %n, scope = gpu semantic = acquire : !tt.ptr<i32>, i64, i32 -> i32
  tt.return
}
// CHECK: the ascend back end does not support distributed.wait: barrierPtr must be a scalar pointer and numBarriers an i32
