// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%x: tensor<8xf32>) {
  // CHECK: %r, %r_1 = "tt.scan"(%x, %x) <{axis = 0 : i32, reverse = true}> ({
  // CHECK: tt.scan.return %a, %d : f32, f32
  // CHECK-NEXT: }) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %r:2 = "tt.scan"(%x, %x) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tt.scan.return %a, %d : f32, f32
  }) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  tt.return
}
