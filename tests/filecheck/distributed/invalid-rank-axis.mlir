// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: i32
  %a = "distributed.get_rank"(%w) : (i64) -> i32
  tt.return
}
