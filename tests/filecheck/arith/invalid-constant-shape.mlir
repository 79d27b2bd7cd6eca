// RUN: triton-dist opt --parsing-diagnostics %s | filecheck %s

tt.func public @kernel() {
  // CHECK: shape {{.*}}3{{.*}} expected, found {{.*}}2
  %a = arith.constant dense<[1, 2]> : tensor<3xi32>
  tt.return
}
