// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%s: f32, %x: tensor<4xf32>, %m: tensor<4xi1>, %c: i1) {
  // CHECK: %a = arith.addf %x, %x fastmath<contract> : tensor<4xf32>
  %a = arith.addf %x, %x fastmath<contract> : tensor<4xf32>
  // CHECK: %b = arith.remf %x, %x : tensor<4xf32>
  %b = arith.remf %x, %x : tensor<4xf32>
  // CHECK: %d = arith.negf %s : f32
  %d = arith.negf %s : f32
  // CHECK: %e = arith.maximumf %x, %x fastmath<nnan,ninf> : tensor<4xf32>
  %e = arith.maximumf %x, %x fastmath<nnan,ninf> : tensor<4xf32>
  // CHECK: %g = arith.minnumf %s, %s : f32
  %g = arith.minnumf %s, %s : f32
  tt.return
}
