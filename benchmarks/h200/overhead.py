# SPDX-License-Identifier: MIT
# pyright: reportArgumentType=false
"""What `dl.*` costs beside stock Triton: a launch, and a cold compilation. One PE.

`overhead.py stock` imports no triton_dist at all; `overhead.py ours` takes the same kernel with four `dl` operations.
Both print JSON: microseconds of a launch, seconds of each cold compilation.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import torch
import triton
import triton.language as tl

OURS = sys.argv[1] == "ours"
if OURS:
    import triton_dist.language as dl
    from triton_dist import shmem


@triton.jit
def stock_kernel(x_ptr, y_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
    tl.store(flag_ptr, 1)


if OURS:

    @triton.jit
    def our_kernel(x_ptr, y_ptr, flag_ptr, n, BLOCK: tl.constexpr):
        target = dl.symm_at(y_ptr, dl.rank())
        for start in range(0, n, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            tl.store(target + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
        dl.notify(flag_ptr, 0, signal=1)


def main() -> None:
    if OURS:
        shmem.init()
        y, flag = shmem.create_tensor((4096,), torch.float32), shmem.create_signals(1)
    else:
        y, flag = torch.empty(4096, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    kernel, x = our_kernel if OURS else stock_kernel, torch.ones(4096, device="cuda")
    cold = [compiled(kernel, x, y, flag, 128 << i, warps) for warps in (1, 2, 4, 8) for i in range(4)]
    launches = [launched(kernel, x, y, flag) for _ in range(15)]
    # The first compilation warms Triton itself up, and here takes NVSHMEM's library apart.
    print(json.dumps({"first": cold[0], "cold": statistics.median(cold[1:]), "launch": statistics.median(launches)}))
    if OURS:
        shmem.finalize()


def compiled(kernel, x, y, flag, block: int, warps: int) -> float:
    began = time.perf_counter()
    kernel[(1,)](x, y, flag, 4096, BLOCK=block, num_warps=warps)
    torch.cuda.synchronize()
    return time.perf_counter() - began


def launched(kernel, x, y, flag, calls: int = 500) -> float:
    """Microseconds of the host for a launch."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        kernel[(1,)](x, y, flag, 4096, BLOCK=1024, num_warps=8)
    took = (time.perf_counter() - began) / calls * 1e6
    torch.cuda.synchronize()
    return took


main()
