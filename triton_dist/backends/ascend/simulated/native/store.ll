; SPDX-License-Identifier: MIT
; One ${t} stored at a PE, with its write-back.

define i32 @asc_p_${t}(ptr %launch, i32 %program, i32 %site, i64 %dest, ${t} %value, i32 %pe) nounwind {
  %begin = call i64 @td_now_if(ptr %launch)
  %remote = call i64 @asc_ptr(ptr %launch, i32 %program, i32 %site, i64 %dest, i32 %pe)
  %bad = call i1 @ended(ptr %launch)
  br i1 %bad, label %leave, label %write
write:
  %p = inttoptr i64 %remote to ptr
  store atomic ${t} %value, ptr %p release, align ${size}
  call void @td_notified(ptr %launch, i32 %program, i32 %site, i64 %begin)
  br label %leave
leave:
  ret i32 0
}
