// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%x: tensor<8xf32>) {
  // CHECK: "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  // CHECK: tt.map_elementwise.return %a : f32
  %r = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    tt.map_elementwise.return %a : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}
