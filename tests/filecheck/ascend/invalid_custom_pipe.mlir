// RUN: not triton-dist opt %s 2>&1 | filecheck %s
tt.func @k(%a: i32) {
  hivm.hir.custom {hivm.tcore_type = #hivm.tcore_type<VECTOR>, symbol = "f"} "f"
  tt.return
}
// CHECK: Missing pipe information
