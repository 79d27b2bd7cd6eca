// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%n: i32, %x: f32) {
  // CHECK: the body yields the types of the iteration arguments
  %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (f32)  : i32 {
    scf.yield %i : i32
  }
  tt.return
}
