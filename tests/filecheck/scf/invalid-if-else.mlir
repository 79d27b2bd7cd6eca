// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%c: i1, %x: f32) {
  // CHECK: the else region yields the types of the results
  %r = scf.if %c -> (f32) {
    scf.yield %x : f32
  }
  tt.return
}
