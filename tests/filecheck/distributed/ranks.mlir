// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %i: i32, %w: i64, %f: f32) {
  // CHECK: %a = distributed.get_rank %i : i32
  %a = distributed.get_rank %i : i32
  // CHECK: %b = distributed.get_num_ranks %i : i32
  %b = distributed.get_num_ranks %i : i32
  tt.return
}
