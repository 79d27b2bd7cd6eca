// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%i: i32) -> f32 {
  // CHECK: the operands have the result types of the function
  tt.return %i : i32
}
