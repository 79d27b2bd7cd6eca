// RUN: triton-dist opt -p convert-triton-distributed-to-hivm %s | filecheck %s
// 32 bits: signal_op, with the library's numbers (0 sets, 1 adds). 64 bits: a store, whose name keeps the sign.
tt.func @k(%p: !tt.ptr<i32>, %q: !tt.ptr<i64>, %v: i64, %pe: i32) {
  "distributed.notify"(%p, %v, %pe) <{sigOp = 1 : i32, commScope = 2 : i32}> : (!tt.ptr<i32>, i64, i32) -> ()
  "distributed.notify"(%p, %v, %pe) <{sigOp = 2 : i32, commScope = 3 : i32, sigUnsigned}> : (!tt.ptr<i32>, i64, i32) -> ()
  "distributed.notify"(%q, %v, %pe) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()
  "distributed.notify"(%q, %v, %pe) <{sigOp = 1 : i32, commScope = 3 : i32, sigUnsigned}> : (!tt.ptr<i64>, i64, i32) -> ()
  tt.return
}
// CHECK:      [[V:%.*]] = arith.trunci %v : i64 to i32
// CHECK-NEXT: [[SET:%.*]] = arith.constant 0 : i32
// CHECK-NEXT: hivm.hir.custom {commScope = 2 : i32, gm_addr_args_indices = array<i32: 0>, hivm.is_distributed, hivm.pipe = #hivm.pipe<PIPE_S>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, hivm.vf_mode = #hivm.vf_mode<SIMD>, sigOp = 1 : i32, symbol = "aclshmemx_signal_op"} "dist.aclshmemx_signal_op" ins(%p, [[V]], [[SET]], %pe : !tt.ptr<i32>, i32, i32, i32)
// CHECK-NEXT: arith.trunci
// CHECK-NEXT: [[ADD:%.*]] = arith.constant 1 : i32
// CHECK-NEXT: hivm.hir.custom {{.*}}sigOp = 2 : i32, {{.*}}symbol = "aclshmemx_signal_op"} {{.*}}, [[ADD]], %pe :
// CHECK-NEXT: "dist.aclshmem_int64_p" ins(%q, %v, %pe : !tt.ptr<i64>, i64, i32)
// CHECK-NEXT: sigUnsigned, symbol = "aclshmem_uint64_p"} "dist.aclshmem_uint64_p" ins(%q, %v, %pe : !tt.ptr<i64>, i64, i32)
