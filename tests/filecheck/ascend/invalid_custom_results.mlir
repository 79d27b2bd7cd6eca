// RUN: not triton-dist opt %s 2>&1 | filecheck %s
tt.func @k(%a: i32) {
  %0 = hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, symbol = "f"} "f" -> tensor<4xf32>
  tt.return
}
// CHECK: each result that is a tensor has a tensor of its type in outs
