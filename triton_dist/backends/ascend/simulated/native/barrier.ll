; SPDX-License-Identifier: MIT
; Barriers. All programs of the kernel take part, as all cores do on the device: they wait for the PE's transfers (a
; barrier completes puts), meet, share the peers among them, and meet again. A PE writes its own slot and reads its
; peers' until each is the count, or the count plus one from a peer that is in the next barrier already.

; The programs of this kernel meet.
define internal void @asc_core_barrier(ptr %launch, i32 %program, i32 %site) nounwind {
entry:
  %patience = alloca [2 x i64]
  store [2 x i64] zeroinitializer, ptr %patience
  fence seq_cst
  %tp = getelementptr i8, ptr %launch, i64 ${launch.total}
  %total = load i64, ptr %tp
  %alone = icmp slt i64 %total, 2
  br i1 %alone, label %leave, label %several
several:
  %address = call i64 @asc_get(ptr %launch, i64 ${asc.core_sync_pool})
  %c = inttoptr i64 %address to ptr
  %lp = getelementptr i8, ptr %c, i64 ${core.launch}
  %np = getelementptr i8, ptr %c, i64 ${core.arrived}
  %gp = getelementptr i8, ptr %c, i64 ${core.generation}
  %gat = ptrtoint ptr %gp to i64
  %ip = getelementptr i8, ptr %launch, i64 ${launch.id}
  %id = load i64, ptr %ip
  call void @lock(ptr %c)
  %of = load i64, ptr %lp
  %same = icmp eq i64 %of, %id
  %before = load i64, ptr %np
  ; What a kernel that ended early left behind does not count.
  %n = select i1 %same, i64 %before, i64 0
  %arrived = add i64 %n, 1
  store i64 %id, ptr %lp
  %generation = load i64, ptr %gp
  %later = add i64 %generation, 1
  %last = icmp eq i64 %arrived, %total
  br i1 %last, label %open, label %wait
open:
  store i64 0, ptr %np
  store atomic i64 %later, ptr %gp release, align 8
  call void @unlock(ptr %c)
  br label %leave
wait:
  store i64 %arrived, ptr %np
  call void @unlock(ptr %c)
  br label %poll
poll:
  %seen = load atomic i64, ptr %gp acquire, align 8
  %opened = icmp sge i64 %seen, %later
  br i1 %opened, label %leave, label %back
back:
  %stop = call i32 @td_backoff(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %gat, i64 %later, i64 %seen)
  %go = icmp eq i32 %stop, 0
  br i1 %go, label %poll, label %leave
leave:
  fence seq_cst
  ret void
}

; The address at a member of a slot of this PE: any table that reaches it.
define internal i64 @asc_slot_at(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %pe) nounwind {
  %near = call i64 @asc_at(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %pe, i64 ${asc.p2p_device_heap_base})
  %reached = icmp ne i64 %near, 0
  br i1 %reached, label %leave, label %remote
remote:
  %far = call i64 @asc_at(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %pe, i64 ${asc.rdma_device_heap_base})
  ret i64 %far
leave:
  ret i64 %near
}

; Program v of k handles the members v, v + k, and so on.
define internal void @asc_pull(ptr %launch, i32 %program, i32 %site, ptr %team, i64 %count) nounwind {
entry:
  %patience = alloca [2 x i64]
  %count1 = add i64 %count, 1
  %tp = getelementptr i8, ptr %launch, i64 ${launch.total}
  %total = load i64, ptr %tp
  %mp = getelementptr i8, ptr %team, i64 ${team.my_pe}
  %me = load i64, ptr %mp
  %zp = getelementptr i8, ptr %team, i64 ${team.size}
  %size = load i64, ptr %zp
  %fp = getelementptr i8, ptr %team, i64 ${team.pe_mapping}
  %mapping = load ptr, ptr %fp
  %sp = getelementptr i8, ptr %team, i64 ${team.slots}
  %slots = load i64, ptr %sp
  %few = icmp slt i64 %total, 8
  %k8 = select i1 %few, i64 %total, i64 8
  %small = icmp slt i64 %size, %k8
  %k = select i1 %small, i64 %size, i64 %k8
  %v = zext i32 %program to i64
  %takes = icmp slt i64 %v, %k
  br i1 %takes, label %each, label %leave
each:
  %i = phi i64 [ %v, %entry ], [ %i1, %next ]
  store [2 x i64] zeroinitializer, ptr %patience
  %off = mul i64 %i, 64
  %slot = add i64 %slots, %off
  %own = icmp eq i64 %i, %me
  br i1 %own, label %write, label %look
write:
  %wp = inttoptr i64 %slot to ptr
  store atomic i64 %count, ptr %wp release, align 8
  br label %next
look:
  %pep = getelementptr i32, ptr %mapping, i64 %i
  %pe = load i32, ptr %pep
  %there = call i64 @asc_slot_at(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %pe)
  %p = inttoptr i64 %there to ptr
  br label %poll
poll:
  %seen = load atomic i64, ptr %p acquire, align 8
  %here = icmp eq i64 %seen, %count
  %ahead = icmp eq i64 %seen, %count1
  %ok = or i1 %here, %ahead
  br i1 %ok, label %next, label %wait
wait:
  %stop = call i32 @td_backoff(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %there, i64 %count, i64 %seen)
  %go = icmp eq i32 %stop, 0
  br i1 %go, label %poll, label %leave
next:
  %i1 = add i64 %i, %k
  %more = icmp slt i64 %i1, %size
  br i1 %more, label %each, label %leave
leave:
  ret void
}

define i32 @asc_barrier(ptr %launch, i32 %program, i32 %site, i32 %number) nounwind {
  %begin = call i64 @td_now_if(ptr %launch)
  %invalid = icmp eq i32 %number, -1
  br i1 %invalid, label %leave, label %find
find:
  %team = call ptr @asc_team(ptr %launch, i32 %number)
  %none = icmp eq ptr %team, null
  br i1 %none, label %bad, label %member
bad:
  %n64 = sext i32 %number to i64
  call void @td_fault(ptr %launch, i64 ${fault_bad_team}, i32 %program, i32 %site, i64 0, i64 0, i64 %n64, i64 0)
  ret i32 0
member:
  %mp = getelementptr i8, ptr %team, i64 ${team.my_pe}
  %me = load i64, ptr %mp
  %outside = icmp slt i64 %me, 0
  br i1 %outside, label %bad, label %meet
meet:
  %cpp = getelementptr i8, ptr %team, i64 ${team.counter}
  %cp = load ptr, ptr %cpp
  %old = load atomic i64, ptr %cp acquire, align 8
  %count = add i64 %old, 1
  %quiet = call i32 @asc_quiet(ptr %launch, i32 %program, i32 %site)
  call void @asc_core_barrier(ptr %launch, i32 %program, i32 %site)
  %zp = getelementptr i8, ptr %team, i64 ${team.size}
  %size = load i64, ptr %zp
  %alone = icmp slt i64 %size, 2
  br i1 %alone, label %close, label %pull
pull:
  call void @asc_pull(ptr %launch, i32 %program, i32 %site, ptr %team, i64 %count)
  br label %close
close:
  %first = icmp eq i32 %program, 0
  br i1 %first, label %note, label %again
note:
  store atomic i64 %count, ptr %cp release, align 8
  br label %again
again:
  call void @asc_core_barrier(ptr %launch, i32 %program, i32 %site)
  call void @td_waited(ptr %launch, i32 %program, i32 %site, i64 %begin)
  br label %leave
leave:
  ret i32 0
}

define i32 @asc_barrier_all(ptr %launch, i32 %program, i32 %site) nounwind {
  %r = call i32 @asc_barrier(ptr %launch, i32 %program, i32 %site, i32 0)
  ret i32 0
}
