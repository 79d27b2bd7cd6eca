// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// Pointers cross the call as i64; the result is the pointer plus a distance of whole pages, so it stays aligned.

tt.func public @kernel(%p: !tt.ptr<f16>, %pe: i32, %q2: f16) {
  // CHECK: %[[LOCAL:.*]] = tt.ptr_to_int %p : !tt.ptr<f16> -> i64
  // CHECK: %[[REMOTE:.*]] = tt.extern_elementwise %[[LOCAL]], %pe {{.*}}symbol = "nvshmem_ptr", pure = true} : (i64, i32) -> i64
  // CHECK: %[[STEP:.*]] = tt.elementwise_inline_asm "{ .reg .b64 d; sub.s64 d, $1, $2; shr.s64 $0, d, 1; }"
  // CHECK-SAME: tt.divisibility = 2048 : i32{{.*}}pure = true{{.*}} %[[REMOTE]], %[[LOCAL]]
  // CHECK: tt.addptr %p, %[[STEP]] : !tt.ptr<f16>, i64
  %q = distributed.symm_at %p, %pe, : !tt.ptr<f16>
  tt.store %q, %q2 : !tt.ptr<f16>
  tt.return
}
