; SPDX-License-Identifier: MIT
; Signals are int32. Set is a store and its write-back (a release store), add is atomic. Where no store reaches the PE,
; ROCE carries both out, and the call waits for the end.

define internal void @asc_signal_by_roce(ptr %launch, i32 %program, i32 %site, i64 %sig, i32 %value, i32 %op, i32 %pe) nounwind {
  %remote = call i64 @asc_at(ptr %launch, i32 %program, i32 %site, i64 %sig, i32 %pe, i64 ${asc.rdma_device_heap_base})
  %bad = icmp eq i64 %remote, 0
  br i1 %bad, label %leave, label %post
post:
  %address = call i64 @asc_get(ptr %launch, i64 ${asc.rdma_config})
  %q = inttoptr i64 %address to ptr
  %op64 = zext i32 %op to i64
  %kind = add i64 %op64, 1
  %v64 = sext i32 %value to i64
  %n = call i64 @asc_submit(ptr %launch, i32 %program, i32 %site, ptr %q, i64 %kind, i64 %remote, i64 0, i64 4, i64 %v64)
  call void @asc_drain(ptr %launch, i32 %program, i32 %site, ptr %q, i64 %n)
  br label %leave
leave:
  ret void
}

define i32 @asc_signal_op(ptr %launch, i32 %program, i32 %site, i64 %sig, i32 %value, i32 %op, i32 %pe) nounwind {
  %begin = call i64 @td_now_if(ptr %launch)
  %known = icmp ult i32 %op, 2
  br i1 %known, label %place, label %bad_op
bad_op:
  %op64 = sext i32 %op to i64
  call void @td_fault(ptr %launch, i64 ${fault_bad_op}, i32 %program, i32 %site, i64 %sig, i64 0, i64 %op64, i64 0)
  ret i32 0
place:
  %remote = call i64 @asc_at(ptr %launch, i32 %program, i32 %site, i64 %sig, i32 %pe, i64 ${asc.p2p_device_heap_base})
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %reach
reach:
  %p = inttoptr i64 %remote to ptr
  %far = icmp eq i64 %remote, 0
  br i1 %far, label %roce, label %near
roce:
  call void @asc_signal_by_roce(ptr %launch, i32 %program, i32 %site, i64 %sig, i32 %value, i32 %op, i32 %pe)
  br label %done
near:
  %set = icmp eq i32 %op, 0
  br i1 %set, label %write, label %plus
write:
  store atomic i32 %value, ptr %p release, align 4
  br label %done
plus:
  %old = atomicrmw add ptr %p, i32 %value acq_rel
  br label %done
done:
  call void @td_notified(ptr %launch, i32 %program, i32 %site, i64 %begin)
  br label %leave
leave:
  ret i32 0
}

define i32 @asc_signal_wait_until(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %cmp, i32 %value) nounwind {
  %r = call i32 @asc_until_s_i32(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %cmp, i32 %value)
  ret i32 %r
}
