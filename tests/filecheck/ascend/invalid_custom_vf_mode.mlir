// RUN: not triton-dist opt --allow-unregistered-dialect %s 2>&1 | filecheck %s
// Only a 950 chip asks for the mode of vector functions.
builtin.module attributes {hacc.target = "Ascend950PR_9589"} {
  tt.func @k() {
    hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, symbol = "f"} "f"
    tt.return
  }
}
// CHECK: Missing vf mode information
