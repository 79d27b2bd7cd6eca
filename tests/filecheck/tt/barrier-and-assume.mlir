// RUN: triton-dist opt %s | filecheck %s

tt.func public @kernel(%c: i1) {
  // CHECK: ttg.barrier all
  ttg.barrier all
  // CHECK: ttg.barrier local|global_read
  ttg.barrier local|global_read
  // CHECK: gpu.barrier
  gpu.barrier
  // CHECK: llvm.intr.assume %c : i1
  llvm.intr.assume %c : i1
  tt.return
}
