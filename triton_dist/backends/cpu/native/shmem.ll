; SPDX-License-Identifier: MIT
; The host's template library: what `distributed` ops and `libshmem_device` functions become on a CPU.
; Every function takes (launch, program, site) before its own operands; symmetric pointers are i64 addresses.
; Set = release store, add = atomic add, wait = acquire load. Puts complete at once, so quiet and fence only order.

define i32 @host_my_pe(ptr %launch, i32 %program, i32 %site) nounwind {
  %state = call ptr @state_of(ptr %launch)
  %p = getelementptr i8, ptr %state, i64 ${state.my_pe}
  %v = load i64, ptr %p
  %r = trunc i64 %v to i32
  ret i32 %r
}

define i32 @host_n_pes(ptr %launch, i32 %program, i32 %site) nounwind {
  %state = call ptr @state_of(ptr %launch)
  %p = getelementptr i8, ptr %state, i64 ${state.n_pes}
  %v = load i64, ptr %p
  %r = trunc i64 %v to i32
  ret i32 %r
}

; World, shared and node teams (0, 1, 2) are all PEs; there are no others on one machine.
define i32 @host_team_my_pe(ptr %launch, i32 %program, i32 %site, i32 %team) nounwind {
  %me = call i32 @host_my_pe(ptr %launch, i32 %program, i32 %site)
  %known = icmp ult i32 %team, 3
  %r = select i1 %known, i32 %me, i32 -1
  ret i32 %r
}

define i32 @host_team_n_pes(ptr %launch, i32 %program, i32 %site, i32 %team) nounwind {
  %n = call i32 @host_n_pes(ptr %launch, i32 %program, i32 %site)
  %known = icmp ult i32 %team, 3
  %r = select i1 %known, i32 %n, i32 -1
  ret i32 %r
}

define i32 @host_team_translate_pe(ptr %launch, i32 %program, i32 %site, i32 %from, i32 %pe, i32 %to) nounwind {
  %n = call i32 @host_team_n_pes(ptr %launch, i32 %program, i32 %site, i32 %from)
  %in = icmp ult i32 %pe, %n
  %member = icmp sgt i32 %n, 0
  %known = icmp ult i32 %to, 3
  %a = and i1 %in, %member
  %ok = and i1 %a, %known
  %r = select i1 %ok, i32 %pe, i32 -1
  ret i32 %r
}

; Peer address of a symmetric address: local pointer - local base + base[pe]. The own PE's is the pointer itself.
define i64 @host_ptr(ptr %launch, i32 %program, i32 %site, i64 %p, i32 %pe) nounwind {
  %state = call ptr @state_of(ptr %launch)
  %mp = getelementptr i8, ptr %state, i64 ${state.my_pe}
  %me = load i64, ptr %mp
  %pe64 = sext i32 %pe to i64
  %self = icmp eq i64 %me, %pe64
  br i1 %self, label %same, label %other
same:
  ret i64 %p
other:
  %np = getelementptr i8, ptr %state, i64 ${state.n_pes}
  %n = load i64, ptr %np
  %known = icmp ult i64 %pe64, %n
  br i1 %known, label %offset, label %bad_pe
bad_pe:
  call void @td_fault(ptr %launch, i64 3, i32 %program, i32 %site, i64 %p, i64 %n, i64 %pe64, i64 0)
  ret i64 %p
offset:
  %hp = getelementptr i8, ptr %state, i64 ${state.heap_base}
  %heap = load i64, ptr %hp
  %off = sub i64 %p, %heap
  %sp = getelementptr i8, ptr %state, i64 ${state.heap_size}
  %size = load i64, ptr %sp
  %inside = icmp ult i64 %off, %size
  br i1 %inside, label %remote, label %foreign
foreign:
  call void @td_fault(ptr %launch, i64 4, i32 %program, i32 %site, i64 %p, i64 %size, i64 %pe64, i64 0)
  ret i64 %p
remote:
  %bp = getelementptr i8, ptr %state, i64 ${state.peer_base}
  %bases = load ptr, ptr %bp
  %slot = getelementptr i64, ptr %bases, i64 %pe64
  %base = load i64, ptr %slot
  %r = add i64 %base, %off
  ret i64 %r
}

define internal i1 @ended(ptr %launch) alwaysinline nounwind {
  %sp = getelementptr i8, ptr %launch, i64 ${launch.status}
  %status = load atomic i32, ptr %sp monotonic, align 4
  %r = icmp ne i32 %status, 0
  ret i1 %r
}

; Whether one value can be read or written at an address: it is not null, and in the bounds-checked mode lies in a tensor of
; the launch or in a heap. Else the launch ends.
define internal i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %address, i64 %bytes, i1 %write) alwaysinline nounwind {
  %null = icmp eq i64 %address, 0
  br i1 %null, label %nowhere, label %mode
nowhere:
  call void @td_fault(ptr %launch, i64 11, i32 %program, i32 %site, i64 0, i64 0, i64 0, i64 0)
  ret i1 false
mode:
  %rp = getelementptr i8, ptr %launch, i64 ${launch.ranges}
  %ranges = load ptr, ptr %rp
  %unchecked = icmp eq ptr %ranges, null
  br i1 %unchecked, label %good, label %check
check:
  %found = call i64 @td_bounds(ptr %launch, i32 %program, i32 %site, i64 %address, i64 %bytes, i1 true, i1 %write)
  %ok = icmp eq i64 %found, %address
  ret i1 %ok
good:
  ret i1 true
}

define i32 @host_quiet(ptr %launch, i32 %program, i32 %site) nounwind {
  fence seq_cst
  ret i32 0
}

define i32 @host_quiet_pe(ptr %launch, i32 %program, i32 %site, i32 %pe) nounwind {
  fence seq_cst
  ret i32 0
}

; Whether a transfer stays inside the heap at its symmetric end, and in the bounds-checked mode inside the tensors of the
; launch at its local end. This PE's own end may lie outside the heap; then only a size taken from a negative one is too large.
define internal i1 @fits(ptr %launch, i32 %program, i32 %site, i64 %symmetric, i64 %local, i64 %bytes, i1 %get) nounwind {
  %state = call ptr @state_of(ptr %launch)
  %hp = getelementptr i8, ptr %state, i64 ${state.heap_base}
  %heap = load i64, ptr %hp
  %sp = getelementptr i8, ptr %state, i64 ${state.heap_size}
  %size = load i64, ptr %sp
  %off = sub i64 %symmetric, %heap
  %inside = icmp ult i64 %off, %size
  %left = sub i64 %size, %off
  %limit = select i1 %inside, i64 %left, i64 140737488355328
  %short = icmp ule i64 %bytes, %limit
  br i1 %short, label %mode, label %long
long:
  call void @td_fault(ptr %launch, i64 10, i32 %program, i32 %site, i64 %symmetric, i64 %limit, i64 %bytes, i64 0)
  ret i1 false
mode:
  %rp = getelementptr i8, ptr %launch, i64 ${launch.ranges}
  %ranges = load ptr, ptr %rp
  %unchecked = icmp eq ptr %ranges, null
  %nothing = icmp eq i64 %bytes, 0
  %skip = or i1 %unchecked, %nothing
  br i1 %skip, label %good, label %check
check:
  %put = xor i1 %get, true
  %a = call i64 @td_bounds(ptr %launch, i32 %program, i32 %site, i64 %local, i64 %bytes, i1 true, i1 %get)
  %b = call i64 @td_bounds(ptr %launch, i32 %program, i32 %site, i64 %symmetric, i64 %bytes, i1 true, i1 %put)
  %bad = call i1 @ended(ptr %launch)
  %ok = xor i1 %bad, true
  ret i1 %ok
good:
  ret i1 true
}

define i32 @host_putmem(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe) nounwind {
  %remote = call i64 @host_ptr(ptr %launch, i32 %program, i32 %site, i64 %dest, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %measure
measure:
  %fit = call i1 @fits(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i1 false)
  br i1 %fit, label %copy, label %leave
copy:
  %d = inttoptr i64 %remote to ptr
  %s = inttoptr i64 %source to ptr
  %r = call ptr @memmove(ptr %d, ptr %s, i64 %bytes)
  br label %leave
leave:
  ret i32 0
}

define i32 @host_getmem(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe) nounwind {
  %remote = call i64 @host_ptr(ptr %launch, i32 %program, i32 %site, i64 %source, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %measure
measure:
  %fit = call i1 @fits(ptr %launch, i32 %program, i32 %site, i64 %source, i64 %dest, i64 %bytes, i1 true)
  br i1 %fit, label %copy, label %leave
copy:
  %d = inttoptr i64 %dest to ptr
  %s = inttoptr i64 %remote to ptr
  %r = call ptr @memmove(ptr %d, ptr %s, i64 %bytes)
  br label %leave
leave:
  ret i32 0
}

; signal_op: 9 sets, 10 adds (NVSHMEM's numbers).
define i32 @host_signal_op(ptr %launch, i32 %program, i32 %site, i64 %sig, i64 %value, i32 %op, i32 %pe) nounwind {
  %set = icmp eq i32 %op, 9
  br i1 %set, label %store, label %else
store:
  %r1 = call i32 @host_signal_set_i64(ptr %launch, i32 %program, i32 %site, i64 %sig, i64 %value, i32 %pe)
  ret i32 0
else:
  %add = icmp eq i32 %op, 10
  br i1 %add, label %plus, label %bad
plus:
  %r2 = call i32 @host_signal_add_i64(ptr %launch, i32 %program, i32 %site, i64 %sig, i64 %value, i32 %pe)
  ret i32 0
bad:
  %op64 = sext i32 %op to i64
  call void @td_fault(ptr %launch, i64 5, i32 %program, i32 %site, i64 %sig, i64 9, i64 %op64, i64 0)
  ret i32 0
}

define i32 @host_putmem_signal(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i64 %sig, i64 %value, i32 %op, i32 %pe) nounwind {
  %r1 = call i32 @host_putmem(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %signal
signal:
  %r2 = call i32 @host_signal_op(ptr %launch, i32 %program, i32 %site, i64 %sig, i64 %value, i32 %op, i32 %pe)
  br label %leave
leave:
  ret i32 0
}

; The centralised pull barrier: each PE writes its own slot, then reads every peer's until it is the count, or the count
; plus one from a peer that is already in the next barrier.
define i32 @host_barrier_all(ptr %launch, i32 %program, i32 %site) nounwind {
entry:
  %patience = alloca [2 x i64]
  %state = call ptr @state_of(ptr %launch)
  %np = getelementptr i8, ptr %state, i64 ${state.n_pes}
  %n = load i64, ptr %np
  %alone = icmp slt i64 %n, 2
  br i1 %alone, label %trivial, label %several
trivial:
  fence seq_cst
  ret i32 0
several:
  %begin = call i64 @td_now()
  %mp = getelementptr i8, ptr %state, i64 ${state.my_pe}
  %me = load i64, ptr %mp
  %cp = getelementptr i8, ptr %state, i64 ${state.sync_count}
  %old = load i64, ptr %cp
  %count = add i64 %old, 1
  %count1 = add i64 %old, 2
  %op = getelementptr i8, ptr %state, i64 ${state.sync_offset}
  %offset = load i64, ptr %op
  %hp = getelementptr i8, ptr %state, i64 ${state.heap_base}
  %heap = load i64, ptr %hp
  %pool = add i64 %heap, %offset
  %mine = mul i64 %me, 64
  %own = add i64 %pool, %mine
  %ownp = inttoptr i64 %own to ptr
  fence seq_cst
  store atomic i64 %count, ptr %ownp release, align 8
  %bp = getelementptr i8, ptr %state, i64 ${state.peer_base}
  %bases = load ptr, ptr %bp
  br label %each
each:
  %pe = phi i64 [ 0, %several ], [ %pe1, %next ]
  store [2 x i64] zeroinitializer, ptr %patience
  %slotp = getelementptr i64, ptr %bases, i64 %pe
  %base = load i64, ptr %slotp
  %rpool = add i64 %base, %offset
  %theirs = mul i64 %pe, 64
  %slot = add i64 %rpool, %theirs
  %p = inttoptr i64 %slot to ptr
  br label %poll
poll:
  %seen = load atomic i64, ptr %p acquire, align 8
  %here = icmp eq i64 %seen, %count
  %ahead = icmp eq i64 %seen, %count1
  %ok = or i1 %here, %ahead
  br i1 %ok, label %next, label %wait
wait:
  %leave = call i32 @td_backoff(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %slot, i64 %count, i64 %seen)
  %go = icmp eq i32 %leave, 0
  br i1 %go, label %poll, label %end
next:
  %pe1 = add i64 %pe, 1
  %more = icmp slt i64 %pe1, %n
  br i1 %more, label %each, label %passed
passed:
  store i64 %count, ptr %cp
  fence seq_cst
  br label %end
end:
  %trace = call i1 @tracing(ptr %launch)
  br i1 %trace, label %record, label %out
record:
  %now = call i64 @td_now()
  call void @td_trace(ptr %launch, i64 1, i32 %program, i64 -1, i32 %site, i64 %begin, i64 %now)
  br label %out
out:
  ret i32 0
}

define i32 @host_barrier(ptr %launch, i32 %program, i32 %site, i32 %team) nounwind {
  %known = icmp ult i32 %team, 3
  br i1 %known, label %ok, label %bad
ok:
  %r = call i32 @host_barrier_all(ptr %launch, i32 %program, i32 %site)
  ret i32 0
bad:
  %team64 = sext i32 %team to i64
  call void @td_fault(ptr %launch, i64 6, i32 %program, i32 %site, i64 0, i64 0, i64 %team64, i64 0)
  ret i32 -1
}

; Both collectives pull: every PE is past the first barrier before any source is read, and nobody leaves before all have read.
define i32 @host_broadcastmem(ptr %launch, i32 %program, i32 %site, i32 %team, i64 %dest, i64 %source, i64 %bytes, i32 %root) nounwind {
  %r1 = call i32 @host_barrier(ptr %launch, i32 %program, i32 %site, i32 %team)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %pull
pull:
  %r2 = call i32 @host_getmem(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %root)
  %r3 = call i32 @host_barrier(ptr %launch, i32 %program, i32 %site, i32 %team)
  br label %leave
leave:
  ret i32 0
}

define i32 @host_fcollectmem(ptr %launch, i32 %program, i32 %site, i32 %team, i64 %dest, i64 %source, i64 %bytes) nounwind {
entry:
  %r1 = call i32 @host_barrier(ptr %launch, i32 %program, i32 %site, i32 %team)
  %n = call i32 @host_n_pes(ptr %launch, i32 %program, i32 %site)
  br label %each
each:
  %pe = phi i32 [ 0, %entry ], [ %pe1, %pull ]
  %bad = call i1 @ended(ptr %launch)
  %more = icmp slt i32 %pe, %n
  %stop = xor i1 %more, true
  %out = or i1 %bad, %stop
  br i1 %out, label %done, label %pull
pull:
  %pe64 = zext i32 %pe to i64
  %off = mul i64 %pe64, %bytes
  %to = add i64 %dest, %off
  %r2 = call i32 @host_getmem(ptr %launch, i32 %program, i32 %site, i64 %to, i64 %source, i64 %bytes, i32 %pe)
  %pe1 = add i32 %pe, 1
  br label %each
done:
  br i1 %bad, label %leave, label %last
last:
  %r3 = call i32 @host_barrier(ptr %launch, i32 %program, i32 %site, i32 %team)
  br label %leave
leave:
  ret i32 0
}
