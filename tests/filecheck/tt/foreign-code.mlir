// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%x: tensor<4xf32>, %i: i32) {
  // CHECK: %a = tt.extern_elementwise %x {libname = "libdevice", libpath = "", pure = true, symbol = "__nv_asinf"} : (tensor<4xf32>) -> tensor<4xf32>
  %a = tt.extern_elementwise %x {libname = "libdevice", libpath = "", pure = true, symbol = "__nv_asinf"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %b = tt.elementwise_inline_asm "add.f32 $0, $1, $1;" {constraints = "=f,f", pure = true, packed_element = 1 : i32} %x : tensor<4xf32> -> tensor<4xf32>
  %b = tt.elementwise_inline_asm "add.f32 $0, $1, $1;" {constraints = "=f,f", pure = true, packed_element = 1 : i32} %x : tensor<4xf32> -> tensor<4xf32>
  tt.return
}
