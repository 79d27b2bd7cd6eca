// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel(%c: i1) {
  cf.br ^bb1
^bb1:
  tt.return
// CHECK: re-declaration of block 'bb1'
^bb1:
  tt.return
}
