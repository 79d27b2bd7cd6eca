// RUN: triton-dist opt -p raise-distributed-carriers %s | filecheck %s

tt.func public @kernel(%x: tensor<4xf32>) {
  // CHECK: tt.extern_elementwise %x {libname = "libdevice", libpath = "", symbol = "__nv_asinf", pure = true} : (tensor<4xf32>) -> tensor<4xf32>
  %a = tt.extern_elementwise %x {libname = "libdevice", libpath = "", symbol = "__nv_asinf", pure = true} : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}
