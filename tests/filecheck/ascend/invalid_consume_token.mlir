// RUN: not triton-dist opt -p convert-triton-distributed-to-hivm %s 2>&1 | filecheck %s
tt.func @k(%p: !tt.ptr<f32>, %t: i64) {
  %0 = distributed.consume_token %p, %t, : !tt.ptr<f32>, i64 -> !tt.ptr<f32>
  tt.return
}
// CHECK: the ascend back end does not support distributed.consume_token: the library's tokens are i32, not i64
