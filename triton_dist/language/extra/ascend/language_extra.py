# SPDX-License-Identifier: MIT
"""`language_extra` on Ascend. A program runs on one cube core and the vector cores beside it.

It is one thread of control, so that `tid` is 0 and `ntid` is 1, as on the host; atomics are Triton's own.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

from triton_dist.language.builtin import builtin
from triton_dist.language.extra.ascend.libaclshmem_device import emit
from triton_dist.language.extra.cpu import language_extra as _plain

BACKEND = "ascend"

tid, ntid, laneid = _plain.tid, _plain.ntid, _plain.laneid
__syncthreads = _plain.__syncthreads
ld, st, ld_acquire, red_release = _plain.ld, _plain.st, _plain.ld_acquire, _plain.red_release
atomic_add, atomic_cas = _plain.atomic_add, _plain.atomic_cas


@builtin
def sub_vec_id(_semantic: Any = None) -> Any:
    """Which vector core of this program runs the code: 0 or 1 on chips with two beside a cube core."""
    return emit(_semantic, "hivm.hir.get_sub_block_idx", (), tl.int64, pure=True)


@builtin
def sub_vec_num(_semantic: Any = None) -> Any:
    """How many vector cores this program has."""
    return emit(_semantic, "hivm.hir.get_sub_block_num", (), tl.int64, pure=True)
