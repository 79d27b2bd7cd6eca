// RUN: triton-dist opt -p convert-triton-distributed-to-hivm %s | filecheck %s
// aclshmem_ptr gets its type, my_pe loses its operands, an empty symbol falls back to the op's name; pure has no effect.
tt.func @k(%p: !tt.ptr<f32>, %pe: i32, %t: tensor<4xf32>) {
  %0 = distributed.extern_call %p, %pe {libname = "l", libpath = "", pure = false, symbol = "aclshmem_ptr"} : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %1 = distributed.extern_call %pe {libname = "l", libpath = "", pure = true, symbol = "aclshmem_my_pe"} : (i32) -> i32
  distributed.extern_call {libname = "l", libpath = "", pure = false, symbol = ""} : () -> ()
  distributed.extern_call %p, %p, %pe, %pe {libname = "l", libpath = "b.bc", pure = false, symbol = "aclshmem_float_putmem"} : (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32) -> ()
  %2, %3 = distributed.extern_call %t {libname = "l", libpath = "", pure = false, symbol = "f"} : (tensor<4xf32>) -> (tensor<4xf32>, i32)
  tt.return
}
// CHECK:      %0 = hivm.hir.custom {{.*}}symbol = "aclshmem_ptr_float"} {{.*}} ins(%p, %pe : !tt.ptr<f32>, i32) -> !tt.ptr<f32>
// CHECK-NEXT: %1 = hivm.hir.custom {{.*}}no_side_effect, pure = true, symbol = "aclshmem_my_pe"} "dist.aclshmem_my_pe" -> i32
// CHECK-NEXT: hivm.hir.custom {{.*}}symbol = "extern_call"} "dist.extern_call"
// CHECK-NEXT: hivm.hir.custom {gm_addr_args_indices = array<i32: 0, 1>, hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, libname = "l", libpath = "b.bc", pure = false, symbol = "aclshmem_float_putmem"}
// CHECK-NEXT: [[E:%.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT: ins(%t : tensor<4xf32>) outs([[E]] : tensor<4xf32>) -> (tensor<4xf32>, i32)
