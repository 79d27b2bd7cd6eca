// RUN: triton-dist opt -p convert-triton-distributed-to-hivm %s | filecheck %s
// Scope and semantic are carried over. A wait that nobody consumes stays.
tt.func @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i64>, %n: i32, %v: i64) {
  %0 = distributed.wait %p, %n, %n, scope = gpu semantic = acquire : !tt.ptr<i32>, i32, i32 -> i32
  %1 = distributed.wait %q, %n, %v, scope = sys semantic = relaxed : !tt.ptr<i64>, i32, i64 -> i32
  tt.return
}
// CHECK:      %0 = hivm.hir.custom {gm_addr_args_indices = array<i32: 0>, hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, scope = 1 : i32, semantic = 2 : i32, symbol = "aclshmem_wait_int32"} "dist.aclshmem_wait_int32" ins(%p, %n, %n : !tt.ptr<i32>, i32, i32) -> i32
// CHECK-NEXT: %1 = hivm.hir.custom {{.*}}scope = 3 : i32, semantic = 1 : i32, symbol = "aclshmem_wait_int64"} "dist.aclshmem_wait_int64" ins(%q, %n, %v : !tt.ptr<i64>, i32, i64) -> i32
