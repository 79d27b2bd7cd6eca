// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel(%x: f32) {
  // CHECK: unknown flag quick
  %a = arith.addf %x, %x fastmath<quick> : f32
  tt.return
}
