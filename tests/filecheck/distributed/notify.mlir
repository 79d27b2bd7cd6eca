// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: "distributed.notify"(%l, %w, %i) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  "distributed.notify"(%l, %w, %i) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  // CHECK: "distributed.notify"(%p, %w, %i) <{sigOp = 2 : i32, commScope = 1 : i32, sigUnsigned}> : (!tt.ptr<i32>, i64, i32) -> ()
  "distributed.notify"(%p, %w, %i) <{sigOp = 2 : i32, commScope = 1 : i32, sigUnsigned}> : (!tt.ptr<i32>, i64, i32) -> ()
  tt.return
}
