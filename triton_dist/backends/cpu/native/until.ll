; SPDX-License-Identifier: MIT
; Waits on one ${t} until `value seen` ${compare} `value` holds; returns the value seen.

define ${t} @host_until_${name}_${t}(ptr %launch, i32 %program, i32 %site, i64 %slot, ${t} %value) nounwind {
entry:
  %patience = alloca [2 x i64]
  store [2 x i64] zeroinitializer, ptr %patience
  %begin = call i64 @td_now_if(ptr %launch)
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %slot, i64 ${size}, i1 false)
  br i1 %usable, label %looks, label %none
none:
  ret ${t} 0
looks:
  %p = inttoptr i64 %slot to ptr
  br label %poll
poll:
  %seen = load atomic ${t}, ptr %p acquire, align ${size}
  %ok = icmp ${compare} ${t} %seen, %value
  br i1 %ok, label %end, label %wait
wait:
  %expected64 = ${ext_value}
  %seen64 = ${ext_seen}
  %leave = call i32 @td_backoff_at(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %slot, i64 %expected64, i64 %seen64, i64 %slot, i64 ${size})
  %go = icmp eq i32 %leave, 0
  br i1 %go, label %poll, label %end
end:
  call void @td_waited(ptr %launch, i32 %program, i32 %site, i64 %begin)
  ret ${t} %seen
}
