// RUN: not triton-dist opt -p convert-triton-distributed-to-hivm %s 2>&1 | filecheck %s
tt.func @k(%q: !tt.ptr<i32>, %n: i32) {
  %0 = distributed.wait %q, %n, %n, scope = gpu semantic = acquire : !tt.ptr<i32>, i32, i32 -> i64
  tt.return
}
// CHECK: the ascend back end does not support distributed.wait: the library's tokens are i32, not i64
