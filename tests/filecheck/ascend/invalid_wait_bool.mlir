// RUN: not triton-dist opt -p convert-triton-distributed-to-hivm %s 2>&1 | filecheck %s
tt.func @k(%q: !tt.ptr<i1>, %n: i32, %v: i1) {
  %0 = distributed.wait %q, %n, %v, scope = gpu semantic = acquire : !tt.ptr<i1>, i32, i1 -> i32
  tt.return
}
// CHECK: the ascend back end does not support distributed.wait: the library has no functions of type i1
