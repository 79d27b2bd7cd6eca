// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// In a loop a wait stands under a condition that is always true, which Triton's pipeliner can predicate.

tt.func public @kernel(%p: !tt.ptr<i64>, %x: !tt.ptr<f32>, %n: i32, %v: i64) {
  // CHECK: %[[ONE:.*]] = tt.elementwise_inline_asm "mov.b32 $0, 1;"
  // CHECK: %[[TRUE:.*]] = arith.cmpi ne, %[[ONE]]
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    // CHECK: scf.for
    // CHECK: %[[TOKEN:.*]] = scf.if %[[TRUE]] -> (i32) {
    // CHECK-NEXT: %[[SEEN:.*]] = tt.elementwise_inline_asm "{{.*}}ld.acquire.sys.global.b64
    // CHECK-NEXT: scf.yield %[[SEEN]] : i32
    // CHECK-NEXT: } else {
    // CHECK: scf.yield
    %t = distributed.wait %p, %one, %v, scope = sys semantic = acquire : !tt.ptr<i64>, i32, i64 -> i32
    // CHECK: %[[ZERO:.*]] = tt.elementwise_inline_asm "mov.b32 $0, 0;" {tt.divisibility = 1073741824 : i32{{.*}}pure = true{{.*}}} %[[TOKEN]]
    // CHECK: tt.addptr %x, %[[ZERO]] : !tt.ptr<f32>, i32
    %y = distributed.consume_token %x, %t, : !tt.ptr<f32>, i32 -> !tt.ptr<f32>
    %z = tt.load %y : !tt.ptr<f32>
    tt.store %x, %z : !tt.ptr<f32>
  }
  tt.return
}
