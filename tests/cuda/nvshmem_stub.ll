; SPDX-License-Identifier: MIT
; A few of NVSHMEM's functions, with their types: stands for its library where that is not installed.

%state_t = type { i64, i64, ptr, i32, i32 }

@nvshmemi_device_state_d = dso_local addrspace(4) externally_initialized global %state_t zeroinitializer, align 8
@llvm.compiler.used = appending global [1 x ptr] [ptr addrspacecast (ptr addrspace(4) @nvshmemi_device_state_d to ptr)], section "llvm.metadata"

define dso_local i32 @nvshmem_my_pe() #0 {
  %p = getelementptr i8, ptr addrspace(4) @nvshmemi_device_state_d, i64 24
  %r = load i32, ptr addrspace(4) %p, align 4, !tbaa !0
  ret i32 %r
}

define dso_local i32 @nvshmem_n_pes() #0 {
  %p = getelementptr i8, ptr addrspace(4) @nvshmemi_device_state_d, i64 28
  %r = load i32, ptr addrspace(4) %p, align 4
  ret i32 %r
}

define dso_local noundef ptr @nvshmem_ptr(ptr noundef %0, i32 noundef %1) #0 {
  %tp = getelementptr i8, ptr addrspace(4) @nvshmemi_device_state_d, i64 16
  %table = load ptr, ptr addrspace(4) %tp, align 8
  %wide = sext i32 %1 to i64
  %slot = getelementptr ptr, ptr %table, i64 %wide
  %base = load ptr, ptr %slot, align 8
  %heap = load i64, ptr addrspace(4) @nvshmemi_device_state_d, align 8
  %at = ptrtoint ptr %0 to i64
  %offset = sub i64 %at, %heap
  %none = icmp eq ptr %base, null
  %there = getelementptr i8, ptr %base, i64 %offset
  %r = select i1 %none, ptr null, ptr %there
  ret ptr %r
}

define dso_local void @nvshmem_fence() #1 {
  call fastcc void @_Z23nvshmemi_transfer_fence()
  ret void
}

define internal fastcc void @_Z23nvshmemi_transfer_fence() noinline {
  call void asm sideeffect "// network fence", "~{memory}"()
  ret void
}

define dso_local void @nvshmemx_signal_op(ptr noundef %0, i64 noundef %1, i32 noundef %2, i32 noundef %3) #1 {
  call fastcc void @_Z20nvshmemi_transfer_amo(ptr %0, i64 %1)
  ret void
}

define internal fastcc void @_Z20nvshmemi_transfer_amo(ptr %0, i64 %1) noinline {
  call void asm sideeffect "// network signal", "~{memory}"()
  ret void
}

define dso_local void @nvshmem_putmem(ptr noundef %0, ptr noundef %1, i64 noundef %2, i32 noundef %3) #1 {
  %v = load i8, ptr %1
  store volatile i8 %v, ptr %0
  ret void
}

define dso_local void @nvshmemx_putmem_block(ptr noundef %0, ptr noundef %1, i64 noundef %2, i32 noundef %3) #1 {
  %v = load i8, ptr %1
  store volatile i8 %v, ptr %0
  ret void
}

define dso_local noundef i64 @nvshmem_uint64_atomic_fetch_add(ptr noundef %0, i64 noundef %1, i32 noundef %2) #1 {
  %old = atomicrmw add ptr %0, i64 %1 seq_cst
  ret i64 %old
}

define dso_local void @nvshmem_char_p(ptr noundef %0, i8 noundef signext %1, i32 noundef range(i32 0, 64) %2) #1 {
  store volatile i8 %1, ptr %0
  ret void
}

define dso_local void @nvshmem_quiet() #1 {
  call void @missing_from_the_library()
  ret void
}

declare void @missing_from_the_library()

define dso_local i32 @never_used() {
  ret i32 0
}

attributes #0 = { alwaysinline nounwind }
attributes #1 = { alwaysinline nounwind }

!0 = !{!1, !1, i64 0}
!1 = !{!"int", !2, i64 0}
!2 = !{!"root"}
