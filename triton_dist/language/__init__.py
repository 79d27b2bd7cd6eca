# SPDX-License-Identifier: MIT
"""What kernels import: `import triton_dist.language as dl`.

The seven ops are `wait`, `consume_token`, `rank`, `num_ranks`, `symm_at`, `notify` and `extern_call`. For arrays
of signals that work on every back end there are `signal_stride`, `signal_slot` and `wait_slots`;
`signal_stride_bytes` is for the host. The vendors' libraries are `triton_dist.language.extra.libshmem_device` and
`language_extra`.
"""

from triton_dist.compiler import hook as _hook
from triton_dist.language.builder import DistributedOpBuilder
from triton_dist.language.builtin import builtin
from triton_dist.language.distributed_ops import (
    consume_token,
    extern_call,
    notify,
    num_ranks,
    rank,
    symm_at,
    wait,
)
from triton_dist.language.signals import signal_slot, signal_stride, signal_stride_bytes, wait_slots

__all__ = [
    "DistributedOpBuilder",
    "builtin",
    "consume_token",
    "extern_call",
    "notify",
    "num_ranks",
    "rank",
    "signal_slot",
    "signal_stride",
    "signal_stride_bytes",
    "symm_at",
    "wait",
    "wait_slots",
]

_hook.install()
