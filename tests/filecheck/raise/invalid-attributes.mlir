// RUN: not triton-dist opt -p raise-distributed-carriers %s 2>&1 | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: error: kernel.py:7: malformed carrier of distributed.wait: the attribute semantic is missing
  %a = tt.extern_elementwise %p, %i, %i {libname = "distributed", libpath = "{scope = 1 : i32}", pure = false, symbol = "distributed.wait"} : (!tt.ptr<i32>, i32, i32) -> i32 loc("kernel.py":7:1)
  tt.return
}
