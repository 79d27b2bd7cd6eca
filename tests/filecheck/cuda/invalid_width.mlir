// RUN: not triton-dist opt -p convert-triton-distributed-to-nvshmem %s 2>&1 | filecheck %s
// GPUs poll words of 32 and 64 bits.

tt.func public @kernel(%p: !tt.ptr<i8>, %n: i32, %v: i8) {
  // CHECK: the cuda back end does not support distributed.wait: the signal is of type i8; it can be i32, i64
  %a = distributed.wait %p, %n, %v, scope = sys semantic = acquire : !tt.ptr<i8>, i32, i8 -> i32
  tt.return
}
