// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%i: i32) {
  // CHECK: the result's elements have the operand's type
  %a = tt.splat %i : i32 -> tensor<4xf32>
  tt.return
}
