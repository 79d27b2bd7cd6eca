// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %i: i32) {
  // CHECK: expected one of gpu, cta, sys
  %a = tt.atomic_cas relaxed, world, %p, %i, %i : (!tt.ptr<i32>, i32, i32) -> i32
  tt.return
}
