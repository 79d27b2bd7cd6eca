; SPDX-License-Identifier: MIT
; The functions of ${t}, once for each type.

define i32 @host_signal_set_${t}(ptr %launch, i32 %program, i32 %site, i64 %sig, ${t} %value, i32 %pe) nounwind {
  %remote = call i64 @host_ptr(ptr %launch, i32 %program, i32 %site, i64 %sig, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %write
write:
  %r = call i32 @host_signal_here_set_${t}(ptr %launch, i32 %program, i32 %site, i64 %remote, ${t} %value)
  br label %leave
leave:
  ret i32 0
}

define i32 @host_signal_add_${t}(ptr %launch, i32 %program, i32 %site, i64 %sig, ${t} %value, i32 %pe) nounwind {
  %remote = call i64 @host_ptr(ptr %launch, i32 %program, i32 %site, i64 %sig, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %write
write:
  %r = call i32 @host_signal_here_add_${t}(ptr %launch, i32 %program, i32 %site, i64 %remote, ${t} %value)
  br label %leave
leave:
  ret i32 0
}

; At an address as it is, of whichever PE.
define i32 @host_signal_here_set_${t}(ptr %launch, i32 %program, i32 %site, i64 %sig, ${t} %value) nounwind {
  %begin = call i64 @td_now_if(ptr %launch)
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %sig, i64 ${size}, i1 true)
  br i1 %usable, label %write, label %leave
write:
  %p = inttoptr i64 %sig to ptr
  store atomic ${t} %value, ptr %p release, align ${size}
  call void @td_notified(ptr %launch, i32 %program, i32 %site, i64 %begin)
  br label %leave
leave:
  ret i32 0
}

define i32 @host_signal_here_add_${t}(ptr %launch, i32 %program, i32 %site, i64 %sig, ${t} %value) nounwind {
  %begin = call i64 @td_now_if(ptr %launch)
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %sig, i64 ${size}, i1 true)
  br i1 %usable, label %write, label %leave
write:
  %p = inttoptr i64 %sig to ptr
  %old = atomicrmw add ptr %p, ${t} %value acq_rel
  call void @td_notified(ptr %launch, i32 %program, i32 %site, i64 %begin)
  br label %leave
leave:
  ret i32 0
}

define ${t} @host_fetch_add_${t}(ptr %launch, i32 %program, i32 %site, i64 %dest, ${t} %value, i32 %pe) nounwind {
  %remote = call i64 @host_ptr(ptr %launch, i32 %program, i32 %site, i64 %dest, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %look
look:
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %remote, i64 ${size}, i1 true)
  br i1 %usable, label %write, label %leave
write:
  %p = inttoptr i64 %remote to ptr
  %old = atomicrmw add ptr %p, ${t} %value acq_rel
  ret ${t} %old
leave:
  ret ${t} 0
}

define i32 @host_p_${t}(ptr %launch, i32 %program, i32 %site, i64 %dest, ${t} %value, i32 %pe) nounwind {
  %remote = call i64 @host_ptr(ptr %launch, i32 %program, i32 %site, i64 %dest, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %look
look:
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %remote, i64 ${size}, i1 true)
  br i1 %usable, label %write, label %leave
write:
  %p = inttoptr i64 %remote to ptr
  store atomic ${t} %value, ptr %p monotonic, align ${size}
  br label %leave
leave:
  ret i32 0
}
