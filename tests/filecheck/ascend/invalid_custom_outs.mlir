// RUN: not triton-dist opt %s 2>&1 | filecheck %s
tt.func @k(%a: i32) {
  hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, symbol = "f"} "f" outs(%a : i32)
  tt.return
}
// CHECK: an operand in outs is a tensor or a memref, not i32
