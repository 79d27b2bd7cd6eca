// RUN: triton-dist opt %s | filecheck %s

// CHECK: cf.cond_br %c, ^[[B1:.*]], ^[[B2:.*]](%i : i32)
// CHECK-NEXT: ^[[B1]]:
// CHECK-NEXT: tt.return
// CHECK-NEXT: ^[[B2]](%a: i32):
// CHECK-NEXT: cf.br ^[[B3:.*]](%a, %c : i32, i1)
// CHECK-NEXT: ^[[B3]](%b: i32, %d: i1):
tt.func public @kernel(%c: i1, %i: i32) {
  cf.cond_br %c, ^bb1, ^bb2(%i : i32)
^bb1:
  tt.return
^bb2(%a: i32):
  cf.br ^bb3(%a, %c : i32, i1)
^bb3(%b: i32, %d: i1):
  tt.return
}
