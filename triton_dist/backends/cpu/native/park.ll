; SPDX-License-Identifier: MIT
; Parking: where many programs of a grid wait, one of them looks at what all of them wait for.
;
; Thousands of threads that each sleep and look take all of the machine's time for looking, and one whose signal has come
; is not run for many milliseconds. So one waiter of the launch, the watcher, looks at the signals of the others, which
; sleep, and wakes those whose value has changed. When its own has changed it makes another one the watcher.
; A node lies on its owner's stack: {next, slot, size, seen, word, link to it, deadline}; whoever takes it off the list sets
; the word: 1 look again, 2 be the watcher.

define internal i64 @peek(i64 %slot, i64 %size) nounwind {
  %p = inttoptr i64 %slot to ptr
  switch i64 %size, label %eight [ i64 1, label %one  i64 2, label %two  i64 4, label %four ]
one:
  %v1 = load atomic i8, ptr %p acquire, align 1
  %w1 = zext i8 %v1 to i64
  ret i64 %w1
two:
  %v2 = load atomic i16, ptr %p acquire, align 2
  %w2 = zext i16 %v2 to i64
  ret i64 %w2
four:
  %v4 = load atomic i32, ptr %p acquire, align 4
  %w4 = zext i32 %v4 to i64
  ret i64 %w4
eight:
  %v8 = load atomic i64, ptr %p acquire, align 8
  ret i64 %v8
}

define internal i1 @changed(ptr %node) nounwind {
  %slotp = getelementptr i64, ptr %node, i64 1
  %slot = load i64, ptr %slotp
  %sizep = getelementptr i64, ptr %node, i64 2
  %size = load i64, ptr %sizep
  %seenp = getelementptr i64, ptr %node, i64 3
  %seen = load i64, ptr %seenp
  %now = call i64 @peek(i64 %slot, i64 %size)
  %bytes = sub i64 8, %size
  %bits = mul i64 %bytes, 8
  %difference = xor i64 %now, %seen
  ; What was seen may have been extended with its sign.
  %own = shl i64 %difference, %bits
  %yes = icmp ne i64 %own, 0
  ret i1 %yes
}

define internal void @rouse(ptr %node, i32 %word) nounwind {
  %wordp = getelementptr i64, ptr %node, i64 4
  store atomic i32 %word, ptr %wordp release, align 4
  call void @futex_wake(ptr %wordp)
  ret void
}

; Take a node off the list. The caller has the lock.
define internal void @unlink(ptr %node) nounwind {
  %next = load ptr, ptr %node
  %linkp = getelementptr i64, ptr %node, i64 5
  %link = load ptr, ptr %linkp
  store ptr %next, ptr %link
  %last = icmp eq ptr %next, null
  br i1 %last, label %leave, label %relink
relink:
  %backp = getelementptr i64, ptr %next, i64 5
  store ptr %link, ptr %backp
  br label %leave
leave:
  ret void
}

; Wake whoever's value has changed or deadline has passed, or everyone; returns how many.
define internal i64 @sweep(ptr %launch, i1 %everyone) nounwind {
entry:
  %lockp = getelementptr i8, ptr %launch, i64 ${launch.park_lock}
  %headp = getelementptr i8, ptr %launch, i64 ${launch.parked}
  %time = call i64 @td_now()
  call void @lock(ptr %lockp)
  %first = load ptr, ptr %headp
  br label %head
head:
  %node = phi ptr [ %first, %entry ], [ %next, %look ], [ %next, %wake ]
  %count = phi i64 [ 0, %entry ], [ %count, %look ], [ %count1, %wake ]
  %none = icmp eq ptr %node, null
  br i1 %none, label %end, label %look
look:
  ; Once roused, its owner may be gone, and the node with it.
  %next = load ptr, ptr %node
  %come = call i1 @changed(ptr %node)
  %deadlinep = getelementptr i64, ptr %node, i64 6
  %deadline = load i64, ptr %deadlinep
  %late = icmp sgt i64 %time, %deadline
  %due = or i1 %come, %late
  %now = or i1 %due, %everyone
  br i1 %now, label %wake, label %head
wake:
  call void @unlink(ptr %node)
  call void @rouse(ptr %node, i32 1)
  %count1 = add i64 %count, 1
  br label %head
end:
  call void @unlock(ptr %lockp)
  ret i64 %count
}

; Sleep until the value at %slot (of %size bytes) is no longer %seen, or the deadline has passed; the caller looks again.
define void @td_park(ptr %launch, i64 %slot, i64 %size, i64 %seen, i64 %deadline) nounwind {
entry:
  %node = alloca [7 x i64]
  %short = alloca [2 x i64]
  %long = alloca [2 x i64]
  store [2 x i64] [i64 0, i64 20000], ptr %short
  ; The watcher wakes who is due. This is for the case that it cannot.
  store [2 x i64] [i64 5, i64 0], ptr %long
  %slotp = getelementptr i64, ptr %node, i64 1
  store i64 %slot, ptr %slotp
  %sizep = getelementptr i64, ptr %node, i64 2
  store i64 %size, ptr %sizep
  %seenp = getelementptr i64, ptr %node, i64 3
  store i64 %seen, ptr %seenp
  %wordp = getelementptr i64, ptr %node, i64 4
  store i64 0, ptr %wordp
  %deadlinep = getelementptr i64, ptr %node, i64 6
  store i64 %deadline, ptr %deadlinep
  %lockp = getelementptr i8, ptr %launch, i64 ${launch.park_lock}
  %headp = getelementptr i8, ptr %launch, i64 ${launch.parked}
  %watchedp = getelementptr i8, ptr %launch, i64 ${launch.watched}
  %statusp = getelementptr i8, ptr %launch, i64 ${launch.status}
  call void @lock(ptr %lockp)
  %watched = load i64, ptr %watchedp
  %nobody = icmp eq i64 %watched, 0
  br i1 %nobody, label %begin, label %park
begin:
  store i64 1, ptr %watchedp
  call void @unlock(ptr %lockp)
  br label %watch
park:
  %first = load ptr, ptr %headp
  store ptr %first, ptr %node
  %linkp = getelementptr i64, ptr %node, i64 5
  store ptr %headp, ptr %linkp
  store ptr %node, ptr %headp
  %only = icmp eq ptr %first, null
  br i1 %only, label %asleep, label %relink
relink:
  %backp = getelementptr i64, ptr %first, i64 5
  store ptr %node, ptr %backp
  br label %asleep
asleep:
  call void @unlock(ptr %lockp)
  call void @futex_wait(ptr %wordp, i32 0, ptr %long)
  %word = load atomic i32, ptr %wordp acquire, align 4
  %called = icmp ne i32 %word, 0
  br i1 %called, label %woken, label %give_up
give_up:
  call void @lock(ptr %lockp)
  %late = load atomic i32, ptr %wordp acquire, align 4
  %still = icmp eq i32 %late, 0
  br i1 %still, label %out, label %free
out:
  call void @unlink(ptr %node)
  br label %free
free:
  call void @unlock(ptr %lockp)
  br label %woken
woken:
  %why = phi i32 [ %word, %asleep ], [ %late, %free ]
  %mine = icmp eq i32 %why, 2
  br i1 %mine, label %watch, label %leave
watch:
  ; Not for ever: the watcher has a deadline of its own to look at.
  br label %round
round:
  %i = phi i32 [ 0, %watch ], [ %i1, %again ]
  %status = load atomic i32, ptr %statusp acquire, align 4
  %ended = icmp ne i32 %status, 0
  br i1 %ended, label %end_all, label %own
own:
  %come = call i1 @changed(ptr %node)
  br i1 %come, label %hand_over, label %others
others:
  %roused = call i64 @sweep(ptr %launch, i1 false)
  %i1 = add i32 %i, 1
  %tired = icmp ugt i32 %i1, 300
  br i1 %tired, label %hand_over, label %rest
rest:
  ; Those that go on now may soon set what others wait for.
  %busy = icmp ne i64 %roused, 0
  br i1 %busy, label %yield, label %sleep
yield:
  %rc = call i32 @sched_yield()
  br label %again
sleep:
  %rc2 = call i32 @nanosleep(ptr %short, ptr null)
  br label %again
again:
  br label %round
end_all:
  call void @lock(ptr %lockp)
  store i64 0, ptr %watchedp
  call void @unlock(ptr %lockp)
  %all = call i64 @sweep(ptr %launch, i1 true)
  br label %leave
hand_over:
  call void @lock(ptr %lockp)
  %heir = load ptr, ptr %headp
  %alone = icmp eq ptr %heir, null
  br i1 %alone, label %close, label %pass
close:
  store i64 0, ptr %watchedp
  call void @unlock(ptr %lockp)
  br label %leave
pass:
  call void @unlink(ptr %heir)
  call void @rouse(ptr %heir, i32 2)
  call void @unlock(ptr %lockp)
  br label %leave
leave:
  ret void
}
