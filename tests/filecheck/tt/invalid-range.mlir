// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel() {
  // CHECK: the result has 8 elements
  %a = tt.make_range {end = 16 : i32, start = 8 : i32} : tensor<16xi32>
  tt.return
}
