// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// A peer that is always the same is looked up before the loop, in range even if the loop never asks; another, in it.

tt.func public @kernel(%p: !tt.ptr<i64>, %v: i64, %pe: i32, %n: i32, %if: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // CHECK: %[[PES:.*]] = tt.extern_elementwise  {{.*}}symbol = "nvshmem_n_pes", pure = true} : () -> i32
  // CHECK: %[[LAST:.*]] = arith.subi %[[PES]]
  // CHECK-NEXT: %[[PE:.*]] = arith.minui %pe, %[[LAST]]
  // CHECK-NEXT: %[[LOCAL:.*]] = tt.ptr_to_int %p
  // CHECK-NEXT: %[[PEER:.*]] = tt.extern_elementwise %[[LOCAL]], %[[PE]] {{.*}}symbol = "nvshmem_ptr"
  // CHECK-NEXT: scf.for
  scf.for %i = %zero to %n step %one : i32 {
    scf.if %if {
      // CHECK: st.release.sys{{.*}} %[[PEER]], %v
      "distributed.notify"(%p, %v, %pe) <{sigOp = 1 : i32, commScope = 2 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
      // CHECK: %[[OTHER:.*]] = tt.extern_elementwise {{.*}}symbol = "nvshmem_ptr"
      // CHECK: st.release.sys{{.*}} %[[OTHER]], %v
      "distributed.notify"(%p, %v, %i) <{sigOp = 1 : i32, commScope = 2 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
    }
  }
  // CHECK: %[[HERE:.*]] = tt.ptr_to_int %p
  // CHECK-NEXT: %[[PEER:.*]] = tt.extern_elementwise %[[HERE]], %{{.*}}symbol = "nvshmem_ptr"
  // CHECK-NEXT: scf.for
  scf.for %i = %zero to %n step %one : i32 {
    // CHECK: tt.extern_elementwise %{{.*}}, %[[PEER]], %v, %pe {{.*}}symbol = "triton_dist_one_notify_there_set", pure = false} : (i64, i64, i64, i32) -> i32
    "distributed.notify"(%p, %v, %pe) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
    // CHECK: tt.extern_elementwise %p, %v, %{{.*}}symbol = "triton_dist_one_notify_set", pure = false} : (!tt.ptr<i64>, i64, i32) -> i32
    "distributed.notify"(%p, %v, %i) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  }
  tt.return
}
