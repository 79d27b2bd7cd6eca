// RUN: not triton-dist opt %s 2>&1 | filecheck %s
tt.func @k(%a: i32) {
  hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>} "f"
  tt.return
}
// CHECK: Missing implementation function name
