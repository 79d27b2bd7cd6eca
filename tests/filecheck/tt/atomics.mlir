// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%p: !tt.ptr<i32>, %pt: tensor<4x!tt.ptr<f32>>, %x: tensor<4xf32>, %m: tensor<4xi1>, %i: i32, %q: !tt.ptr<i64>, %w: i64, %c: i1) {
  // CHECK: %a = tt.atomic_rmw fadd, acq_rel, gpu, %pt, %x, %m : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  %a = tt.atomic_rmw fadd, acq_rel, gpu, %pt, %x, %m : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  // CHECK: %b = tt.atomic_rmw umax, relaxed, sys, %p, %i : (!tt.ptr<i32>, i32) -> i32
  %b = tt.atomic_rmw umax, relaxed, sys, %p, %i : (!tt.ptr<i32>, i32) -> i32
  // CHECK: %d = tt.atomic_cas acquire, cta, %p, %i, %i : (!tt.ptr<i32>, i32, i32) -> i32
  %d = tt.atomic_cas acquire, cta, %p, %i, %i : (!tt.ptr<i32>, i32, i32) -> i32
  // CHECK: %e = tt.atomic_load acquire, gpu, %p, %c : (!tt.ptr<i32>, i1) -> i32
  %e = tt.atomic_load acquire, gpu, %p, %c : (!tt.ptr<i32>, i1) -> i32
  // CHECK: tt.atomic_store release, sys, %p, %i, %c : !tt.ptr<i32>
  tt.atomic_store release, sys, %p, %i, %c : !tt.ptr<i32>
  // CHECK: %f = tt.atomic_poll acquire, gpu, %p, %i : !tt.ptr<i32>, i32 -> i1
  %f = tt.atomic_poll acquire, gpu, %p, %i : !tt.ptr<i32>, i32 -> i1
  // CHECK: %g = tt.atomic_poll relaxed, sys, %q, %w timeout %w : !tt.ptr<i64>, i64 -> i1
  %g = tt.atomic_poll relaxed, sys, %q, %w timeout %w : !tt.ptr<i64>, i64 -> i1
  tt.return
}
