// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%i: i32) {
  // CHECK: %a = math.absi %i : i32
  %a = math.absi %i : i32
  // CHECK: %b = math.ctpop %i : i32
  %b = math.ctpop %i : i32
  tt.return
}
