// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%a: tensor<16x32xf16>, %b: tensor<32x16xf16>, %c: tensor<16x16xf32>, %p: tensor<16x16xi8>, %q: tensor<16x1xi8>) {
  // CHECK: %d = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
  %d = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
  // CHECK: %e = tt.dot %a, %b, %c, inputPrecision = tf32 {maxNumImpreciseAcc = 32 : i32} : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
  %e = tt.dot %a, %b, %c, inputPrecision = tf32 {maxNumImpreciseAcc = 32 : i32} : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
  // CHECK: %f = tt.dot_scaled %p scale %q, %p, %c lhs = e2m1 rhs = e5m2 {fastMath = false} : tensor<16x16xi8>, tensor<16x1xi8> * tensor<16x16xi8> -> tensor<16x16xf32>
  %f = tt.dot_scaled %p scale %q, %p, %c lhs = e2m1 rhs = e5m2 {fastMath = false} : tensor<16x16xi8>, tensor<16x1xi8> * tensor<16x16xi8> -> tensor<16x16xf32>
  // CHECK: %g = tt.dot_scaled %p, %p scale %q, %c lhs = e4m3 rhs = e2m1 {fastMath = false} : tensor<16x16xi8> * tensor<16x16xi8>, tensor<16x1xi8> -> tensor<16x16xf32>
  %g = tt.dot_scaled %p, %p scale %q, %c lhs = e4m3 rhs = e2m1 {fastMath = false} : tensor<16x16xi8> * tensor<16x16xi8>, tensor<16x1xi8> -> tensor<16x16xf32>
  tt.return
}
