# SPDX-License-Identifier: MIT
# pyright: reportArgumentType=false, reportPossiblyUnboundVariable=false
"""What `dl.*` costs beside stock Triton: a launch, and a cold compilation. One PE.

`overhead.py stock` imports no triton_dist at all; `overhead.py ours` takes the same kernels with a few `dl` operations.
Prints JSON: microseconds of a launch; of each kernel, median milliseconds of a cold compilation, and in it of our
conversion (with what it makes for the linker), of Triton's linking of device libraries, of NVSHMEM's initialisation
of what was loaded, and of Triton's stages ("front": from Python to TTIR; "store": into the cache; "run": all the rest,
loading and the first launch).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import defaultdict

import torch
import triton
import triton.language as tl
from triton._C.libtriton import llvm

OURS = sys.argv[1] == "ours"
if OURS:
    import triton_dist.language as dl
    from triton_dist import shmem
    from triton_dist.backends.cuda import CudaBackend
    from triton_dist.compiler import hook


@triton.jit
def stock_copy(x_ptr, y_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
    tl.store(flag_ptr, 1)


@triton.jit
def stock_matmul(a_ptr, c_ptr, flag_ptr, K, BLOCK: tl.constexpr):
    rows, inner = tl.arange(0, 128), tl.arange(0, BLOCK)
    total = tl.zeros((128, 128), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * K + k + inner[None, :])
        total = tl.dot(a.to(tl.float16), a.to(tl.float16).T, total)
    tl.store(c_ptr + rows[:, None] * 128 + rows[None, :], total)
    tl.store(flag_ptr, 1)


if OURS:

    @triton.jit
    def our_copy(x_ptr, y_ptr, flag_ptr, n, BLOCK: tl.constexpr):
        target = dl.symm_at(y_ptr, dl.rank())
        for start in range(0, n, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            tl.store(target + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)
        dl.notify(flag_ptr, 0, signal=1)

    @triton.jit
    def our_matmul(a_ptr, c_ptr, flag_ptr, K, BLOCK: tl.constexpr):
        rows, inner = tl.arange(0, 128), tl.arange(0, BLOCK)
        total = tl.zeros((128, 128), tl.float32)
        for k in range(0, K, BLOCK):
            a = tl.load(a_ptr + rows[:, None] * K + k + inner[None, :])
            total = tl.dot(a.to(tl.float16), a.to(tl.float16).T, total)
        target = dl.symm_at(c_ptr, dl.rank())
        tl.store(target + rows[:, None] * 128 + rows[None, :], total)
        dl.notify(flag_ptr, 0, signal=1)


STAGES = ("front", "ttir", "ttgir", "llir", "ptx", "cubin", "store")
spent: dict[str, float] = defaultdict(float)


def timed(owner, name: str, kind: str) -> None:
    """Let `owner.name` count its time as one of `kind`."""
    function = getattr(owner, name)

    def call(*args, **kwargs):
        began = time.perf_counter()
        result = function(*args, **kwargs)
        spent[kind] += time.perf_counter() - began
        return result

    setattr(owner, name, call)


def listen(*, times, **_: object) -> None:
    """Triton's listener, which hears of each compilation."""
    for name, took in (("front", times.ir_initialization), *times.lowering_stages, ("store", times.store_results)):
        spent[name] += took / 1e6


def main() -> None:
    size = 128 * 128
    triton.knobs.compilation.listener = listen
    if OURS:
        shmem.init()
        timed(hook, "convert", "convert")
        timed(CudaBackend, "on_kernel_load", "load")
        y, flag = shmem.create_tensor((size,), torch.float32), shmem.create_signals(1)
    else:
        y, flag = torch.empty(size, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    timed(llvm, "link_extern_libs", "link")
    kernels, x = (our_copy, our_matmul) if OURS else (stock_copy, stock_matmul), torch.ones(size, device="cuda")
    found: dict[str, object] = {}
    sizes = (64, 128, 256, 512, 1024, 2048), (16, 32, 64, 128)
    for kernel, blocks, n in zip(kernels, sizes, (4096, 128), strict=True):
        many = (1, 2, 4, 8) if kernel is kernels[0] else (4, 8)  # a tile needs registers
        variants = [compiled(kernel, x, y, flag, n, block, warps) for warps in many for block in blocks]
        # The first compilation warms Triton itself up, and here takes NVSHMEM's library apart.
        name = kernel.__name__.split("_")[1]
        found[name] = medians(variants[1:])
        # Those whose number of warps is the first: the others have the same TTIR again, as a tuner's do.
        found[f"{name}, new TTIR"] = medians(variants[1 : len(blocks)])
    found["launch"] = statistics.median(launched(kernels[0], x, y, flag) for _ in range(15))
    print(json.dumps(found))
    if OURS:
        shmem.finalize()


def medians(variants: list[dict[str, float]]) -> dict[str, float]:
    """In milliseconds."""
    return {kind: round(statistics.median(v[kind] for v in variants) * 1e3, 1) for kind in variants[0]}


def compiled(kernel, x, y, flag, n: int, block: int, warps: int) -> dict[str, float]:
    spent.clear()
    began = time.perf_counter()
    kernel[(1,)](x, y, flag, n, BLOCK=block, num_warps=warps)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    run = took - sum(spent[stage] for stage in STAGES)
    return {"cold": took, **{kind: spent[kind] for kind in ("convert", "link", "load", *STAGES)}, "run": run}


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
