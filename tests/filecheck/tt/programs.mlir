// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel() {
  // CHECK: %a = tt.get_program_id x : i32
  %a = tt.get_program_id x : i32
  // CHECK: %b = tt.get_num_programs z : i32
  %b = tt.get_num_programs z : i32
  tt.return
}
