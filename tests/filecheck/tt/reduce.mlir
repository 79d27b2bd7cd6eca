// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%x: tensor<4x8xf32>) {
  // CHECK: %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  // CHECK-NEXT: ^{{.*}}(%a: f32, %b: f32):
  // CHECK-NEXT: %c = arith.addf %a, %b : f32
  // CHECK-NEXT: tt.reduce.return %c : f32
  // CHECK-NEXT: }) : (tensor<4x8xf32>) -> tensor<4xf32>
  %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  tt.return
}
