# SPDX-License-Identifier: MIT
"""The library's collectives by size, beside copies, NCCL and NVSHMEM."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import vendors
from common import Clock, Meeting, Table, doing, graph_of, median_of, say, seconds

from triton_dist import shmem
from triton_dist.kernels import AllGather, AllReduce, ReduceScatter
from triton_dist.kernels.counted import Plan, plan_for

DTYPE = torch.bfloat16
Call = Callable[[], object]
ALONE = 41
"""Single calls, of which the median is taken: the host's time varies."""
IN_TURN = 9
"""Rounds of calls back to back."""
LONG = 0.1
"""Seconds."""


@dataclass(frozen=True)
class Kind:
    """One collective. `make`: its operation for so many elements, by a plan."""

    title: str
    name: str
    make: Callable[[int, Plan | None], Any]

    def lengths(self, count: int) -> tuple[int, int]:
        """Of input and output."""
        pes = shmem.n_pes()
        return {"all-gather": (count, pes * count), "reduce-scatter": (pes * count, count)}.get(
            self.name, (count, count)
        )

    def sent(self, nbytes: int) -> int:
        """Bytes that a PE must send at least, to others."""
        pes = shmem.n_pes()
        return (pes - 1) * (2 * nbytes // pes if self.name == "all-reduce" else nbytes)

    def shaped(self, source: torch.Tensor) -> torch.Tensor:
        return source.view(shmem.n_pes(), -1) if self.name == "reduce-scatter" else source


OPS = (("all-gather", AllGather), ("reduce-scatter", ReduceScatter), ("all-reduce", AllReduce))
KINDS = tuple(Kind(name, name, lambda n, plan, op=op: op((n,), DTYPE, plan=plan)) for name, op in OPS)
ALGORITHMS = (
    *(
        Kind(
            f"reduce-scatter, {'pull' if pull else 'push'}", "reduce-scatter",
            lambda n, plan, pull=pull: ReduceScatter((n,), DTYPE, pull=pull, plan=plan),
        )
        for pull in (False, True)
    ),
    *(
        Kind(
            f"all-reduce, {way}", "all-reduce",
            lambda n, plan, way=way: AllReduce((n,), DTYPE, algorithm=way, plan=plan),
        )
        for way in ("one-shot", "two-shot")
    ),
)  # fmt: skip
"""What the library chooses from; from a CUDA graph only."""
PACKETS, SIGNALS = (
    tuple(
        Kind(f"{name}, {way}", name, lambda n, plan, op=op, packed=packed: op((n,), DTYPE, packets=packed, plan=plan))
        for name, op in OPS
    )
    for way, packed in (("packets", True), ("signals", False))
)
"""What the library chooses from for small sizes; as called too."""
SMALL = *PACKETS, *SIGNALS


def sizes(smallest: int, largest: int) -> Iterator[int]:
    size = smallest
    while size <= largest:
        yield size
        size *= 4


def human(nbytes: int) -> str:
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"


class Case:
    """One collective at one size. Size: a PE's share; of an all-reduce, the whole."""

    def __init__(self, meeting: Meeting, kind: Kind, nbytes: int) -> None:
        self.meeting, self.kind, self.nbytes = meeting, kind, nbytes
        self.count = nbytes // DTYPE.itemsize
        self.calls = 20 if nbytes <= 1 << 24 else 4
        # What the host calls settles after the first few.
        self.called = 100 if nbytes < 1 << 20 else self.calls
        # Of NVSHMEM's, which take up to a thousand times as long.
        self.few = self.calls if nbytes <= 1 << 20 else max(1, self.calls // 8)

    def graph(self, call: Call, calls: int | None = None) -> float:
        """Seconds of a call from a CUDA graph."""
        calls = calls or self.calls
        return median_of(self.meeting, graph_of(call, calls)) / calls

    def called_in_turn(self, ways: dict[str, Call]) -> dict[str, float]:
        """Seconds of a call as the host makes it, back to back. In turn: the host is twice as fast for a while."""

        def run(name: str, call: Call) -> float:
            calls = self.few if name == "NVSHMEM" and self.nbytes > 1 << 20 else self.called
            return self.meeting.slowest(seconds(call, calls))

        first = {name: [run(name, call), run(name, call)][1] for name, call in ways.items()}
        # What takes long, does not vary much.
        short = {name: call for name, call in ways.items() if first[name] * self.called < LONG}
        rounds = [{name: run(name, call) for name, call in short.items()} for _ in range(IN_TURN)]
        return {**first, **{name: statistics.median(times[name] for times in rounds) for name in short}}

    def alone_in_turn(self, ways: dict[str, Call]) -> dict[str, float]:
        """Seconds of one call as the host makes it, to a device that has nothing else to do."""
        for call in ways.values():
            call()
        rounds = [
            {name: self.meeting.slowest(seconds(call, 1)) for name, call in ways.items()} for _ in range(ALONE)
        ]
        return {name: statistics.median(times[name] for times in rounds) for name in ways}

    @contextmanager
    def ours(self, plan: Plan | None) -> Iterator[tuple[Call, str]]:
        """The library's call, and its plan."""
        with doing(self.kind.title, human(self.nbytes), plan), self.kind.make(self.count, plan) as op:
            source = self.kind.shaped(torch.randn(self.kind.lengths(self.count)[0], device=shmem.device()).to(DTYPE))
            if getattr(op, "input", None) is not None:
                source = op.input.copy_(source)
            text = f"{'packets' if op.packets else getattr(op, 'algorithm', '')} {op.plan.text}".strip()
            yield lambda: op(source), text

    def alone_ours(self, plan: Plan | None, eager: bool = False) -> tuple[float, float, float, str]:
        """Of the library's call: from a graph, as called, one call (0 if not `eager`), and the plan."""
        with self.ours(plan) as (call, text):
            ways = {"ours": call} if eager else {}
            called, alone = self.called_in_turn(ways), self.alone_in_turn(ways)
            return self.graph(call), called.get("ours", 0.0), alone.get("ours", 0.0), text

    def copies(self) -> float:
        """Copies of what a PE must send at least, to the others; where PEs share a GPU, of its own share too."""
        pes, me = shmem.n_pes(), shmem.my_pe()
        others = [(me + step) % pes for step in range(1, pes)]
        targets = others if vendors.alone_on_gpus() else [me, *others]
        each = self.kind.sent(self.nbytes) // max(1, pes - 1)
        source = torch.randn(len(targets), each // 4, device=shmem.device())
        into = shmem.create_tensor((pes, each // 4), torch.float32)
        views = [shmem.peer_tensor(into, pe)[me] for pe in targets]

        def copy() -> None:
            for view, part in zip(views, source, strict=True):
                view.copy_(part)

        with doing("copies", human(self.nbytes)):
            took = self.graph(copy)
        shmem.free_tensor(into)
        return took

    @contextmanager
    def theirs(self) -> Iterator[dict[str, Call]]:
        """NCCL's call, unless it cannot run here, and NVSHMEM's."""
        n, m = self.kind.lengths(self.count)
        source, out = (torch.zeros(size, device=shmem.device(), dtype=DTYPE) for size in (n, m))
        ours, theirs = (shmem.create_tensor((size,), DTYPE) for size in (n, m))
        nccl = vendors.nccl_ways(self.kind.name, source, out)
        yield {
            **({"NCCL": nccl} if nccl is not None else {}),
            "NVSHMEM": vendors.nvshmem_ways(self.kind.name, ours, theirs),
        }
        shmem.barrier_all()
        shmem.free_tensor(theirs)
        shmem.free_tensor(ours)

    def row(self) -> tuple[object, ...]:
        with self.ours(None) as (call, plan), self.theirs() as theirs:
            ways = {"ours": call, **theirs}
            graphs = {
                name: self.graph(call, self.few if name == "NVSHMEM" else None)
                for name, call in ways.items()
                if name != "NVSHMEM" or vendors.GRAPHS
            }
            called = self.called_in_turn(ways)
            if self.nbytes > 1 << 22:  # it takes too long
                del ways["NVSHMEM"]
            alone = self.alone_in_turn(ways)
        copies, graph = self.copies(), graphs["ours"]
        moved = self.kind.sent(self.nbytes) / 1e9
        gc.collect()
        return (
            self.kind.title, human(self.nbytes), graph * 1e6, moved / graph, copies * 1e6, copies / graph,
            *beside(graphs), called["ours"] * 1e6, *beside(called), alone["ours"] * 1e6, *beside(alone), plan,
        )  # fmt: skip


def beside(times: dict[str, float]) -> tuple[float | str, ...]:
    """Of NCCL and NVSHMEM microseconds, and how many times ours that is; a dash where there is none."""
    cells: list[float | str] = []
    for name in ("NCCL", "NVSHMEM"):
        cells += [times[name] * 1e6, times[name] / times["ours"]] if name in times else ["-", "-"]
    return tuple(cells)


HEAD = (
    "collective", "size", "ours us", "GB/s sent", "copies us", "of copies", "NCCL us", "x NCCL", "NVSHMEM us",
    "x NVSHMEM", "called: ours us", "NCCL us", "x NCCL", "NVSHMEM us", "x NVSHMEM",
    "one call: ours us", "NCCL us", "x NCCL", "NVSHMEM us", "x NVSHMEM", "plan",
)  # fmt: skip


def by_size(meeting: Meeting, largest: int, clock: Clock) -> None:
    """All sizes of each; when time is over, what is left is named."""
    table = Table(
        f"Collectives, bf16, {shmem.n_pes()} PEs on {torch.cuda.device_count()} GPUs, from a CUDA graph and as called"
    )
    table.head(HEAD)
    for kind in (*KINDS, *SMALL, *ALGORITHMS):
        for nbytes in sizes(4 << 10, min(largest, 1 << 20) if kind in SMALL else largest):
            if clock.late():
                table.row((kind.title, human(nbytes), "no time"))
            elif kind not in KINDS:
                graph, called, alone, plan = Case(meeting, kind, nbytes).alone_ours(None, eager=kind in SMALL)
                called, alone = (took * 1e6 or "-" for took in (called, alone))
                row = kind.title, human(nbytes), graph * 1e6, *["-"] * 7, called, *["-"] * 4, alone, *["-"] * 4, plan
                table.row(row)
            else:
                table.row(Case(meeting, kind, nbytes).row())


def push(meeting: Meeting) -> None:
    """64 MiB a PE to all PEs, against device-to-device copies of the same bytes at the same time."""
    table = Table(f"Push all-gather, {shmem.n_pes()} PEs")
    table.head(HEAD)
    table.row(Case(meeting, KINDS[0], 64 << 20).row())


def plans(count: int) -> Iterator[Plan | None]:
    """What might be better than the plan by size."""
    yield None
    sms = torch.cuda.get_device_properties(shmem.device()).multi_processor_count
    if count <= 1 << 19:
        # What is small may gain from all multiprocessors at once, or from few signals.
        for block, warps in ((512, 2), (1024, 4), (2048, 4), (2048, 8), (4096, 8), (8192, 16)):
            pieces = -(-count // block)
            yield Plan(min(2 * sms, pieces), block, block, warps)
            if pieces > sms // 2:
                yield Plan(min(sms, -(-pieces // 2)), block, block, warps)
        return
    share = -(-count // (sms * 4096)) * 4096
    seen = {plan_for(count, 2)}
    for programs in (sms // 2, sms, 2 * sms, 4 * sms):
        for piece in (16384, 65536, 1 << 30):
            # At most what makes a program's share one piece.
            plan = Plan(programs, min(piece, max(4096, share * sms // programs // 4096 * 4096)), 4096, 8)
            if plan not in seen:
                seen.add(plan)
                yield plan


def packet_plans(count: int) -> Iterator[Plan | None]:
    """The same for packets, of two elements each: a program of one warp needs no barrier."""
    yield None
    sms = torch.cuda.get_device_properties(shmem.device()).multi_processor_count
    for block, warps in ((64, 1), (128, 1), (256, 1), (256, 2), (512, 4), (1024, 4), (1024, 8), (2048, 8), (4096, 16)):
        pieces = -(-count // 2 // block)
        for programs in (sms, 2 * sms, 4 * sms):
            if programs == sms or pieces > programs // 2:
                yield Plan(min(programs, pieces), block, block, warps)


def explore(meeting: Meeting, largest: int, clock: Clock) -> None:
    """Other plans than the one that the library chooses; the fastest first."""
    for kind in (SIGNALS[0], *PACKETS, *ALGORITHMS):
        packets = kind in PACKETS
        for nbytes in sizes(4 << 10 if packets else 16 << 10, min(largest, 1 << 20) if packets else largest):
            if not clock.late():
                case = Case(meeting, kind, nbytes)
                tried = (packet_plans if packets else plans)(case.count)
                found = sorted((*case.alone_ours(plan)[::3], plan is None) for plan in tried)
                text = ", ".join(f"{took * 1e6:.1f} {'*' * own}{name}" for took, name, own in found[:8])
                chosen = next(took for took, _, own in found if own)
                copies = case.copies()
                say(f"{kind.title} {human(nbytes)}: copies {copies * 1e6:.1f}; plan by size {chosen * 1e6:.1f}; {text}")
