// RUN: triton-dist opt -p raise-distributed-carriers %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %a = distributed.wait %p, %i, %i, scope = sys semantic = acquire : !tt.ptr<i32>, i32, i32 -> i32
  %a = tt.extern_elementwise %p, %i, %i {libname = "distributed", libpath = "{scope = 3 : i32, semantic = 2 : i32}", pure = false, symbol = "distributed.wait"} : (!tt.ptr<i32>, i32, i32) -> i32
  tt.return
}
