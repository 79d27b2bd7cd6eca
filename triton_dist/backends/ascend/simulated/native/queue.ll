; SPDX-License-Identifier: MIT
; The asynchronous engines: a ring of entries, a doorbell, and a native thread that carries them out.
; The agent leaves an entry undone until a program waits for it (quiet), the ring is full, or it has become old.

define internal void @asc_wake(ptr %q) nounwind {
  %w = getelementptr i8, ptr %q, i64 ${queue.wake}
  %old = atomicrmw add ptr %w, i32 1 acq_rel
  call void @futex_wake(ptr %w)
  ret void
}

define internal void @asc_carry_out(ptr %e) nounwind {
  %kind = load i64, ptr %e
  %dp = getelementptr i8, ptr %e, i64 ${entry.dest}
  %dest = load ptr, ptr %dp
  %vp = getelementptr i8, ptr %e, i64 ${entry.value}
  %v64 = load i64, ptr %vp
  %value = trunc i64 %v64 to i32
  switch i64 %kind, label %copy [ i64 1, label %set
                                  i64 2, label %add ]
copy:
  %sp = getelementptr i8, ptr %e, i64 ${entry.source}
  %source = load ptr, ptr %sp
  %bp = getelementptr i8, ptr %e, i64 ${entry.bytes}
  %bytes = load i64, ptr %bp
  %r = call ptr @memmove(ptr %dest, ptr %source, i64 %bytes)
  ret void
set:
  store atomic i32 %value, ptr %dest release, align 4
  ret void
add:
  %old = atomicrmw add ptr %dest, i32 %value acq_rel
  ret void
}

; The progress agent.
define ptr @asc_agent(ptr %q) nounwind {
entry:
  %ts = alloca [2 x i64]
  store [2 x i64] [i64 0, i64 20000000], ptr %ts
  %wp = getelementptr i8, ptr %q, i64 ${queue.wake}
  %hp = getelementptr i8, ptr %q, i64 ${queue.head}
  %bp = getelementptr i8, ptr %q, i64 ${queue.doorbell}
  %mp = getelementptr i8, ptr %q, i64 ${queue.demand}
  %xp = getelementptr i8, ptr %q, i64 ${queue.stop}
  %ap = getelementptr i8, ptr %q, i64 ${queue.alive}
  %cp = getelementptr i8, ptr %q, i64 ${queue.capacity}
  %capacity = load i64, ptr %cp
  %ep = getelementptr i8, ptr %q, i64 ${queue.entries}
  %entries = load ptr, ptr %ep
  %ip = getelementptr i8, ptr %q, i64 ${queue.idle_ns}
  br label %loop
loop:
  %word = load atomic i32, ptr %wp acquire, align 4
  %stop = load atomic i64, ptr %xp acquire, align 8
  %over = icmp ne i64 %stop, 0
  br i1 %over, label %end, label %look
look:
  %head = load i64, ptr %hp
  %bell = load atomic i64, ptr %bp acquire, align 8
  %empty = icmp eq i64 %head, %bell
  br i1 %empty, label %sleep, label %due
due:
  %index = urem i64 %head, %capacity
  %off = mul i64 %index, 64
  %e = getelementptr i8, ptr %entries, i64 %off
  %demand = load atomic i64, ptr %mp acquire, align 8
  %wanted = icmp ne i64 %demand, 0
  br i1 %wanted, label %go, label %aged
aged:
  %sp = getelementptr i8, ptr %e, i64 ${entry.stamp}
  %stamp = load i64, ptr %sp
  %now = call i64 @td_now()
  %age = sub i64 %now, %stamp
  %limit = load i64, ptr %ip
  %old = icmp sgt i64 %age, %limit
  br i1 %old, label %go, label %sleep
go:
  call void @asc_carry_out(ptr %e)
  %next = add i64 %head, 1
  store atomic i64 %next, ptr %hp release, align 8
  %np = getelementptr i8, ptr %q, i64 ${queue.done}
  %n = load i64, ptr %np
  %n1 = add i64 %n, 1
  store i64 %n1, ptr %np
  br label %loop
sleep:
  call void @futex_wait(ptr %wp, i32 %word, ptr %ts)
  br label %loop
end:
  store atomic i64 0, ptr %ap release, align 8
  ret ptr null
}

; Called by the host when a PE ends: no transfer may touch its memory afterwards.
define void @asc_stop(ptr %q) nounwind {
entry:
  %xp = getelementptr i8, ptr %q, i64 ${queue.stop}
  %ap = getelementptr i8, ptr %q, i64 ${queue.alive}
  store atomic i64 1, ptr %xp release, align 8
  call void @asc_wake(ptr %q)
  br label %poll
poll:
  %alive = load atomic i64, ptr %ap acquire, align 8
  %gone = icmp eq i64 %alive, 0
  br i1 %gone, label %end, label %wait
wait:
  %rc = call i32 @sched_yield()
  br label %poll
end:
  ret void
}

; The first entry of a queue starts its agent. Called with the lock held. Where the system gives no thread, the kernel
; ends, and nobody waits for an agent that is not there.
define internal void @asc_start(ptr %launch, i32 %program, i32 %site, ptr %q) nounwind {
  %ap = getelementptr i8, ptr %q, i64 ${queue.alive}
  %alive = load i64, ptr %ap
  %runs = icmp ne i64 %alive, 0
  br i1 %runs, label %leave, label %create
create:
  store atomic i64 1, ptr %ap release, align 8
  %tid = alloca i64
  %rc = call i32 @pthread_create(ptr %tid, ptr null, ptr @asc_agent, ptr %q)
  %started = icmp eq i32 %rc, 0
  br i1 %started, label %detach, label %refused
refused:
  store atomic i64 0, ptr %ap release, align 8
  %code = sext i32 %rc to i64
  call void @td_fault(ptr %launch, i64 ${fault_no_agent}, i32 %program, i32 %site, i64 0, i64 0, i64 %code, i64 0)
  br label %leave
detach:
  %t = load i64, ptr %tid
  %rc2 = call i32 @pthread_detach(i64 %t)
  br label %leave
leave:
  ret void
}

; Ask for the end of all entries before `target`, and wait for it.
define internal void @asc_drain(ptr %launch, i32 %program, i32 %site, ptr %q, i64 %target) nounwind {
entry:
  %patience = alloca [2 x i64]
  store [2 x i64] zeroinitializer, ptr %patience
  %hp = getelementptr i8, ptr %q, i64 ${queue.head}
  %mp = getelementptr i8, ptr %q, i64 ${queue.demand}
  %at = ptrtoint ptr %hp to i64
  %first = load atomic i64, ptr %hp acquire, align 8
  %already = icmp sge i64 %first, %target
  br i1 %already, label %out, label %ask
ask:
  %d = atomicrmw add ptr %mp, i64 1 acq_rel
  call void @asc_wake(ptr %q)
  br label %poll
poll:
  %head = load atomic i64, ptr %hp acquire, align 8
  %done = icmp sge i64 %head, %target
  br i1 %done, label %end, label %wait
wait:
  %leave = call i32 @td_backoff(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %at, i64 %target, i64 %head)
  %go = icmp eq i32 %leave, 0
  br i1 %go, label %poll, label %end
end:
  %d2 = atomicrmw sub ptr %mp, i64 1 acq_rel
  br label %out
out:
  ret void
}

; Fill an entry and ring the doorbell; returns the number of entries up to and with this one.
define internal i64 @asc_submit(ptr %launch, i32 %program, i32 %site, ptr %q, i64 %kind, i64 %dest, i64 %source, i64 %bytes, i64 %value) nounwind {
entry:
  %tp = getelementptr i8, ptr %q, i64 ${queue.tail}
  %hp = getelementptr i8, ptr %q, i64 ${queue.head}
  %cp = getelementptr i8, ptr %q, i64 ${queue.capacity}
  %ep = getelementptr i8, ptr %q, i64 ${queue.entries}
  %bp = getelementptr i8, ptr %q, i64 ${queue.doorbell}
  %capacity = load i64, ptr %cp
  br label %try
try:
  call void @lock(ptr %q)
  %tail = load i64, ptr %tp
  %head = load atomic i64, ptr %hp acquire, align 8
  %used = sub i64 %tail, %head
  %room = icmp slt i64 %used, %capacity
  br i1 %room, label %fill, label %full
full:
  call void @unlock(ptr %q)
  %need = add i64 %head, 1
  call void @asc_drain(ptr %launch, i32 %program, i32 %site, ptr %q, i64 %need)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %fail, label %try
fill:
  %entries = load ptr, ptr %ep
  %index = urem i64 %tail, %capacity
  %off = mul i64 %index, 64
  %e = getelementptr i8, ptr %entries, i64 %off
  store i64 %kind, ptr %e
  %f1 = getelementptr i8, ptr %e, i64 ${entry.dest}
  store i64 %dest, ptr %f1
  %f2 = getelementptr i8, ptr %e, i64 ${entry.source}
  store i64 %source, ptr %f2
  %f3 = getelementptr i8, ptr %e, i64 ${entry.bytes}
  store i64 %bytes, ptr %f3
  %f4 = getelementptr i8, ptr %e, i64 ${entry.value}
  store i64 %value, ptr %f4
  %now = call i64 @td_now()
  %f5 = getelementptr i8, ptr %e, i64 ${entry.stamp}
  store i64 %now, ptr %f5
  %next = add i64 %tail, 1
  store i64 %next, ptr %tp
  store atomic i64 %next, ptr %bp release, align 8
  call void @asc_start(ptr %launch, i32 %program, i32 %site, ptr %q)
  call void @unlock(ptr %q)
  call void @asc_wake(ptr %q)
  ret i64 %next
fail:
  ret i64 0
}

define internal void @asc_quiet_of(ptr %launch, i32 %program, i32 %site, i64 %config) nounwind {
  %address = call i64 @asc_get(ptr %launch, i64 %config)
  %q = inttoptr i64 %address to ptr
  %tp = getelementptr i8, ptr %q, i64 ${queue.tail}
  %tail = load atomic i64, ptr %tp acquire, align 8
  call void @asc_drain(ptr %launch, i32 %program, i32 %site, ptr %q, i64 %tail)
  ret void
}

; quiet and fence are the same, as on the device: all own transfers are done.
define i32 @asc_quiet(ptr %launch, i32 %program, i32 %site) nounwind {
  call void @asc_quiet_of(ptr %launch, i32 %program, i32 %site, i64 ${asc.sdma_config})
  call void @asc_quiet_of(ptr %launch, i32 %program, i32 %site, i64 ${asc.rdma_config})
  call void @asc_quiet_of(ptr %launch, i32 %program, i32 %site, i64 ${asc.udma_config})
  fence seq_cst
  ret i32 0
}
