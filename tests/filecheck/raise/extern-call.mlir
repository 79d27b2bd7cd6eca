// RUN: triton-dist opt -p raise-distributed-carriers %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: distributed.extern_call %q {libname = "l", libpath = "", pure = false, symbol = "s"} : (!tt.ptr<f16>) -> ()
  %a = tt.extern_elementwise %q {libname = "distributed", libpath = "{libname = \22l\22, libpath = \22\22, pure = false, symbol = \22s\22, void}", pure = false, symbol = "distributed.extern_call"} : (!tt.ptr<f16>) -> i32
  // CHECK: %b = distributed.extern_call %q {libname = "l", libpath = "", pure = true, symbol = "t"} : (!tt.ptr<f16>) -> f32
  %b = tt.extern_elementwise %q {libname = "distributed", libpath = "{libname = \22l\22, libpath = \22\22, pure = true, symbol = \22t\22}", pure = true, symbol = "distributed.extern_call"} : (!tt.ptr<f16>) -> f32
  tt.return
}
