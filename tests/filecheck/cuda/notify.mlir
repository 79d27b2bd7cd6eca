// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// Within a GPU or a node one thread stores, with release, after a barrier of the CTA. Anywhere: through a wrapper.

tt.func public @kernel(%p: !tt.ptr<i64>, %v: i64, %pe: i32) {
  // CHECK: %[[HERE:.*]] = tt.ptr_to_int %p
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: "{{.*}}setp.eq.u32 p, i, 0; @p st.release.gpu.global.b64 [$1], $2;{{.*}}pure = false{{.*}} %[[HERE]], %v
  "distributed.notify"(%p, %v, %pe) <{sigOp = 1 : i32, commScope = 1 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  // CHECK: symbol = "nvshmem_ptr"
  // CHECK: gpu.barrier
  // CHECK-NEXT: @p red.release.sys.global.add.u64 [$1], $2;
  "distributed.notify"(%p, %v, %pe) <{sigOp = 2 : i32, commScope = 2 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  // CHECK-NEXT: tt.extern_elementwise %p, %v, %pe {libname = "triton_dist_nvshmem", libpath = "", symbol = "triton_dist_one_notify_set", pure = false} : (!tt.ptr<i64>, i64, i32) -> i32
  "distributed.notify"(%p, %v, %pe) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  // CHECK: symbol = "triton_dist_one_notify_add"
  "distributed.notify"(%p, %v, %pe) <{sigOp = 2 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  tt.return
}
