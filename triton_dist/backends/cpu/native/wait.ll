; SPDX-License-Identifier: MIT
; Waits on ${t}. `host_wait` takes n consecutive barriers; it does not consume: the value stays.

define i32 @host_wait_${t}(ptr %launch, i32 %program, i32 %site, i64 %first, i32 %n, ${t} %value) nounwind {
entry:
  %patience = alloca [2 x i64]
  %negative = icmp slt i32 %n, 0
  br i1 %negative, label %bad, label %begins
bad:
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
  store [2 x i64] zeroinitializer, ptr %patience
  %i64 = zext i32 %i to i64
  %off = mul i64 %i64, ${size}
  %slot = add i64 %first, %off
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %slot, i64 ${size}, i1 false)
  br i1 %usable, label %looks, label %end
looks:
  %p = inttoptr i64 %slot to ptr
  br label %poll
poll:
  %seen = load atomic ${t}, ptr %p acquire, align ${size}
  %ok = icmp eq ${t} %seen, %value
  br i1 %ok, label %next, label %wait
wait:
  %expected64 = ${ext_value}
  %seen64 = ${ext_seen}
  %leave = call i32 @td_backoff_at(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %slot, i64 %expected64, i64 %seen64, i64 %slot, i64 ${size})
  %go = icmp eq i32 %leave, 0
  br i1 %go, label %poll, label %end
next:
  %i1 = add i32 %i, 1
  br label %head
end:
  call void @td_waited(ptr %launch, i32 %program, i32 %site, i64 %begin)
  ret i32 0
}

; Waits for %value up to %timeout nanoseconds (-1: the launch's own deadline); 1 if it came.
define i32 @host_poll_${t}(ptr %launch, i32 %program, i32 %site, i64 %slot, ${t} %value, i64 %timeout) nounwind {
entry:
  %patience = alloca [2 x i64]
  store [2 x i64] zeroinitializer, ptr %patience
  %begin = call i64 @td_now()
  %limited = icmp sge i64 %timeout, 0
  %p = inttoptr i64 %slot to ptr
  br label %poll
poll:
  %seen = load atomic ${t}, ptr %p acquire, align ${size}
  %ok = icmp eq ${t} %seen, %value
  br i1 %ok, label %came, label %wait
wait:
  br i1 %limited, label %clock, label %back
clock:
  %now = call i64 @td_now()
  %spent = sub i64 %now, %begin
  %over = icmp sgt i64 %spent, %timeout
  br i1 %over, label %missed, label %back
back:
  %expected64 = ${ext_value}
  %seen64 = ${ext_seen}
  %leave = call i32 @td_backoff_at(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %slot, i64 %expected64, i64 %seen64, i64 %slot, i64 ${size})
  %go = icmp eq i32 %leave, 0
  br i1 %go, label %poll, label %missed
came:
  ret i32 1
missed:
  ret i32 0
}
