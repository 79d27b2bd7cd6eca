# SPDX-License-Identifier: MIT
"""`libshmem_device` on the host: every function that makes sense there calls `host_shmem_<name>`.

A program is one thread, so that thread, warp and block are the same. `_nbi` functions may complete at once. All
PEs are on
one machine: the teams WORLD, SHARED and NODE are all of them, and the only ones.
"""

from triton_dist.language.extra.declare import declare, host_function

BACKEND = "cpu"

declare(BACKEND, globals(), host_function)
