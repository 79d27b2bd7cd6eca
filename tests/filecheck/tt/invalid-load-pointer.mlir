// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel(%x: f32) {
  // CHECK: pointer expected, found f32
  %a = tt.load %x : f32
  tt.return
}
