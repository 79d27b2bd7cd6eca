// RUN: not triton-dist opt -p convert-triton-distributed-to-hivm %s 2>&1 | filecheck %s
tt.func @k(%t: tensor<4xf32>, %token: i32) {
  %0 = distributed.consume_token %t, %token, : tensor<4xf32>, i32 -> tensor<4xf32> loc("kernel.py":11:4)
  tt.return
}
// CHECK: kernel.py:11: the ascend back end does not support distributed.consume_token: a tensor of values has no token in the library; consume the pointer it is loaded from
