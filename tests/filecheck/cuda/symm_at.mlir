// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// The result is the pointer plus a distance of whole pages, so it stays aligned. The wrapper takes pointers into global
// memory; others cross the call as i64.

tt.func public @kernel(%p: !tt.ptr<f16>, %pe: i32, %q2: f16, %k: !tt.ptr<i64, "constant">, %q4: i64) {
  // CHECK: %[[STEP:.*]] = tt.extern_elementwise %p, %pe {tt.divisibility = 2048 : i32, libname = "triton_dist_nvshmem", libpath = "", symbol = "triton_dist_between2_nvshmem_ptr", pure = true} : (!tt.ptr<f16>, i32) -> i64
  // CHECK-NEXT: tt.addptr %p, %[[STEP]] : !tt.ptr<f16>, i64
  %q = distributed.symm_at %p, %pe, : !tt.ptr<f16>
  tt.store %q, %q2 : !tt.ptr<f16>
  // CHECK: %[[LOCAL:.*]] = tt.ptr_to_int %k : !tt.ptr<i64, "constant"> -> i64
  // CHECK-NEXT: %[[STEP:.*]] = tt.extern_elementwise %[[LOCAL]], %pe {tt.divisibility = 512 : i32, {{.*}}symbol = "triton_dist_between8_nvshmem_ptr", pure = true} : (i64, i32) -> i64
  // CHECK-NEXT: tt.addptr %k, %[[STEP]] : !tt.ptr<i64, "constant">, i64
  %q3 = distributed.symm_at %k, %pe, : !tt.ptr<i64, "constant">
  tt.store %q3, %q4 : !tt.ptr<i64, "constant">
  tt.return
}
