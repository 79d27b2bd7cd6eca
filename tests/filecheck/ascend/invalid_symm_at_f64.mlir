// RUN: not triton-dist opt -p convert-triton-distributed-to-hivm %s 2>&1 | filecheck %s
tt.func @k(%q: !tt.ptr<f64>, %pe: i32) {
  %0 = distributed.symm_at %q, %pe, : !tt.ptr<f64> loc("kernel.py":9:4)
  tt.return
}
// CHECK: kernel.py:9: the ascend back end does not support distributed.symm_at: the library has no functions of type f64; it has bf16, f16, f32, i8, i16, i32, i64
