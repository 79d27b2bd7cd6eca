; SPDX-License-Identifier: MIT
; The simulated template library: the device state, addresses, and who this PE is.
; Every function takes (launch, program, site) before its own operands; pointers are i64 addresses.
; asc.x, team.x, queue.x, entry.x and core.x are byte offsets of fields (simulated/state.py).

define internal ptr @asc_state(ptr %launch) alwaysinline nounwind {
  %state = call ptr @state_of(ptr %launch)
  %p = getelementptr i8, ptr %state, i64 ${state.vendor}
  %s = load ptr, ptr %p
  ret ptr %s
}

define internal i64 @asc_get(ptr %launch, i64 %offset) alwaysinline nounwind {
  %s = call ptr @asc_state(ptr %launch)
  %p = getelementptr i8, ptr %s, i64 %offset
  %v = load i64, ptr %p
  ret i64 %v
}

; The team's record, or null.
define internal ptr @asc_team(ptr %launch, i32 %team) nounwind {
  %known = icmp ult i32 %team, ${most_teams}
  br i1 %known, label %look, label %none
look:
  %pools = call i64 @asc_get(ptr %launch, i64 ${asc.team_pools})
  %t64 = zext i32 %team to i64
  %off = mul i64 %t64, 8
  %at = add i64 %pools, %off
  %p = inttoptr i64 %at to ptr
  %t = load ptr, ptr %p
  ret ptr %t
none:
  ret ptr null
}

define internal i32 @asc_team_field(ptr %launch, i32 %team, i64 %offset) nounwind {
  %t = call ptr @asc_team(ptr %launch, i32 %team)
  %none = icmp eq ptr %t, null
  br i1 %none, label %invalid, label %read
invalid:
  ret i32 -1
read:
  %p = getelementptr i8, ptr %t, i64 %offset
  %v = load i64, ptr %p
  %r = trunc i64 %v to i32
  ret i32 %r
}

define i32 @asc_team_my_pe(ptr %launch, i32 %program, i32 %site, i32 %team) nounwind {
  %r = call i32 @asc_team_field(ptr %launch, i32 %team, i64 ${team.my_pe})
  ret i32 %r
}

define i32 @asc_team_n_pes(ptr %launch, i32 %program, i32 %site, i32 %team) nounwind {
  %r = call i32 @asc_team_field(ptr %launch, i32 %team, i64 ${team.size})
  ret i32 %r
}

; As on the device, these are the world team's.
define i32 @asc_my_pe(ptr %launch, i32 %program, i32 %site) nounwind {
  %r = call i32 @asc_team_field(ptr %launch, i32 0, i64 ${team.my_pe})
  ret i32 %r
}

define i32 @asc_n_pes(ptr %launch, i32 %program, i32 %site) nounwind {
  %r = call i32 @asc_team_field(ptr %launch, i32 0, i64 ${team.size})
  ret i32 %r
}

; The world's number of a member, then the reverse half of the other team's mapping.
define i32 @asc_team_translate_pe(ptr %launch, i32 %program, i32 %site, i32 %from, i32 %pe, i32 %to) nounwind {
  %size = call i32 @asc_team_field(ptr %launch, i32 %from, i64 ${team.size})
  %positive = icmp sgt i32 %size, 0
  %inside = icmp ult i32 %pe, %size
  %ok = and i1 %positive, %inside
  br i1 %ok, label %other, label %bad
other:
  %b = call ptr @asc_team(ptr %launch, i32 %to)
  %none = icmp eq ptr %b, null
  br i1 %none, label %bad, label %map
map:
  %a = call ptr @asc_team(ptr %launch, i32 %from)
  %ap = getelementptr i8, ptr %a, i64 ${team.pe_mapping}
  %am = load ptr, ptr %ap
  %slot = getelementptr i32, ptr %am, i32 %pe
  %world = load i32, ptr %slot
  %bp = getelementptr i8, ptr %b, i64 ${team.pe_mapping}
  %bm = load ptr, ptr %bp
  %n = call i64 @asc_get(ptr %launch, i64 ${asc.npes})
  %n32 = trunc i64 %n to i32
  %at = add i32 %n32, %world
  %rp = getelementptr i32, ptr %bm, i32 %at
  %r = load i32, ptr %rp
  ret i32 %r
bad:
  ret i32 -1
}

define internal i64 @asc_topology(ptr %launch, i32 %pe) nounwind {
  %list = call i64 @asc_get(ptr %launch, i64 ${asc.topo_list})
  %p = inttoptr i64 %list to ptr
  %q = getelementptr i8, ptr %p, i32 %pe
  %bits = load i8, ptr %q
  %r = zext i8 %bits to i64
  ret i64 %r
}

; Offset in the own heap plus the base that a table gives for the PE; 0 if the table has none. The device checks nothing;
; here a PE that is none and an address outside the heap end the kernel.
define internal i64 @asc_at(ptr %launch, i32 %program, i32 %site, i64 %p, i32 %pe, i64 %table) nounwind {
  %me = call i64 @asc_get(ptr %launch, i64 ${asc.mype})
  %pe64 = sext i32 %pe to i64
  %self = icmp eq i64 %me, %pe64
  br i1 %self, label %same, label %other
same:
  ret i64 %p
other:
  %n = call i64 @asc_get(ptr %launch, i64 ${asc.npes})
  %known = icmp ult i64 %pe64, %n
  br i1 %known, label %offset, label %bad_pe
bad_pe:
  call void @td_fault(ptr %launch, i64 3, i32 %program, i32 %site, i64 %p, i64 %n, i64 %pe64, i64 0)
  ret i64 0
offset:
  %heap = call i64 @asc_get(ptr %launch, i64 ${asc.heap_base})
  %off = sub i64 %p, %heap
  %size = call i64 @asc_get(ptr %launch, i64 ${asc.heap_size})
  %inside = icmp ult i64 %off, %size
  br i1 %inside, label %remote, label %foreign
foreign:
  call void @td_fault(ptr %launch, i64 4, i32 %program, i32 %site, i64 %p, i64 %size, i64 %pe64, i64 0)
  ret i64 0
remote:
  %bases = call i64 @asc_get(ptr %launch, i64 %table)
  %bp = inttoptr i64 %bases to ptr
  %slot = getelementptr i64, ptr %bp, i64 %pe64
  %base = load i64, ptr %slot
  %null = icmp eq i64 %base, 0
  %sum = add i64 %base, %off
  %r = select i1 %null, i64 0, i64 %sum
  ret i64 %r
}

; What no load or store reaches ends the kernel; on the device it would be an address of nowhere.
define i64 @asc_ptr(ptr %launch, i32 %program, i32 %site, i64 %p, i32 %pe) nounwind {
  %r = call i64 @asc_at(ptr %launch, i32 %program, i32 %site, i64 %p, i32 %pe, i64 ${asc.p2p_device_heap_base})
  %null = icmp eq i64 %r, 0
  br i1 %null, label %unreachable, label %ok
unreachable:
  %pe64 = sext i32 %pe to i64
  call void @td_fault(ptr %launch, i64 ${fault_unreachable}, i32 %program, i32 %site, i64 %p, i64 0, i64 %pe64, i64 0)
  ret i64 %p
ok:
  ret i64 %r
}
