// RUN: triton-dist opt -p convert-triton-distributed-to-nvshmem %s | filecheck %s
// Outside of a loop a wait is its polling alone: every warp for itself, its lanes sharing the barriers.

tt.func public @kernel(%p: !tt.ptr<i64>, %n: i32, %v: i64, %q: !tt.ptr<i32>, %w: i32) {
  // CHECK: %[[AT:.*]] = tt.ptr_to_int %p
  // CHECK: tt.elementwise_inline_asm "{{.*}}%tid.x; and.b32 i, i, 31; EACH: setp.ge.s32 p, i, $2; @p bra DONE; mul.wide.s32 at, i, 8;
  // CHECK-SAME: ld.acquire.sys.global.b64 seen, [at]; setp.ne.b64 p, seen, $3;
  // CHECK-SAME: add.s32 i, i, 32; bra EACH; DONE: bar.warp.sync 0xffffffff; mov.b32 $0, 0; }"
  // CHECK-SAME: constraints = "=r,l,r,l,~{memory}", pure = false
  // CHECK-SAME: %[[AT]], %n, %v : i64, i32, i64 -> i32
  %a = distributed.wait %p, %n, %v, scope = sys semantic = acquire : !tt.ptr<i64>, i32, i64 -> i32
  // CHECK: mul.wide.s32 at, i, 4;{{.*}}ld.relaxed.gpu.global.b32
  // CHECK-SAME: constraints = "=r,l,r,r,~{memory}"
  %b = distributed.wait %q, %n, %w, scope = gpu semantic = relaxed : !tt.ptr<i32>, i32, i32 -> i32
  // A load cannot release: what is asked for beyond relaxed is acquire.
  // CHECK: ld.acquire.cta.global.b32
  %d = distributed.wait %q, %n, %w, scope = cta semantic = acq_rel : !tt.ptr<i32>, i32, i32 -> i32
  tt.return
}
