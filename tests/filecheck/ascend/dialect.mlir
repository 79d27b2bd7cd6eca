// RUN: triton-dist opt %s | filecheck %s
// RUN: triton-dist opt --print-op-generic %s | filecheck %s --check-prefix=GENERIC
// The generic form has every property; a dictionary in any order is printed in alphabetical order.
tt.func @k(%a: i32, %t: tensor<4xf32>) {
  %0 = hivm.hir.custom {symbol = "f", hivm.pipe = #hivm.pipe<PIPE_V>, hivm.tcore_type = #hivm.tcore_type<CUBE>, no_side_effect} "f" ins(%a : i32) -> i32
  %1, %2 = "hivm.hir.custom"(%a, %t) <{name = "g", operandSegmentSizes = array<i32: 1, 1, 0>}> {hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<CUBE>, symbol = "g"} : (i32, tensor<4xf32>) -> (tensor<4xf32>, i32)
  annotation.mark %1 {Kind} : tensor<4xf32>
  tt.return
}
// CHECK:        %0 = hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_V>, hivm.tcore_type = #hivm.tcore_type<CUBE>, no_side_effect, symbol = "f"} "f" ins(%a : i32) -> i32
// CHECK-NEXT:   hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<CUBE>, symbol = "g"} "g" ins(%a : i32) outs(%t : tensor<4xf32>) -> (tensor<4xf32>, i32)
// CHECK-NEXT:   annotation.mark {{.*}} {Kind} : tensor<4xf32>
// GENERIC:      "hivm.hir.custom"(%a) <{name = "f", no_side_effect, operandSegmentSizes = array<i32: 1, 0, 0>}>
// GENERIC-NEXT: "hivm.hir.custom"(%a, %t) <{name = "g", operandSegmentSizes = array<i32: 1, 1, 0>}>
// GENERIC-NEXT: "annotation.mark"({{.*}}) <{effects = ["write"]}> {Kind}
