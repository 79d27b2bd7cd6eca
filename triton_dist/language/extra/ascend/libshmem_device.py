# SPDX-License-Identifier: MIT
"""`libshmem_device` over aclshmem. So far each function says that this version cannot call it."""

from triton_dist.language.extra.declare import declare_pending

BACKEND = "ascend"

declare_pending(BACKEND, globals())
