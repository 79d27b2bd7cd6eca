# SPDX-License-Identifier: MIT
# pyright: reportArgumentType=false, reportPossiblyUnboundVariable=false
"""What `dl.*` costs beside stock Triton: a launch, and a cold compilation. One PE.

Two processes compile in turn, on one core: "stock" imports no triton_dist at all, "ours" takes the same kernels with a
few `dl` operations, and without them too ("plain"): so one sees what is the kernel's, and what the process's. Prints
medians of a cold compilation, and in it of our conversion (with what it makes for the linker), of Triton's linking of
device libraries, of NVSHMEM's initialisation of what was loaded, and of Triton's stages ("front": from Python to TTIR;
"store": into the cache; "run": all the rest, loading and the first launch).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton._C.libtriton import llvm

OURS = sys.argv[1:2] == ["ours"]
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
PARTS = ("convert", "link", "load", *STAGES)
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


def worker() -> None:
    """Serves requests, a line each: "kernel block warps again plain" is compiled, "launch" and "idle" are timed.

    Answers in JSON.
    """
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
    plain_ones = {"copy": stock_copy, "matmul": stock_matmul}
    kernels = {"copy": our_copy, "matmul": our_matmul} if OURS else plain_ones
    x = torch.ones(size, device="cuda")
    for line in sys.stdin:
        name, *rest = line.split()
        if name == "launch":
            answer = launched(kernels["copy"], x, y, flag)
        elif name == "idle":
            answer = {"idle": idle()}
        else:
            block, warps, again, plain = map(int, rest)
            kernel, n = (plain_ones if plain else kernels)[name], 4096 if name == "copy" else 128
            answer = compiled(kernel, x, y, flag, n, block, warps, again=bool(again))
        print(json.dumps(answer), flush=True)
    if OURS:
        shmem.finalize()


def compiled(kernel, x, y, flag, n: int, block: int, warps: int, *, again: bool) -> dict[str, float]:
    """Seconds. Nothing is in Triton's caches; `again`: but the same TTIR was converted before."""
    forget(kernel, converted=not again)
    spent.clear()
    began = time.perf_counter()
    kernel[(1,)](x, y, flag, n, BLOCK=block, num_warps=warps)
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    run = took - sum(spent[stage] for stage in STAGES)
    return {"cold": took, **{kind: spent[kind] for kind in PARTS}, "run": run}


def forget(kernel, *, converted: bool) -> None:
    kernel.device_caches.clear()
    if OURS and converted:
        hook._conversion.cache_clear()
    folder = Path(os.environ["TRITON_CACHE_DIR"])
    for entry in folder.iterdir() if folder.exists() else ():
        # Launchers are compiled once for a signature, by a C compiler, and NVSHMEM's library is taken apart once.
        if entry.is_dir() and not list(entry.glob("*.so")) and not entry.name.startswith("triton_dist_nvshmem"):
            shutil.rmtree(entry)


def launched(kernel, x, y, flag, calls: int = 500) -> dict[str, float]:
    """Seconds of the host for a launch."""
    kernel[(1,)](x, y, flag, 4096, BLOCK=1024, num_warps=8)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(calls):
        kernel[(1,)](x, y, flag, 4096, BLOCK=1024, num_warps=8)
    took = (time.perf_counter() - began) / calls
    torch.cuda.synchronize()
    return {"launch": took}


def idle(seconds: float = 0.5) -> float:
    """How many cores the process uses while its only thread of ours sleeps."""
    began, used = time.perf_counter(), time.process_time()
    time.sleep(seconds)
    return (time.process_time() - used) / (time.perf_counter() - began)


class Worker:
    """A process of one way, with a cache of its own."""

    def __init__(self, way: str, folder: str) -> None:
        env = {**os.environ, "TRITON_CACHE_DIR": f"{folder}/{way}"}
        command = [sys.executable, "-u", __file__, way]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        # All on one core, as they take turns: cores differ in who else uses them.
        os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})

    def ask(self, *words: object) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(*words, file=self.process.stdin, flush=True)
        for line in self.process.stdout:  # NVSHMEM may have something to say
            if line.startswith("{"):
                return json.loads(line)
        raise SystemExit(f"{self.process.args}: ended")

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


VARIANTS = {
    "copy": [(block, warps) for warps in (1, 2, 4, 8) for block in (64, 128, 256, 512, 1024, 2048)],
    # A tile needs registers.
    "matmul": [(block, warps) for warps in (4, 8) for block in (16, 32, 64, 128)],
}


def main(rounds: int) -> None:
    """Both ways in turn, so that both meet the machine in the same state."""
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(way, folder) for way in ("stock", "ours")]
        stock, ours = workers
        ways = ((stock, 1), (ours, 1), (ours, 0))
        over = [f"ours beside linking, over {other}" for other in ("stock", "plain")]
        parts = [f"{part}, stock / ours" for part in (*PARTS, "run")]
        head = ("kernel", "stock ms", "plain ms", "ours ms", *over, *parts)
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
        for name, variants in VARIANTS.items():
            for variant in variants[:2]:  # warms Triton up, and takes NVSHMEM's library apart
                for worker, plain in ways:
                    worker.ask(name, *variant, 0, plain)
            for again in (0, 1):
                pairs = [
                    [worker.ask(name, *variant, again, plain) for worker, plain in ways]
                    for _ in range(rounds if name == "copy" else rounds - 1)
                    for variant in variants
                ]
                print(row(f"{name}, {'converted before' if again else 'new TTIR'}", pairs), flush=True)
        cores = [worker.ask("idle")["idle"] for worker in workers]
        launches = [[worker.ask("launch")["launch"] for worker in workers] for _ in range(15)]
        for worker in workers:
            worker.end()
    took = [statistics.median(each) * 1e6 for each in zip(*launches, strict=True)]
    print(f"\nA launch, us of the host: stock {took[0]:.1f}, ours {took[1]:.1f}")
    print(f"Cores used by a process that waits: stock {cores[0]:.2f}, ours {cores[1]:.2f}")


def row(name: str, rounds: list[list[dict[str, float]]]) -> str:
    """Medians in milliseconds, and of the ratios of each round."""
    def median(i: int, kind: str) -> str:
        return f"{statistics.median(each[i][kind] for each in rounds) * 1e3:.1f}"

    def over(i: int) -> str:
        return f"{statistics.median((each[2]['cold'] - each[2]['link']) / each[i]['cold'] for each in rounds):.3f}"

    parts = [f"{median(0, kind)} / {median(2, kind)}" for kind in (*PARTS, "run")]
    return f"| {' | '.join((name, *(median(i, 'cold') for i in range(3)), over(0), over(1), *parts))} |"


if len(sys.argv) == 2 and sys.argv[1] in ("stock", "ours"):
    worker()
else:
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
