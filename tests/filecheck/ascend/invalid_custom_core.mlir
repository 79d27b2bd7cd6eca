// RUN: not triton-dist opt %s 2>&1 | filecheck %s
tt.func @k(%a: i32) {
  hivm.hir.custom {symbol = "f"} "f"
  tt.return
}
// CHECK: Missing core type information
