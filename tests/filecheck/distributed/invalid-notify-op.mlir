// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: sigOp is one of SET = 1, ADD = 2
  "distributed.notify"(%l, %w, %i) <{sigOp = 0 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  tt.return
}
