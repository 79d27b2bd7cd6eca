// RUN: triton-dist opt -p convert-triton-distributed-to-host %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: tt.extern_elementwise %q {libname = "l", libpath = "p", symbol = "s", pure = false} : (!tt.ptr<f16>) -> i32
  distributed.extern_call %q {libname = "l", libpath = "p", pure = false, symbol = "s"} : (!tt.ptr<f16>) -> ()
  tt.return
}
