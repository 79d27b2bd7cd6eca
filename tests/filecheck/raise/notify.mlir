// RUN: triton-dist opt -p raise-distributed-carriers %s | filecheck %s
// The dummy result goes.

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: "distributed.notify"(%l, %w, %i) <{sigOp = 2 : i32, commScope = 3 : i32, sigUnsigned}> : (!tt.ptr<i64>, i64, i32) -> ()
  // CHECK-NEXT: tt.return
  %a = tt.extern_elementwise %l, %w, %i {libname = "distributed", libpath = "{sigOp = 2 : i32, commScope = 3 : i32, sigUnsigned}", pure = false, symbol = "distributed.notify"} : (!tt.ptr<i64>, i64, i32) -> i32
  tt.return
}
