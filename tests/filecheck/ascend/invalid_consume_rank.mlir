// RUN: not triton-dist opt -p convert-triton-distributed-to-hivm %s 2>&1 | filecheck %s
tt.func @k(%t: tensor<1x1x1x1x1x2x!tt.ptr<f32>>, %token: i32) {
  %0 = distributed.consume_token %t, %token, : tensor<1x1x1x1x1x2x!tt.ptr<f32>>, i32 -> tensor<1x1x1x1x1x2x!tt.ptr<f32>>
  tt.return
}
// CHECK: a tensor of pointers has at most 5 dimensions, not 6
