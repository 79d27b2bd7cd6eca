// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: commScope is one of GPU = 1, INTRA_NODE = 2, INTER_NODE = 3
  "distributed.notify"(%l, %w, %i) <{sigOp = 1 : i32, commScope = 4 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  tt.return
}
