// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// A zero that depends on the token is added to pointers and integers; other values are left where they are.

tt.func public @kernel(%p: !tt.ptr<f32>, %b: tensor<16x!tt.ptr<f32>>, %i: i64, %x: f32, %d: tensor<4xf32>, %t: i32, %out: !tt.ptr<i64>) {
  // CHECK: %[[A:.*]] = tt.elementwise_inline_asm "mov.b32 $0, 0;"{{.*}} %t : i32 -> i32
  // CHECK: tt.addptr %p, %[[A]]
  %1 = distributed.consume_token %p, %t, : !tt.ptr<f32>, i32 -> !tt.ptr<f32>
  // CHECK: %[[S:.*]] = tt.splat %{{.*}} : i32 -> tensor<16xi32>
  // CHECK: tt.addptr %b, %[[S]]
  %2 = distributed.consume_token %b, %t, : tensor<16x!tt.ptr<f32>>, i32 -> tensor<16x!tt.ptr<f32>>
  // CHECK: %[[W:.*]] = arith.extsi %{{.*}} : i32 to i64
  // CHECK: arith.addi %i, %[[W]] : i64
  %3 = distributed.consume_token %i, %t, : i64, i32 -> i64
  // CHECK-NOT: tt.elementwise_inline_asm
  %4 = distributed.consume_token %x, %t, : f32, i32 -> f32
  %5 = distributed.consume_token %d, %t, : tensor<4xf32>, i32 -> tensor<4xf32>
  tt.return
}
