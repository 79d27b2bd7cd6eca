// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel(%x: i32) {
  // CHECK: expected one of eq, ne, slt
  %a = arith.cmpi below, %x, %x : i32
  tt.return
}
