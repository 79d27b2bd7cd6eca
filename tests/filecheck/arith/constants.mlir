// RUN: triton-dist opt %s | filecheck %s
// A hexadecimal float is a bit pattern, in splats and lists too; what no short decimal gives is printed as one.

tt.func public @kernel() {
  // CHECK: arith.constant dense<0xFF800000> : tensor<8x8xf32>
  %a = arith.constant dense<0xFF800000> : tensor<8x8xf32>
  // CHECK: arith.constant dense<0xFC00> : tensor<8xf16>
  %b = arith.constant dense<0xFC00> : tensor<8xf16>
  // CHECK: arith.constant 0xFF800000 : f32
  %d = arith.constant 0xFF800000 : f32
  // CHECK: arith.constant dense<1.000000e+00> : tensor<2xbf16>
  %e = arith.constant dense<[1.0, 1.0]> : tensor<2xbf16>
  // CHECK: arith.constant dense<[0.000000e+00, 0xFF80]> : tensor<2xbf16>
  %f = arith.constant dense<[0.0, 0xFF80]> : tensor<2xbf16>
  // CHECK: arith.constant 0x3EAAAAAB : f32
  %g = arith.constant 0.333333343 : f32
  // CHECK: arith.constant dense<true> : tensor<4xi1>
  %h = arith.constant dense<true> : tensor<4xi1>
  // CHECK: arith.constant true
  %j = arith.constant true
  // CHECK: arith.constant dense<-128> : tensor<4xi8>
  %k = arith.constant dense<0x80> : tensor<4xi8>
  tt.return
}
