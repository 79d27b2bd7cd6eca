// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// NVSHMEM's functions are called by whom they are made for; those of other libraries as they are, pointers as i64.

tt.func public @kernel(%p: !tt.ptr<f32>, %b: i64, %pe: i32, %t: i32) {
  // CHECK: tt.extern_elementwise %{{.*}}, %{{.*}}, %b, %pe {libname = "triton_dist_nvshmem"{{.*}}"triton_dist_one_nvshmem_putmem"{{.*}} : (i64, i64, i64, i32) -> i32
  distributed.extern_call %p, %p, %b, %pe {libname = "libnvshmem_device", libpath = "", pure = false, symbol = "nvshmem_putmem"} : (!tt.ptr<f32>, !tt.ptr<f32>, i64, i32) -> ()
  // CHECK: "triton_dist_warp_nvshmemx_putmem_warp"
  distributed.extern_call %p, %p, %b, %pe {libname = "libnvshmem_device", libpath = "", pure = false, symbol = "nvshmemx_putmem_warp"} : (!tt.ptr<f32>, !tt.ptr<f32>, i64, i32) -> ()
  // CHECK: "triton_dist_block_nvshmemx_putmem_block"
  distributed.extern_call %p, %p, %b, %pe {libname = "libnvshmem_device", libpath = "", pure = false, symbol = "nvshmemx_putmem_block"} : (!tt.ptr<f32>, !tt.ptr<f32>, i64, i32) -> ()
  // CHECK: "triton_dist_each_nvshmem_team_my_pe", pure = true} : (i32) -> i32
  %r = distributed.extern_call %t {libname = "libnvshmem_device", libpath = "", pure = true, symbol = "nvshmem_team_my_pe"} : (i32) -> i32
  // CHECK: symbol = "triton_dist_between4_nvshmem_ptr", pure = true} : (!tt.ptr<f32>, i32) -> i64
  // CHECK: tt.addptr %p
  %q = distributed.extern_call %p, %pe {libname = "libnvshmem_device", libpath = "", pure = true, symbol = "nvshmem_ptr"} : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  // CHECK: %[[R:.*]] = tt.extern_elementwise %{{.*}} {libname = "mine", libpath = "/mine.bc", symbol = "f", pure = false} : (i64) -> i64
  // CHECK: tt.int_to_ptr %[[R]] : i64 -> !tt.ptr<f32>
  %m = distributed.extern_call %q {libname = "mine", libpath = "/mine.bc", pure = false, symbol = "f"} : (!tt.ptr<f32>) -> !tt.ptr<f32>
  tt.return
}
