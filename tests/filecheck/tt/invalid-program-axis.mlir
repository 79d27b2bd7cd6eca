// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel() {
  // CHECK: expected one of x, y, z
  %a = tt.get_program_id w : i32
  tt.return
}
