// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel() {
  // CHECK: %a = ub.poison : tensor<4xf32>
  %a = ub.poison : tensor<4xf32>
  tt.return
}
