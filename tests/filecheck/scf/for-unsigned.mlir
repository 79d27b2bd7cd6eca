// RUN: triton-dist opt %s | filecheck %s
// Without results the yield is left out.

tt.func public @kernel(%n: i32, %p: !tt.ptr<i32>) {
  // CHECK: scf.for unsigned %i = %n to %n step %n : i32 {
  // CHECK-NEXT: tt.store %p, %i : !tt.ptr<i32>
  // CHECK-NEXT: }
  scf.for unsigned %i = %n to %n step %n  : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  }
  tt.return
}
