# SPDX-License-Identifier: MIT
# pyright: reportArgumentType=false
"""What is measured on the H200: signals, bandwidth, collectives, GEMMs with communication. Tables by PE 0."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import collectives
import gemm
import torch
import triton.language as tl
from common import Clock, Meeting, Table, doing, graph_of, medians, run_main, seconds

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.language.extra.language_extra import atomic_add, ld, tid


@triton_dist.jit
def ping_pong_kernel(flag_ptr, rounds, SCOPE: tl.constexpr):
    """PEs 0 and 1 in turn: set the other's flag to the number of the round, wait for one's own."""
    me = dl.rank()
    for number in range(1, rounds + 1):
        if me == 0:
            dl.notify(flag_ptr, 1, signal=number, sig_op="set", comm_scope=SCOPE)
            dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=number)
        else:
            dl.wait(flag_ptr, 1, "sys", "acquire", waitValue=number)
            dl.notify(flag_ptr, 0, signal=number, sig_op="set", comm_scope=SCOPE)


@triton_dist.jit
def spin_kernel(flag_ptr, rounds):
    """The same by hand, in one thread: a release addition, and loads until the value is there."""
    me = dl.rank()
    peer_flag = dl.symm_at(flag_ptr, 1 - me)
    if tid(0) == 0:
        for number in range(1, rounds + 1):
            if me == 0:
                atomic_add(peer_flag, 1, "sys", "release")
            seen = ld(flag_ptr, "sys", "acquire")
            while seen < number:
                seen = ld(flag_ptr, "sys", "acquire")
            if me == 1:
                atomic_add(peer_flag, 1, "sys", "release")


ROUNDS = 2000


def ping_pong(meeting: Meeting) -> None:
    """Microseconds for a round trip between PEs 0 and 1."""
    rounds, flag = ROUNDS, shmem.create_signals(1)
    ways: dict[str, Callable[[], Any]] = {}
    for scope in ("intra_node", "inter_node"):
        for warps in (1, 4):
            ways[f"notify/wait, {scope}, {warps} warps"] = lambda scope=scope, warps=warps: ping_pong_kernel[(1,)](
                flag, rounds, SCOPE=scope, num_warps=warps
            )
    ways["by hand, 1 warp"] = lambda: spin_kernel[(1,)](flag, rounds, num_warps=1)
    table = Table(f"Signal ping-pong, {rounds} rounds, us a round trip")
    table.head(("way", "us"))
    for name, launch in ways.items():
        times = []
        for _ in range(7):
            with doing("ping-pong", name):
                shmem.reset_signals(flag)
                one = seconds(launch, 1) if shmem.my_pe() < 2 else idle()
                times.append(meeting.slowest(one / rounds * 1e6))
        table.row((name, sorted(times[1:])[3]))
    shmem.free_tensor(flag)


def idle() -> float:
    shmem.barrier_all()
    return 0.0


# NVSHMEM's own collectives


SCRATCH = int(os.environ.setdefault("NVSHMEM_REDUCE_SCRATCH_SIZE", str(1 << 19)))
"""Said before NVSHMEM starts, whatever its default is."""


def reduce_scatter_by_nvshmem(out: torch.Tensor, source: torch.Tensor, stream: int) -> None:
    """Its reduce-scatter on the stream, in pieces.

    NVSHMEM 3.4 pushes all inputs into half of its scratch memory, and does not look whether they fit: more
    overwrites its barriers and whatever comes next. Between pieces the order of the input differs from that of one
    call; bytes and work are the same.
    """
    from triton_dist.backends.cuda.nvshmem import bindings

    pes, size = shmem.n_pes(), out.element_size()
    piece = SCRATCH // 2 // (pes * size) // 16 * 16
    reduce_scatter = bindings().bfloat16_sum_reducescatter_on_stream
    for begin in range(0, out.numel(), piece):
        count = min(piece, out.numel() - begin)
        at = source.data_ptr() + begin * pes * size
        reduce_scatter(0, out.data_ptr() + begin * size, at, count, stream)


def probe() -> None:
    """Whether NVSHMEM's reduce-scatter is right with the scratch memory asked for."""
    pes, count = shmem.n_pes(), SCRATCH // 2 // (2 * shmem.n_pes()) // 16 * 16
    source, out = (shmem.create_tensor((n,), torch.bfloat16) for n in (pes * count, count))
    for number in range(1, 5):
        source.fill_(number)
        shmem.barrier_all()
        reduce_scatter_by_nvshmem(out, source, torch.cuda.current_stream().cuda_stream)
        shmem.barrier_all()
        assert bool((out == number * pes).all()), "NVSHMEM's reduce-scatter is wrong"
    say(f"NVSHMEM's reduce-scatter is right with {SCRATCH} bytes of scratch memory")
    shmem.free_tensor(source)
    shmem.free_tensor(out)


def say(text: str) -> None:
    if shmem.my_pe() == 0:
        print(text, flush=True)


# Collectives


def sizes(smallest: int, largest: int) -> Iterator[int]:
    size = smallest
    while size <= largest:
        yield size
        size *= 4


def configurations(count: int) -> list[tuple[int, int, int]]:
    """(programs, block, warps) to choose among: small sizes want few programs, large ones all that run at once."""
    sms = torch.cuda.get_device_properties(shmem.device()).multi_processor_count
    if count <= 1 << 15:
        return [(n, 1024, 4) for n in (1, 2, 4, 8, 16) if n * 1024 <= max(1024, 4 * count)]
    # As many as the registers let run at once: a sum over more PEs takes more of them.
    most = 4 if shmem.n_pes() <= 4 else 2
    return [(sms, 8192, 16), (2 * sms, 8192, 8), (2 * sms, 4096, 8), (most * sms, 4096, 8)]


class Case:
    """One collective at one size: ours in the best configuration, copies of the same bytes, NVSHMEM's own."""

    def __init__(self, name: str, nbytes: int) -> None:
        self.name, self.nbytes = name, nbytes
        self.pes, self.dtype = shmem.n_pes(), torch.bfloat16
        # All-gather: a shard. Reduce-scatter: the result. All-reduce: all of it, or a PE's part of it.
        whole = nbytes // self.dtype.itemsize
        self.count = whole // self.pes if name == "two-shot all-reduce" else whole
        self.kind = {kind.name: kind for kind in KINDS}[name]

    def measure(self, meeting: Meeting) -> tuple[object, ...]:
        calls = 20 if self.nbytes <= 1 << 24 else 4
        best: tuple[float, tuple[int, int, int]] | None = None
        for configuration in configurations(self.count):
            with doing(self.name, human(self.nbytes), *configuration):
                op = self.kind(self.count, self.dtype, *configuration)
                took = self._time(meeting, self._caller(op), calls)
                op.free()
            best = min(best, (took, configuration)) if best else (took, configuration)
        assert best is not None
        with doing(self.name, human(self.nbytes), "copies and NVSHMEM"):
            copies = self._others(meeting, calls)
        ours = best[0]
        moved = self._moved() / 1e9
        return (
            self.name, human(self.nbytes), ours * 1e6, moved / ours, copies["copies"] * 1e6, copies["copies"] / ours,
            copies["NVSHMEM"] * 1e6, copies["NVSHMEM"] / ours, "x".join(map(str, best[1])),
        )  # fmt: skip

    def _moved(self) -> int:
        """Bytes that this PE sends, to itself too."""
        return self.nbytes * (1 if self.name == "two-shot all-reduce" else self.pes)

    def _time(self, meeting: Meeting, call: Callable[[], object], calls: int, graph: bool = True) -> float:
        run = graph_of(call, calls) if graph else lambda: [call() for _ in range(calls)]
        first = meeting.slowest(seconds(run, 1))
        # What takes long, does not vary much.
        times = [meeting.slowest(seconds(run, 1) / calls) for _ in range(5 if first < 0.1 else 1)]
        return sorted(times)[len(times) // 2]

    def _caller(self, op: Any) -> Callable[[], object]:
        source = torch.randn(self.count, device=shmem.device()).to(self.dtype)
        out = torch.empty_like(source)
        arguments = {"all-gather": (source,), "reduce-scatter": (out,), "one-shot all-reduce": (source, out)}
        given = arguments.get(self.name, ())
        return lambda: op(*given)

    def _others(self, meeting: Meeting, calls: int) -> dict[str, float]:
        into = shmem.create_tensor((self.pes, self.count), self.dtype)
        source = shmem.create_tensor((self.pes, self.count), self.dtype)
        me = shmem.my_pe()
        order = [(me + step) % self.pes for step in range(self.pes)]
        targets = [shmem.peer_tensor(into, pe)[me] for pe in order]

        def copies() -> None:
            for pe, target in zip(order, targets, strict=True):
                target.copy_(source[pe])

        times = {"copies": self._time(meeting, copies, calls)}
        few = calls if self.nbytes <= 1 << 20 else max(1, calls // 8)
        times["NVSHMEM"] = self._time(meeting, self._vendor(source, into), few, graph=False)
        shmem.barrier_all()
        shmem.free_tensor(source)
        shmem.free_tensor(into)
        return times

    def _vendor(self, source: torch.Tensor, into: torch.Tensor) -> Callable[[], object]:
        from triton_dist.backends.cuda.nvshmem import bindings

        raw, stream = bindings(), torch.cuda.current_stream().cuda_stream
        out, data, n = into.data_ptr(), source.data_ptr(), self.count
        if self.name == "all-gather":
            return lambda: raw.bfloat16_fcollect_on_stream(0, out, data, n, stream)
        if self.name == "reduce-scatter":
            return lambda: reduce_scatter_by_nvshmem(into.view(-1)[:n], source, stream)
        whole = n * (self.pes if self.name == "two-shot all-reduce" else 1)
        return lambda: raw.bfloat16_sum_reduce_on_stream(0, out, data, whole, stream)


KINDS = (collectives.AllGather, collectives.TwoShot, collectives.OneShot, collectives.ReduceScatter)


def human(nbytes: int) -> str:
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"


HEAD = (
    "collective", "size", "us", "GB/s a PE", "copies us", "of copies", "NVSHMEM us", "x NVSHMEM",
    "programs x block x warps",
)  # fmt: skip


def collective_sizes(meeting: Meeting, largest: int, clock: Clock) -> None:
    """All sizes of each; when time is over, what is left is named."""
    table = Table(f"Collectives, bf16, {shmem.n_pes()} PEs on one GPU; size: a PE's share (all-reduce: the whole)")
    table.head(HEAD)
    for kind in KINDS:
        top = min(largest, 1 << 22) if kind is collectives.OneShot else largest
        for nbytes in sizes(4 << 10, top):
            if clock.late():
                table.row((kind.name, human(nbytes), "no time"))
            else:
                table.row(Case(kind.name, nbytes).measure(meeting))


def push_bandwidth(meeting: Meeting) -> None:
    """64 MiB a PE to all PEs, against device-to-device copies of the same bytes at the same time."""
    table = Table(f"Push all-gather, {shmem.n_pes()} PEs")
    table.head(HEAD)
    table.row(Case("all-gather", 64 << 20).measure(meeting))


# GEMMs

SHAPES = ((8192, 4096, 11008), (8192, 4096, 14336), (8192, 8192, 28672))
"""M, and a weight that the PEs share out: K x N of AllGather-GEMM by columns, N x K of GEMM-ReduceScatter by rows."""
Ways = dict[str, Callable[[], object]]


def gemms(name: str, vendor: str, measure: Callable[..., dict[str, float]], meeting: Meeting, repeats: int) -> None:
    """A row for each shape."""
    table = Table(f"{name}, bf16, {shmem.n_pes()} PEs on one GPU; ms")
    for number, (m, k, n) in enumerate(SHAPES):
        with doing(name, m, k, n):
            times = measure(meeting, repeats, m, k, n)
        if number == 0:
            table.head(("M, weight", *times, "best of ours / torch", f"({vendor}) / ours"))
        ours = min(took for way, took in times.items() if way.startswith("ours"))
        figures = [f"{took * 1e3:.3f}" for took in times.values()]
        ratios = f"{ours / times['torch.matmul']:.3f}", f"{times[vendor] / ours:.2f}"
        table.row((f"{m}, {k} x {n}", *figures, *ratios))


def all_gather_gemm_of(meeting: Meeting, repeats: int, m: int, k: int, wide: int) -> dict[str, float]:
    from triton_dist.backends.cuda.nvshmem import bindings

    pes, dtype, raw, stream = shmem.n_pes(), torch.bfloat16, bindings(), torch.cuda.current_stream().cuda_stream
    n = wide // pes
    a, b, c = random(m // pes, k), random(k, n), random(m, n)
    shard, whole = shmem.create_tensor((m // pes, k), dtype), shmem.create_tensor((m, k), dtype)
    shard.copy_(a)
    peers = [shmem.peer_tensor(shard, pe) for pe in range(pes)]
    places = whole.view(pes, m // pes, k)

    def collect() -> None:
        raw.bfloat16_fcollect_on_stream(0, whole.data_ptr(), shard.data_ptr(), shard.numel(), stream)

    def pull() -> None:
        for place, peer in zip(places, peers, strict=True):
            place.copy_(peer)

    ops = {f"ours, {p} pushers": gemm.AllGatherGemm(m // pes, k, dtype, p) for p in (2, 4, 8)}
    ways: Ways = {
        "torch.matmul": lambda: torch.matmul(whole, b, out=c),
        "Triton alone": lambda: gemm.gemm(whole, b, c),
        "fcollect, matmul": lambda: (collect(), torch.matmul(whole, b, out=c)),
        "copies, matmul": lambda: (pull(), torch.matmul(whole, b, out=c)),
        **{name: partial(op, a, b, c) for name, op in ops.items()},
    }
    times = medians(meeting, ways, repeats, 3)
    for op in ops.values():
        op.free()
    shmem.free_tensor(shard)
    shmem.free_tensor(whole)
    return times


def gemm_reduce_scatter_of(meeting: Meeting, repeats: int, m: int, n: int, wide: int) -> dict[str, float]:
    pes, dtype, stream = shmem.n_pes(), torch.bfloat16, torch.cuda.current_stream().cuda_stream
    k = wide // pes
    a, b, c, part = random(m, k), random(k, n), random(m, n), random(m // pes, n)
    full, out = shmem.create_tensor((m, n), dtype), shmem.create_tensor((m // pes, n), dtype)

    def scatter() -> None:
        reduce_scatter_by_nvshmem(out, full, stream)

    op = gemm.GemmReduceScatter(m // pes, n, dtype)
    ways: Ways = {
        "torch.matmul": lambda: torch.matmul(a, b, out=c),
        "Triton alone": lambda: gemm.gemm(a, b, c),
        "matmul, reducescatter": lambda: (torch.matmul(a, b, out=full), scatter()),
        "ours": lambda: op(a, b, part),
    }
    times = medians(meeting, ways, repeats, 3)
    op.free()
    shmem.free_tensor(full)
    shmem.free_tensor(out)
    return times


def random(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, device=shmem.device(), dtype=torch.bfloat16)


def gemm_check() -> None:
    found = gemm.check(512, 1376, 512, torch.bfloat16, 50)
    say(f"GEMMs with communication, 50 rounds: relative error {found:.1e}")
    assert found < 1e-2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--largest", type=int, default=256, help="MiB, of the collectives")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=1e6, help="no further collective after these")
    args = parser.parse_args()
    shmem.init()
    meeting = Meeting()
    clock = Clock(meeting, args.seconds)
    parts: dict[str, Callable[[], None]] = {
        "probe": probe,
        "ping_pong": lambda: ping_pong(meeting),
        "push": lambda: push_bandwidth(meeting),
        "collectives": lambda: collective_sizes(meeting, args.largest << 20, clock),
        "ag_gemm": lambda: gemms("AllGather-GEMM", "fcollect, matmul", all_gather_gemm_of, meeting, args.repeats),
        "gemm_rs": lambda: gemms(
            "GEMM-ReduceScatter", "matmul, reducescatter", gemm_reduce_scatter_of, meeting, args.repeats
        ),
        "gemm_check": gemm_check,
    }
    for part in args.parts:
        with doing(part):
            parts[part]()
    shmem.finalize()
    return 0


if __name__ == "__main__":
    run_main(main)
