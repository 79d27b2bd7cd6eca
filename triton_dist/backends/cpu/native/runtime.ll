; SPDX-License-Identifier: MIT
; The host engine's native runtime: waiting, the worker pool, the grid loop, traces.
; Names with a dot in braces are byte offsets of fields of DeviceState, Fault and Launch.
;
; A worker is a native thread. A grid starts with as many as the PE has threads; whenever a program blocks while others
; have not started yet, one more worker starts, so that programs may wait for each other as on a device.

declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare i32 @nanosleep(ptr, ptr)
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare ptr @calloc(i64, i64)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @memmove(ptr, ptr, i64)

define i64 @td_now() nounwind {
  %t = alloca [2 x i64]
  %rc = call i32 @clock_gettime(i32 1, ptr %t)
  %s = load i64, ptr %t
  %np = getelementptr i64, ptr %t, i64 1
  %n = load i64, ptr %np
  %a = mul i64 %s, 1000000000
  %r = add i64 %a, %n
  ret i64 %r
}

define internal ptr @state_of(ptr %launch) alwaysinline nounwind {
  %p = getelementptr i8, ptr %launch, i64 ${launch.state}
  %s = load ptr, ptr %p
  ret ptr %s
}

; The first fault of a launch is kept; every program sees the status and leaves.
define void @td_fault(ptr %launch, i64 %code, i32 %program, i32 %site, i64 %slot, i64 %expected, i64 %seen, i64 %detail) nounwind {
  %state = call ptr @state_of(ptr %launch)
  %fp = getelementptr i8, ptr %state, i64 ${state.fault}
  %f = load ptr, ptr %fp
  %pair = cmpxchg ptr %f, i64 0, i64 %code acq_rel acquire
  %won = extractvalue {i64, i1} %pair, 1
  br i1 %won, label %fill, label %leave
fill:
  %mp = getelementptr i8, ptr %state, i64 ${state.my_pe}
  %me = load i64, ptr %mp
  %p1 = getelementptr i8, ptr %f, i64 ${fault.pe}
  store i64 %me, ptr %p1
  %p2 = getelementptr i8, ptr %f, i64 ${fault.program}
  %program64 = zext i32 %program to i64
  store i64 %program64, ptr %p2
  %p3 = getelementptr i8, ptr %f, i64 ${fault.site}
  %site64 = sext i32 %site to i64
  store i64 %site64, ptr %p3
  %p4 = getelementptr i8, ptr %f, i64 ${fault.slot}
  store i64 %slot, ptr %p4
  %p5 = getelementptr i8, ptr %f, i64 ${fault.expected}
  store i64 %expected, ptr %p5
  %p6 = getelementptr i8, ptr %f, i64 ${fault.seen}
  store i64 %seen, ptr %p6
  %p7 = getelementptr i8, ptr %f, i64 ${fault.detail}
  store i64 %detail, ptr %p7
  br label %leave
leave:
  %sp = getelementptr i8, ptr %launch, i64 ${launch.status}
  store atomic i32 1, ptr %sp release, align 4
  ret void
}

; Traces: {capacity, count, 6 words} then events of 8 words: kind, program, worker, site, start, end, launch, 0.
define void @td_trace(ptr %launch, i64 %kind, i32 %program, i64 %worker, i32 %site, i64 %start, i64 %end) nounwind {
  %state = call ptr @state_of(ptr %launch)
  %tp = getelementptr i8, ptr %state, i64 ${state.trace}
  %t = load ptr, ptr %tp
  %none = icmp eq ptr %t, null
  br i1 %none, label %leave, label %claim
claim:
  %cap = load i64, ptr %t
  %cp = getelementptr i64, ptr %t, i64 1
  %at = atomicrmw add ptr %cp, i64 1 monotonic
  %room = icmp slt i64 %at, %cap
  br i1 %room, label %write, label %leave
write:
  %first = getelementptr i64, ptr %t, i64 8
  %word = mul i64 %at, 8
  %e = getelementptr i64, ptr %first, i64 %word
  store i64 %kind, ptr %e
  %e1 = getelementptr i64, ptr %e, i64 1
  %program64 = zext i32 %program to i64
  store i64 %program64, ptr %e1
  %e2 = getelementptr i64, ptr %e, i64 2
  store i64 %worker, ptr %e2
  %e3 = getelementptr i64, ptr %e, i64 3
  %site64 = sext i32 %site to i64
  store i64 %site64, ptr %e3
  %e4 = getelementptr i64, ptr %e, i64 4
  store i64 %start, ptr %e4
  %e5 = getelementptr i64, ptr %e, i64 5
  store i64 %end, ptr %e5
  %e6 = getelementptr i64, ptr %e, i64 6
  %ip = getelementptr i8, ptr %launch, i64 ${launch.id}
  %id = load i64, ptr %ip
  store i64 %id, ptr %e6
  br label %leave
leave:
  ret void
}

define internal i1 @tracing(ptr %launch) alwaysinline nounwind {
  %state = call ptr @state_of(ptr %launch)
  %tp = getelementptr i8, ptr %state, i64 ${state.trace}
  %t = load i64, ptr %tp
  %on = icmp ne i64 %t, 0
  ret i1 %on
}

; Back-off of everything that waits: spin, then yield, then sleep, which leaves a shared core to those who compute. %patience is {rounds so far, start time}. Returns 1 if the program must leave.
; What is waited for lies at %at, in %size bytes (0: not known); where many wait, the program is parked.
define i32 @td_backoff_at(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %slot, i64 %expected, i64 %seen, i64 %at, i64 %size) noinline nounwind {
  %old = load i64, ptr %patience
  %n = add i64 %old, 1
  store i64 %n, ptr %patience
  %early = icmp ult i64 %n, 128
  br i1 %early, label %spin, label %late
spin:
  ${pause}
  ret i32 0
late:
  %tp = getelementptr i64, ptr %patience, i64 1
  %firsttime = icmp eq i64 %n, 128
  br i1 %firsttime, label %note, label %yield
note:
  %now0 = call i64 @td_now()
  store i64 %now0, ptr %tp
  call void @td_blocked(ptr %launch)
  br label %yield
yield:
  %rc = call i32 @sched_yield()
  %long = icmp ugt i64 %n, 512
  br i1 %long, label %sleep, label %sometimes
sleep:
  %wp = getelementptr i8, ptr %launch, i64 ${launch.workers}
  %workers = load atomic i64, ptr %wp monotonic, align 8
  %many = icmp ugt i64 %workers, ${crowd}
  %known = icmp ne i64 %size, 0
  %crowded = and i1 %many, %known
  br i1 %crowded, label %park, label %nap
park:
  %since = load i64, ptr %tp
  %pstate = call ptr @state_of(ptr %launch)
  %plp = getelementptr i8, ptr %pstate, i64 ${state.timeout_ns}
  %plimit = load i64, ptr %plp
  %ever = icmp eq i64 %plimit, 0
  %until = add i64 %since, %plimit
  %by = select i1 %ever, i64 9223372036854775807, i64 %until
  call void @td_park(ptr %launch, i64 %at, i64 %size, i64 %seen, i64 %by)
  br label %check
nap:
  %ts = alloca [2 x i64]
  store [2 x i64] [i64 0, i64 50000], ptr %ts
  %rc2 = call i32 @nanosleep(ptr %ts, ptr null)
  br label %check
sometimes:
  %low = and i64 %n, 63
  %due = icmp eq i64 %low, 0
  br i1 %due, label %check, label %go
check:
  %sp = getelementptr i8, ptr %launch, i64 ${launch.status}
  %status = load atomic i32, ptr %sp acquire, align 4
  %ended = icmp ne i32 %status, 0
  br i1 %ended, label %leave, label %abort
abort:
  %state = call ptr @state_of(ptr %launch)
  %ap = getelementptr i8, ptr %state, i64 ${state.abort}
  %aw = load ptr, ptr %ap
  %word = load atomic i64, ptr %aw acquire, align 8
  %aborted = icmp ne i64 %word, 0
  br i1 %aborted, label %give_up, label %deadline
give_up:
  call void @td_fault(ptr %launch, i64 2, i32 %program, i32 %site, i64 %slot, i64 %expected, i64 %seen, i64 %word)
  br label %leave
deadline:
  %lp = getelementptr i8, ptr %state, i64 ${state.timeout_ns}
  %limit = load i64, ptr %lp
  %endless = icmp eq i64 %limit, 0
  br i1 %endless, label %go, label %clock
clock:
  %start = load i64, ptr %tp
  %now = call i64 @td_now()
  %spent = sub i64 %now, %start
  %over = icmp sgt i64 %spent, %limit
  br i1 %over, label %timeout, label %go
timeout:
  call void @td_fault(ptr %launch, i64 1, i32 %program, i32 %site, i64 %slot, i64 %expected, i64 %seen, i64 %spent)
  br label %leave
leave:
  ret i32 1
go:
  ret i32 0
}

define i32 @td_backoff(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %slot, i64 %expected, i64 %seen) nounwind {
  %r = call i32 @td_backoff_at(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %slot, i64 %expected, i64 %seen, i64 0, i64 0)
  ret i32 %r
}

; A loop of the user's own that polls memory: at %at, in %size bytes, or if that is 0, somewhere.
define i32 @td_relax(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 %at, i64 %size, i64 %seen) nounwind {
  %r = call i32 @td_backoff_at(ptr %launch, i32 %program, i32 %site, ptr %patience, i64 0, i64 0, i64 %seen, i64 %at, i64 %size)
  ret i32 %r
}

; The pool. Pool: {i32 lock, ptr idle, i64 count}. Worker: {i32 word, ptr job, ptr arena, i64 arena_size, ptr next, ptr pool, i64 index}.
; A worker's word: 0 idle, 2 at work, odd: it has the launch of this ticket, and has not begun.

define internal i32 @ticket(ptr %launch) alwaysinline nounwind {
  %ip = getelementptr i8, ptr %launch, i64 ${launch.id}
  %id = load i64, ptr %ip
  %id32 = trunc i64 %id to i32
  %up = shl i32 %id32, 1
  %odd = or i32 %up, 1
  ret i32 %odd
}

define internal void @to_idle(ptr %pool, ptr %w) nounwind {
  %idlep = getelementptr i8, ptr %pool, i64 8
  %nextp = getelementptr i8, ptr %w, i64 32
  call void @lock(ptr %pool)
  %head = load ptr, ptr %idlep
  store ptr %head, ptr %nextp
  store ptr %w, ptr %idlep
  call void @unlock(ptr %pool)
  ret void
}

define internal void @lock(ptr %l) nounwind {
entry:
  br label %try
try:
  %was = atomicrmw xchg ptr %l, i32 1 acquire
  %free = icmp eq i32 %was, 0
  br i1 %free, label %got, label %wait
wait:
  %rc = call i32 @sched_yield()
  br label %try
got:
  ret void
}

define internal void @unlock(ptr %l) nounwind {
  store atomic i32 0, ptr %l release, align 4
  ret void
}

define internal void @futex_wake(ptr %p) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 ${futex}, ptr %p, i32 129, i32 2147483647, ptr null, ptr null, i32 0)
  ret void
}

define internal void @futex_wait(ptr %p, i32 %value, ptr %timeout) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 ${futex}, ptr %p, i32 128, i32 %value, ptr %timeout, ptr null, i32 0)
  ret void
}

; The worker that was given the launch, or null if the system has no more threads.
define ptr @td_start_worker(ptr %launch) nounwind {
entry:
  %pp = getelementptr i8, ptr %launch, i64 ${launch.pool}
  %pool = load ptr, ptr %pp
  %idlep = getelementptr i8, ptr %pool, i64 8
  call void @lock(ptr %pool)
  %idle = load ptr, ptr %idlep
  %none = icmp eq ptr %idle, null
  br i1 %none, label %create, label %reuse
reuse:
  %np = getelementptr i8, ptr %idle, i64 32
  %next = load ptr, ptr %np
  store ptr %next, ptr %idlep
  call void @unlock(ptr %pool)
  br label %give
create:
  call void @unlock(ptr %pool)
  %fresh = call ptr @calloc(i64 1, i64 64)
  %fpool = getelementptr i8, ptr %fresh, i64 40
  store ptr %pool, ptr %fpool
  %tid = alloca i64
  %rc = call i32 @pthread_create(ptr %tid, ptr null, ptr @td_worker_main, ptr %fresh)
  %ok = icmp eq i32 %rc, 0
  br i1 %ok, label %created, label %failed
failed:
  call void @free(ptr %fresh)
  ret ptr null
created:
  %t = load i64, ptr %tid
  %rc2 = call i32 @pthread_detach(i64 %t)
  br label %give
give:
  %w = phi ptr [ %idle, %reuse ], [ %fresh, %created ]
  %wp = getelementptr i8, ptr %launch, i64 ${launch.workers}
  %index = atomicrmw add ptr %wp, i64 1 monotonic
  %ip = getelementptr i8, ptr %w, i64 48
  store i64 %index, ptr %ip
  %ap = getelementptr i8, ptr %launch, i64 ${launch.active}
  %a = atomicrmw add ptr %ap, i64 1 acq_rel
  %jp = getelementptr i8, ptr %w, i64 8
  store ptr %launch, ptr %jp
  %ticket = call i32 @ticket(ptr %launch)
  store atomic i32 %ticket, ptr %w release, align 4
  call void @futex_wake(ptr %w)
  ret ptr %w
}

; Take the launch back from a worker that has not begun: the system may not let it run for a long time.
define internal void @recall(ptr %launch, ptr %w) nounwind {
entry:
  %ticket = call i32 @ticket(ptr %launch)
  %pair = cmpxchg ptr %w, i32 %ticket, i32 0 acq_rel acquire
  %unbegun = extractvalue {i32, i1} %pair, 1
  br i1 %unbegun, label %back, label %leave
back:
  %pp = getelementptr i8, ptr %launch, i64 ${launch.pool}
  %pool = load ptr, ptr %pp
  call void @to_idle(ptr %pool, ptr %w)
  %ap = getelementptr i8, ptr %launch, i64 ${launch.active}
  %a = atomicrmw sub ptr %ap, i64 1 acq_rel
  br label %leave
leave:
  ret void
}

define ptr @td_worker_main(ptr %w) nounwind {
entry:
  %jp = getelementptr i8, ptr %w, i64 8
  %arenap = getelementptr i8, ptr %w, i64 16
  %sizep = getelementptr i8, ptr %w, i64 24
  %poolp = getelementptr i8, ptr %w, i64 40
  %indexp = getelementptr i8, ptr %w, i64 48
  %pool = load ptr, ptr %poolp
  br label %rest
rest:
  br label %spin
spin:
  %i = phi i32 [ 0, %rest ], [ %i2, %again ]
  %word = load atomic i32, ptr %w acquire, align 4
  %odd = and i32 %word, 1
  %due = icmp eq i32 %odd, 1
  br i1 %due, label %claim, label %idle
claim:
  %pair = cmpxchg ptr %w, i32 %word, i32 2 acq_rel acquire
  %mine = extractvalue {i32, i1} %pair, 1
  br i1 %mine, label %job, label %again
idle:
  %i1 = add i32 %i, 1
  %tired = icmp ugt i32 %i1, 1500
  br i1 %tired, label %sleep, label %pausing
pausing:
  ${pause}
  br label %again
sleep:
  call void @futex_wait(ptr %w, i32 0, ptr null)
  br label %again
again:
  %i2 = phi i32 [ %i1, %pausing ], [ %i1, %sleep ], [ %i, %claim ]
  br label %spin
job:
  %launch = load ptr, ptr %jp
  %needp = getelementptr i8, ptr %launch, i64 ${launch.arena_size}
  %need = load i64, ptr %needp
  %have = load i64, ptr %sizep
  %small = icmp ult i64 %have, %need
  br i1 %small, label %grow, label %work
grow:
  %oldarena = load ptr, ptr %arenap
  call void @free(ptr %oldarena)
  %newarena = call ptr @aligned_alloc(i64 4096, i64 %need)
  store ptr %newarena, ptr %arenap
  store i64 %need, ptr %sizep
  br label %work
work:
  %arena = load ptr, ptr %arenap
  %index = load i64, ptr %indexp
  call void @td_work(ptr %launch, ptr %arena, i64 %index)
  store atomic i32 0, ptr %w release, align 4
  call void @to_idle(ptr %pool, ptr %w)
  %activep = getelementptr i8, ptr %launch, i64 ${launch.active}
  %before = atomicrmw sub ptr %activep, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %wake, label %rest
wake:
  call void @futex_wake(ptr %activep)
  br label %rest
}

; A program has blocked: programs that have not started yet may be what it waits for.
define void @td_blocked(ptr %launch) nounwind {
  %cp = getelementptr i8, ptr %launch, i64 ${launch.counter}
  %next = load atomic i64, ptr %cp monotonic, align 8
  %tp = getelementptr i8, ptr %launch, i64 ${launch.total}
  %total = load i64, ptr %tp
  %some = icmp slt i64 %next, %total
  br i1 %some, label %start, label %leave
start:
  %w = call ptr @td_start_worker(ptr %launch)
  br label %leave
leave:
  ret void
}

; Take programs until none is left.
define void @td_work(ptr %launch, ptr %arena, i64 %worker) nounwind {
entry:
  %cp = getelementptr i8, ptr %launch, i64 ${launch.counter}
  %tp = getelementptr i8, ptr %launch, i64 ${launch.total}
  %total = load i64, ptr %tp
  %kp = getelementptr i8, ptr %launch, i64 ${launch.chunk}
  %chunk = load i64, ptr %kp
  %fp = getelementptr i8, ptr %launch, i64 ${launch.function}
  %fn = load ptr, ptr %fp
  %argp = getelementptr i8, ptr %launch, i64 ${launch.args}
  %args = load ptr, ptr %argp
  %gxp = getelementptr i8, ptr %launch, i64 ${launch.grid_x}
  %gx = load i32, ptr %gxp
  %gyp = getelementptr i8, ptr %launch, i64 ${launch.grid_y}
  %gy = load i32, ptr %gyp
  %sp = getelementptr i8, ptr %launch, i64 ${launch.status}
  %trace = call i1 @tracing(ptr %launch)
  br label %take
take:
  %from = atomicrmw add ptr %cp, i64 %chunk monotonic
  %empty = icmp sge i64 %from, %total
  br i1 %empty, label %leave, label %some
some:
  %upto = add i64 %from, %chunk
  %fits = icmp slt i64 %upto, %total
  %end = select i1 %fits, i64 %upto, i64 %total
  %from32 = trunc i64 %from to i32
  %x0 = urem i32 %from32, %gx
  %rows0 = udiv i32 %from32, %gx
  %y0 = urem i32 %rows0, %gy
  %z0 = udiv i32 %rows0, %gy
  br label %each
each:
  %p = phi i64 [ %from, %some ], [ %p1, %next ]
  %x = phi i32 [ %x0, %some ], [ %x1, %next ]
  %y = phi i32 [ %y0, %some ], [ %y1, %next ]
  %z = phi i32 [ %z0, %some ], [ %z1, %next ]
  %p32 = trunc i64 %p to i32
  ; As many as are left of this row of the grid; one by one where each is timed.
  %left = sub i64 %end, %p
  %room32 = sub i32 %gx, %x
  %room = zext i32 %room32 to i64
  %few = icmp slt i64 %left, %room
  %most = select i1 %few, i64 %left, i64 %room
  %count = select i1 %trace, i64 1, i64 %most
  %count32 = trunc i64 %count to i32
  br i1 %trace, label %timed, label %plain
plain:
  %rc1 = call i32 %fn(ptr %args, i32 %x, i32 %y, i32 %z, ptr %launch, ptr %arena, i32 %count32)
  br label %ran
timed:
  %t0 = call i64 @td_now()
  %rc2 = call i32 %fn(ptr %args, i32 %x, i32 %y, i32 %z, ptr %launch, ptr %arena, i32 %count32)
  %t1 = call i64 @td_now()
  call void @td_trace(ptr %launch, i64 0, i32 %p32, i64 %worker, i32 -1, i64 %t0, i64 %t1)
  br label %ran
ran:
  %rc = phi i32 [ %rc1, %plain ], [ %rc2, %timed ]
  %bad = icmp ne i32 %rc, 0
  br i1 %bad, label %leave, label %next
next:
  %p1 = add i64 %p, %count
  ; Counted on: dividing takes as long as a small program.
  %xn = add i32 %x, %count32
  %wrapx = icmp eq i32 %xn, %gx
  %x1 = select i1 %wrapx, i32 0, i32 %xn
  %carry = zext i1 %wrapx to i32
  %yn = add i32 %y, %carry
  %wrapy = icmp eq i32 %yn, %gy
  %y1 = select i1 %wrapy, i32 0, i32 %yn
  %carryy = zext i1 %wrapy to i32
  %z1 = add i32 %z, %carryy
  %more = icmp slt i64 %p1, %end
  br i1 %more, label %each, label %look
look:
  %mine = icmp eq i64 %worker, 0
  br i1 %mine, label %asked, label %on
asked:
  call void @ask(ptr %launch)
  br label %on
on:
  %status = load atomic i32, ptr %sp monotonic, align 4
  %ended = icmp ne i32 %status, 0
  br i1 %ended, label %leave, label %take
leave:
  ret void
}

; By the caller's own thread: whether it wants to go on, every 50 ms. It may have been told to stop meanwhile (Ctrl-C).
define internal void @ask(ptr %launch) nounwind {
entry:
  %fp = getelementptr i8, ptr %launch, i64 ${launch.ask}
  %fn = load ptr, ptr %fp
  %nobody = icmp eq ptr %fn, null
  br i1 %nobody, label %leave, label %going
going:
  ; Once it ends there is nothing to ask: a second answer would be left for the next launch.
  %sp = getelementptr i8, ptr %launch, i64 ${launch.status}
  %status = load atomic i32, ptr %sp monotonic, align 4
  %ended = icmp ne i32 %status, 0
  br i1 %ended, label %leave, label %time
time:
  %now = call i64 @td_now()
  %ap = getelementptr i8, ptr %launch, i64 ${launch.asked}
  %last = load i64, ptr %ap
  %since = sub i64 %now, %last
  %due = icmp sgt i64 %since, 50000000
  br i1 %due, label %ask, label %leave
ask:
  store i64 %now, ptr %ap
  %stop = call i32 %fn()
  %ends = icmp ne i32 %stop, 0
  br i1 %ends, label %end, label %leave
end:
  store atomic i32 1, ptr %sp monotonic, align 4
  br label %leave
leave:
  ret void
}

; Run a grid with %n workers, the caller being one of them; returns the launch's status.
define i32 @td_launch(ptr %launch, ptr %arena, i64 %n) nounwind {
entry:
  %given = alloca [64 x ptr]
  %wp = getelementptr i8, ptr %launch, i64 ${launch.workers}
  store i64 1, ptr %wp
  %began = call i64 @td_now()
  %askp = getelementptr i8, ptr %launch, i64 ${launch.asked}
  store i64 %began, ptr %askp
  br label %head
head:
  %i = phi i64 [ 1, %entry ], [ %i1, %start ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %start, label %own
start:
  %w = call ptr @td_start_worker(ptr %launch)
  %at = and i64 %i, 63
  %slot = getelementptr ptr, ptr %given, i64 %at
  store ptr %w, ptr %slot
  %i1 = add i64 %i, 1
  br label %head
own:
  call void @td_work(ptr %launch, ptr %arena, i64 0)
  %few = icmp slt i64 %n, 64
  %upto = select i1 %few, i64 %n, i64 64
  br label %each
each:
  %j = phi i64 [ 1, %own ], [ %j1, %next ]
  %left = icmp slt i64 %j, %upto
  br i1 %left, label %look, label %join
look:
  %gp = getelementptr ptr, ptr %given, i64 %j
  %g = load ptr, ptr %gp
  %none = icmp eq ptr %g, null
  br i1 %none, label %next, label %take_back
take_back:
  call void @recall(ptr %launch, ptr %g)
  br label %next
next:
  %j1 = add i64 %j, 1
  br label %each
join:
  %done = call i32 @td_join(ptr %launch, i64 50000000)
  %yes = icmp eq i32 %done, 1
  br i1 %yes, label %leave, label %still
still:
  call void @ask(ptr %launch)
  br label %join
leave:
  %sp = getelementptr i8, ptr %launch, i64 ${launch.status}
  %status = load i32, ptr %sp
  ret i32 %status
}

; Start a grid on %n workers and return how many there are (fewer if the system gives no more threads); td_join waits.
define i32 @td_start(ptr %launch, i64 %n) nounwind {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %start ]
  %count = phi i32 [ 0, %entry ], [ %count1, %start ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %start, label %leave
start:
  %w = call ptr @td_start_worker(ptr %launch)
  %some = icmp ne ptr %w, null
  %ok = zext i1 %some to i32
  %count1 = add i32 %count, %ok
  %i1 = add i64 %i, 1
  br label %head
leave:
  ret i32 %count
}

; 1 if no worker is at the launch any more, 0 if that has not come within %ns nanoseconds (a spurious wake counts as that).
define i32 @td_join(ptr %launch, i64 %ns) nounwind {
entry:
  %ap = getelementptr i8, ptr %launch, i64 ${launch.active}
  br label %spin
spin:
  %i = phi i32 [ 0, %entry ], [ %i1, %on ]
  %a = load atomic i64, ptr %ap acquire, align 8
  %none = icmp eq i64 %a, 0
  br i1 %none, label %done, label %more
more:
  %i1 = add i32 %i, 1
  %tired = icmp ugt i32 %i1, 1500
  br i1 %tired, label %sleep, label %on
on:
  ${pause}
  br label %spin
sleep:
  %ts = alloca [2 x i64]
  %s = udiv i64 %ns, 1000000000
  %n = urem i64 %ns, 1000000000
  store i64 %s, ptr %ts
  %np = getelementptr i64, ptr %ts, i64 1
  store i64 %n, ptr %np
  %a32 = trunc i64 %a to i32
  call void @futex_wait(ptr %ap, i32 %a32, ptr %ts)
  %b = load atomic i64, ptr %ap acquire, align 8
  %none2 = icmp eq i64 %b, 0
  br i1 %none2, label %done, label %not
done:
  ret i32 1
not:
  ret i32 0
}

; The bounds-checked mode. Returns the address, or if it lies in no tensor of the launch and in no PE's heap, a spare one.
define i64 @td_bounds(ptr %launch, i32 %program, i32 %site, i64 %address, i64 %size, i1 %active, i1 %write) nounwind {
entry:
  br i1 %active, label %look, label %good
look:
  %end = add i64 %address, %size
  %wraps = icmp ult i64 %end, %address
  br i1 %wraps, label %bad, label %whole
whole:
  %rp = getelementptr i8, ptr %launch, i64 ${launch.ranges}
  %ranges = load ptr, ptr %rp
  %np = getelementptr i8, ptr %launch, i64 ${launch.range_count}
  %n = load i64, ptr %np
  br label %each
each:
  %i = phi i64 [ 0, %whole ], [ %i1, %next ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %compare, label %heap
compare:
  %at = mul i64 %i, 2
  %firstp = getelementptr i64, ptr %ranges, i64 %at
  %first = load i64, ptr %firstp
  %lastp = getelementptr i64, ptr %firstp, i64 1
  %last = load i64, ptr %lastp
  %above = icmp uge i64 %address, %first
  %below = icmp ule i64 %end, %last
  %inside = and i1 %above, %below
  br i1 %inside, label %good, label %next
next:
  %i1 = add i64 %i, 1
  br label %each
heap:
  %state = call ptr @state_of(ptr %launch)
  %sizep = getelementptr i8, ptr %state, i64 ${state.heap_size}
  %heap_size = load i64, ptr %sizep
  %pesp = getelementptr i8, ptr %state, i64 ${state.n_pes}
  %pes = load i64, ptr %pesp
  %bp = getelementptr i8, ptr %state, i64 ${state.peer_base}
  %bases = load ptr, ptr %bp
  br label %each_pe
each_pe:
  %pe = phi i64 [ 0, %heap ], [ %pe1, %next_pe ]
  %more_pe = icmp slt i64 %pe, %pes
  br i1 %more_pe, label %compare_pe, label %bad
compare_pe:
  %slot = getelementptr i64, ptr %bases, i64 %pe
  %base = load i64, ptr %slot
  %past = add i64 %base, %heap_size
  %above_pe = icmp uge i64 %address, %base
  %below_pe = icmp ule i64 %end, %past
  %inside_pe = and i1 %above_pe, %below_pe
  br i1 %inside_pe, label %good, label %next_pe
next_pe:
  %pe1 = add i64 %pe, 1
  br label %each_pe
bad:
  %write64 = zext i1 %write to i64
  call void @td_fault(ptr %launch, i64 8, i32 %program, i32 %site, i64 %address, i64 %size, i64 %write64, i64 0)
  %sparep = getelementptr i8, ptr %launch, i64 ${launch.spare}
  %spare = ptrtoint ptr %sparep to i64
  ret i64 %spare
good:
  ret i64 %address
}

; Times of a wait or a notify, if a trace is being taken.
define i64 @td_now_if(ptr %launch) nounwind {
  %trace = call i1 @tracing(ptr %launch)
  br i1 %trace, label %yes, label %no
yes:
  %t = call i64 @td_now()
  ret i64 %t
no:
  ret i64 0
}

define void @td_waited(ptr %launch, i32 %program, i32 %site, i64 %begin) nounwind {
  %none = icmp eq i64 %begin, 0
  br i1 %none, label %leave, label %record
record:
  %now = call i64 @td_now()
  call void @td_trace(ptr %launch, i64 1, i32 %program, i64 -1, i32 %site, i64 %begin, i64 %now)
  br label %leave
leave:
  ret void
}

define void @td_notified(ptr %launch, i32 %program, i32 %site, i64 %begin) nounwind {
  %none = icmp eq i64 %begin, 0
  br i1 %none, label %leave, label %record
record:
  %now = call i64 @td_now()
  call void @td_trace(ptr %launch, i64 2, i32 %program, i64 -1, i32 %site, i64 %begin, i64 %now)
  br label %leave
leave:
  ret void
}
