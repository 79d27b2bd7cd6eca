; SPDX-License-Identifier: MIT
; The six comparisons of a ${t} in memory with a value, in a loop; returns the value seen.

define internal i1 @asc_compare_${s}_${t}(i32 %cmp, ${t} %seen_bits, ${t} %value_bits) alwaysinline nounwind {
  %seen = ${seen_as}
  %value = ${value_as}
  switch i32 %cmp, label %eq [ i32 1, label %ne
                               i32 2, label %gt
                               i32 3, label %ge
                               i32 4, label %lt
                               i32 5, label %le ]
eq:
  %r0 = ${eq} %seen, %value
  ret i1 %r0
ne:
  %r1 = ${ne} %seen, %value
  ret i1 %r1
gt:
  %r2 = ${gt} %seen, %value
  ret i1 %r2
ge:
  %r3 = ${ge} %seen, %value
  ret i1 %r3
lt:
  %r4 = ${lt} %seen, %value
  ret i1 %r4
le:
  %r5 = ${le} %seen, %value
  ret i1 %r5
}

define internal ${t} @asc_spin_${s}_${t}(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %cmp, ${t} %value) nounwind {
entry:
  %patience = alloca [2 x i64]
  store [2 x i64] zeroinitializer, ptr %patience
  %p = inttoptr i64 %slot to ptr
  br label %poll
poll:
  %seen = load atomic ${t}, ptr %p acquire, align ${size}
  %ok = call i1 @asc_compare_${s}_${t}(i32 %cmp, ${t} %seen, ${t} %value)
  br i1 %ok, label %end, label %wait
wait:
  %expected64 = ${ext_value}
  %seen64 = ${ext_seen}
  %leave = call i32 @td_backoff(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %slot, i64 %expected64, i64 %seen64)
  %go = icmp eq i32 %leave, 0
  br i1 %go, label %poll, label %end
end:
  ret ${t} %seen
}

; An unknown comparison ends the kernel; the device's function would return at once.
define ${t} @asc_until_${s}_${t}(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %cmp, ${t} %value) nounwind {
  %begin = call i64 @td_now_if(ptr %launch)
  %known = icmp ult i32 %cmp, 6
  br i1 %known, label %spin, label %bad
bad:
  %cmp64 = sext i32 %cmp to i64
  call void @td_fault(ptr %launch, i64 ${fault_bad_cmp}, i32 %program, i32 %site, i64 %slot, i64 0, i64 %cmp64, i64 0)
  ret ${t} 0
spin:
  %seen = call ${t} @asc_spin_${s}_${t}(ptr %launch, i32 %program, i32 %site, i64 %slot, i32 %cmp, ${t} %value)
  call void @td_waited(ptr %launch, i32 %program, i32 %site, i64 %begin)
  ret ${t} %seen
}
