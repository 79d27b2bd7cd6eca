// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%x: tensor<4xf32>, %i: i32, %m: tensor<4xi1>) {
  // CHECK: tt.print " n: " {hex = false, isSigned = array<i32: 1>} : %i : i32
  tt.print " n: " {hex = false, isSigned = array<i32: 1>} : %i : i32
  // CHECK: tt.assert %m, "gr\C3\B6\C3\9Fer \22x\22" : tensor<4xi1>
  tt.assert %m, "gr\C3\B6\C3\9Fer \22x\22" : tensor<4xi1>
  tt.return
}
