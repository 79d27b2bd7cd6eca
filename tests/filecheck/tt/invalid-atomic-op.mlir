// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %i: i32) {
  // CHECK: expected one of and, or, xor, add, fadd
  %a = tt.atomic_rmw nand, relaxed, gpu, %p, %i : (!tt.ptr<i32>, i32) -> i32
  tt.return
}
