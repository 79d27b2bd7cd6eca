; SPDX-License-Identifier: MIT
; Puts and gets: the first engine that connects the two PEs, in the order SDMA, UDMA, MTE, ROCE. MTE copies at once.

; Whether a transfer stays inside the heap at its symmetric end, and in the bounds-checked mode inside the tensors of the
; launch at its local end. The device checks nothing. This PE's own end may lie outside the heap; then only a size that
; is negative, taken as signed, is too large. The largest size of all stands for what did not fit 32 bits.
define internal i1 @asc_fits(ptr %launch, i32 %program, i32 %site, i64 %symmetric, i64 %local, i64 %bytes, i32 %direction) nounwind {
  %heap = call i64 @asc_get(ptr %launch, i64 ${asc.heap_base})
  %size = call i64 @asc_get(ptr %launch, i64 ${asc.heap_size})
  %off = sub i64 %symmetric, %heap
  %inside = icmp ult i64 %off, %size
  %left = sub i64 %size, %off
  %limit = select i1 %inside, i64 %left, i64 2147483647
  %within = icmp ule i64 %bytes, %limit
  %counted = icmp ne i64 %bytes, 4294967295
  %short = and i1 %within, %counted
  br i1 %short, label %mode, label %long
long:
  call void @td_fault(ptr %launch, i64 ${fault_too_long}, i32 %program, i32 %site, i64 %symmetric, i64 %limit, i64 %bytes, i64 0)
  ret i1 false
mode:
  %rp = getelementptr i8, ptr %launch, i64 ${launch.ranges}
  %ranges = load ptr, ptr %rp
  %unchecked = icmp eq ptr %ranges, null
  %nothing = icmp eq i64 %bytes, 0
  %skip = or i1 %unchecked, %nothing
  br i1 %skip, label %good, label %check
check:
  %get = icmp eq i32 %direction, 1
  %put = xor i1 %get, true
  %a = call i64 @td_bounds(ptr %launch, i32 %program, i32 %site, i64 %local, i64 %bytes, i1 true, i1 %get)
  %b = call i64 @td_bounds(ptr %launch, i32 %program, i32 %site, i64 %symmetric, i64 %bytes, i1 true, i1 %put)
  %bad = call i1 @ended(ptr %launch)
  %ok = xor i1 %bad, true
  ret i1 %ok
good:
  ret i1 true
}

; One transfer by a queue. %direction 0 puts, 1 gets; %wait 1 ends with the engine's quiet.
define internal void @asc_by_queue(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 %direction, i32 %wait, i64 %config, i64 %table) nounwind {
  %get = icmp eq i32 %direction, 1
  %symmetric = select i1 %get, i64 %source, i64 %dest
  %remote = call i64 @asc_at(ptr %launch, i32 %program, i32 %site, i64 %symmetric, i32 %pe, i64 %table)
  %bad = icmp eq i64 %remote, 0
  br i1 %bad, label %leave, label %measure
measure:
  %local = select i1 %get, i64 %dest, i64 %source
  %fits = call i1 @asc_fits(ptr %launch, i32 %program, i32 %site, i64 %symmetric, i64 %local, i64 %bytes, i32 %direction)
  br i1 %fits, label %post, label %leave
post:
  %to = select i1 %get, i64 %dest, i64 %remote
  %from = select i1 %get, i64 %remote, i64 %source
  %address = call i64 @asc_get(ptr %launch, i64 %config)
  %q = inttoptr i64 %address to ptr
  %n = call i64 @asc_submit(ptr %launch, i32 %program, i32 %site, ptr %q, i64 0, i64 %to, i64 %from, i64 %bytes, i64 0)
  %blocking = icmp ne i32 %wait, 0
  br i1 %blocking, label %drain, label %leave
drain:
  call void @asc_drain(ptr %launch, i32 %program, i32 %site, ptr %q, i64 %n)
  br label %leave
leave:
  ret void
}

define internal void @asc_by_mte(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 %direction) nounwind {
  %get = icmp eq i32 %direction, 1
  %symmetric = select i1 %get, i64 %source, i64 %dest
  %remote = call i64 @asc_ptr(ptr %launch, i32 %program, i32 %site, i64 %symmetric, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %measure
measure:
  %local = select i1 %get, i64 %dest, i64 %source
  %fits = call i1 @asc_fits(ptr %launch, i32 %program, i32 %site, i64 %symmetric, i64 %local, i64 %bytes, i32 %direction)
  br i1 %fits, label %copy, label %leave
copy:
  %to = select i1 %get, i64 %dest, i64 %remote
  %from = select i1 %get, i64 %remote, i64 %source
  %d = inttoptr i64 %to to ptr
  %s = inttoptr i64 %from to ptr
  %r = call ptr @memmove(ptr %d, ptr %s, i64 %bytes)
  br label %leave
leave:
  ret void
}

define internal i32 @asc_transfer(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 %direction, i32 %wait) nounwind {
  %n = call i64 @asc_get(ptr %launch, i64 ${asc.npes})
  %pe64 = sext i32 %pe to i64
  %known = icmp ult i64 %pe64, %n
  br i1 %known, label %choose, label %bad_pe
bad_pe:
  call void @td_fault(ptr %launch, i64 3, i32 %program, i32 %site, i64 %dest, i64 %n, i64 %pe64, i64 0)
  ret i32 0
choose:
  %bits = call i64 @asc_topology(ptr %launch, i32 %pe)
  %s = and i64 %bits, ${sdma}
  %by_sdma = icmp ne i64 %s, 0
  br i1 %by_sdma, label %sdma, label %not_sdma
sdma:
  call void @asc_by_queue(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 %direction, i32 %wait, i64 ${asc.sdma_config}, i64 ${asc.sdma_device_heap_base})
  ret i32 0
not_sdma:
  %u = and i64 %bits, ${udma}
  %by_udma = icmp ne i64 %u, 0
  br i1 %by_udma, label %udma, label %not_udma
udma:
  call void @asc_by_queue(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 %direction, i32 %wait, i64 ${asc.udma_config}, i64 ${asc.rdma_device_heap_base})
  ret i32 0
not_udma:
  %m = and i64 %bits, ${mte}
  %by_mte = icmp ne i64 %m, 0
  br i1 %by_mte, label %mte, label %roce
mte:
  call void @asc_by_mte(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 %direction)
  ret i32 0
roce:
  call void @asc_by_queue(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 %direction, i32 %wait, i64 ${asc.rdma_config}, i64 ${asc.rdma_device_heap_base})
  ret i32 0
}

define i32 @asc_putmem(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe) nounwind {
  %r = call i32 @asc_transfer(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 0, i32 1)
  ret i32 0
}

define i32 @asc_putmem_nbi(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe) nounwind {
  %r = call i32 @asc_transfer(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 0, i32 0)
  ret i32 0
}

define i32 @asc_getmem(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe) nounwind {
  %r = call i32 @asc_transfer(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 1, i32 1)
  ret i32 0
}

define i32 @asc_getmem_nbi(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe) nounwind {
  %r = call i32 @asc_transfer(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 1, i32 0)
  ret i32 0
}

; Always by MTE, then the signal: the copy is done before it.
define i32 @asc_putmem_signal(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i64 %sig, i32 %value, i32 %op, i32 %pe) nounwind {
  call void @asc_by_mte(ptr %launch, i32 %program, i32 %site, i64 %dest, i64 %source, i64 %bytes, i32 %pe, i32 0)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %signal
signal:
  fence seq_cst
  %r = call i32 @asc_signal_op(ptr %launch, i32 %program, i32 %site, i64 %sig, i32 %value, i32 %op, i32 %pe)
  br label %leave
leave:
  ret i32 0
}
