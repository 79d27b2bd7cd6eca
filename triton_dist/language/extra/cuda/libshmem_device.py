# SPDX-License-Identifier: MIT
"""`libshmem_device` over NVSHMEM. So far each function says that this version cannot call it."""

from triton_dist.language.extra.declare import declare_pending

BACKEND = "cuda"

declare_pending(BACKEND, globals())
