; SPDX-License-Identifier: MIT
; Waits until each of n slots of ${stride} bytes, from the first on, holds the ${t}. The values stay. Fewer than no slots,
; which a device takes for none, are the fault that they are on the host.

define i32 @asc_wait_${t}(ptr %launch, i32 %program, i32 %site, i64 %first, i32 %n, ${t} %value) nounwind {
entry:
  %negative = icmp slt i32 %n, 0
  br i1 %negative, label %wrong, label %begins
wrong:
  %n64 = sext i32 %n to i64
  call void @td_fault(ptr %launch, i64 9, i32 %program, i32 %site, i64 %first, i64 0, i64 %n64, i64 0)
  ret i32 0
begins:
  %begin = call i64 @td_now_if(ptr %launch)
  br label %head
head:
  %i = phi i32 [ 0, %begins ], [ %i1, %next ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %each, label %end
each:
  %i64 = zext i32 %i to i64
  %off = mul i64 %i64, ${stride}
  %slot = add i64 %first, %off
  %seen = call ${t} @asc_spin_s_${t}(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 0, ${t} %value)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %end, label %next
next:
  %i1 = add i32 %i, 1
  br label %head
end:
  call void @td_waited(ptr %launch, i32 %program, i32 %site, i64 %begin)
  ret i32 0
}
