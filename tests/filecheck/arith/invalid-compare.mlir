// RUN: triton-dist opt --verify-diagnostics %s | filecheck %s

tt.func public @kernel(%x: f32, %y: f16) {
  // CHECK: operands have one type
  %a = "arith.cmpf"(%x, %y) <{predicate = 2 : i64}> : (f32, f16) -> i1
  tt.return
}
