// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%c: i1, %x: f32) {
  // CHECK: scf.condition passes on the types of the results
  %r = scf.while (%a = %x) : (f32) -> i32 {
    scf.condition(%c) %a : f32
  } do {
  ^bb0(%b: i32):
    scf.yield %x : f32
  }
  tt.return
}
