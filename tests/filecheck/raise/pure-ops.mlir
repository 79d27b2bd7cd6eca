// RUN: triton-dist opt -p raise-distributed-carriers %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %a = distributed.get_rank %i : i32
  %a = tt.extern_elementwise %i {libname = "distributed", libpath = "", pure = true, symbol = "distributed.get_rank"} : (i32) -> i32
  // CHECK-NEXT: %b = distributed.get_num_ranks %i : i32
  %b = tt.extern_elementwise %i {libname = "distributed", libpath = "", pure = true, symbol = "distributed.get_num_ranks"} : (i32) -> i32
  // CHECK-NEXT: %d = distributed.symm_at %q, %a, : !tt.ptr<f16>
  %d = tt.extern_elementwise %q, %a {libname = "distributed", libpath = "", pure = true, symbol = "distributed.symm_at"} : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
  // CHECK-NEXT: %e = distributed.consume_token %d, %i, : !tt.ptr<f16>, i32 -> !tt.ptr<f16>
  %e = tt.extern_elementwise %d, %i {libname = "distributed", libpath = "", pure = true, symbol = "distributed.consume_token"} : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
  tt.return
}
