define ${t} @cuda_load_${t}(ptr %launch, i32 %program, i32 %site, i64 %at) nounwind {
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %at, i64 ${size}, i1 false)
  br i1 %usable, label %go, label %leave
go:
  %p = inttoptr i64 %at to ptr
  %seen = load atomic ${t}, ptr %p acquire, align ${size}
  ret ${t} %seen
leave:
  ret ${t} 0
}

define ${t} @cuda_fetch_add_${t}(ptr %launch, i32 %program, i32 %site, i64 %at, ${t} %value) nounwind {
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %at, i64 ${size}, i1 true)
  br i1 %usable, label %go, label %leave
go:
  %p = inttoptr i64 %at to ptr
  %old = atomicrmw add ptr %p, ${t} %value acq_rel
  ret ${t} %old
leave:
  ret ${t} 0
}

define ${t} @cuda_cas_${t}(ptr %launch, i32 %program, i32 %site, i64 %at, ${t} %expected, ${t} %value) nounwind {
  %usable = call i1 @usable(ptr %launch, i32 %program, i32 %site, i64 %at, i64 ${size}, i1 true)
  br i1 %usable, label %go, label %leave
go:
  %p = inttoptr i64 %at to ptr
  %pair = cmpxchg ptr %p, ${t} %expected, ${t} %value acq_rel acquire
  %old = extractvalue { ${t}, i1 } %pair, 0
  ret ${t} %old
leave:
  ret ${t} 0
}
