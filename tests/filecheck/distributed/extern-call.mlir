// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: distributed.extern_call %q, %i {libname = "l", libpath = "", pure = false, symbol = "put"} : (!tt.ptr<f16>, i32) -> ()
  distributed.extern_call %q, %i {libname = "l", libpath = "", pure = false, symbol = "put"} : (!tt.ptr<f16>, i32) -> ()
  // CHECK: %a = distributed.extern_call {libname = "l", libpath = "", pure = true, symbol = "my_pe"} : () -> i32
  %a = distributed.extern_call {libname = "l", libpath = "", pure = true, symbol = "my_pe"} : () -> i32
  tt.return
}
