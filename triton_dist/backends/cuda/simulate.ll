; SPDX-License-Identifier: MIT
; What our PTX templates and NVSHMEM's typed functions do, on the host. As all of its symbols they take (launch, program,
; site) first.

define i32 @cuda_one(ptr %launch, i32 %program, i32 %site) alwaysinline nounwind {
  ret i32 1
}

define i32 @cuda_zero(ptr %launch, i32 %program, i32 %site) alwaysinline nounwind {
  ret i32 0
}

define i32 @cuda_zero_of(ptr %launch, i32 %program, i32 %site, i32 %token) alwaysinline nounwind {
  ret i32 0
}
