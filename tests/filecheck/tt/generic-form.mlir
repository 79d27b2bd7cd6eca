// RUN: triton-dist opt --print-op-generic %s | triton-dist opt | filecheck %s
// What the generic form says is read back.

tt.func public @kernel(%p: !tt.ptr<i32>, %i: i32, %c: i1) {
  // CHECK: %a = tt.load %p, %c, %i : !tt.ptr<i32>
  %a = tt.load %p, %c, %i : !tt.ptr<i32>
  // CHECK: %b = tt.atomic_rmw add, relaxed, gpu, %p, %a, %c : (!tt.ptr<i32>, i32, i1) -> i32
  %b = tt.atomic_rmw add, relaxed, gpu, %p, %a, %c : (!tt.ptr<i32>, i32, i1) -> i32
  // CHECK: %d = arith.cmpi slt, %a, %b : i32
  %d = arith.cmpi slt, %a, %b : i32
  tt.return
}
