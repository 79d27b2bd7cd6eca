// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<f32>, %h: f16) {
  // CHECK: operand is used with type f32, but has been previously used or defined with type f16
  tt.store %p, %h : !tt.ptr<f32>
  tt.return
}
