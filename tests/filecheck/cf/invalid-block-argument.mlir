// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%c: i1, %i: i32) {
  // CHECK: operands differ from the arguments of the block they go to
  cf.br ^bb1(%c : i1)
^bb1(%a: i32):
  tt.return
}
