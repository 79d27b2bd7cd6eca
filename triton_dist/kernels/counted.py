# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportCallIssue=false
"""Collectives that count their calls on the device: a CUDA graph can hold them, and no call needs a barrier.

Each program does pieces of the work, and talks to the programs of its own number on the other PEs. The rule of
`Exchange` holds for every piece: a call ends only after each PE has told this one of the same call. So staging memory
and signals exist twice, used in turn, and a signal's value is the number of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.collective import Collective
from triton_dist.kernels.device import multiprocessors_of
from triton_dist.kernels.repeated import Repeated
from triton_dist.kernels.sizes import check_blocks, check_counts, check_elements, make_plain
from triton_dist.language.extra.language_extra import __syncthreads, ntid, tid


@triton.jit
def call_number(count_ptr):
    """The number of this call, from 1; every program counts for itself."""
    return tl.load(count_ptr + tl.program_id(0)) + 1


@triton.jit
def call_done(count_ptr, number):
    """At the end of a kernel: all threads have read the number before."""
    tl.store(count_ptr + tl.program_id(0), number)


@triton.jit
def slots_of(signal_ptr, number, phase: tl.constexpr, PHASES: tl.constexpr, piece, pieces, PES: tl.constexpr):
    """The signals of a piece in one phase of this call: one a PE. Calls that follow each other use others."""
    turn = (number % 2).to(tl.int32)
    return dl.signal_slot(signal_ptr, ((turn * PHASES + phase) * pieces + piece) * PES)


@triton.jit
def tell_all(slots, number, me, PES: tl.constexpr):
    """What this program wrote, to any PE, is written. A thread for each PE: no signal waits for another to arrive."""
    slot = dl.signal_slot(slots, me)
    __syncthreads()
    for peer in range(tid(0), PES, ntid(0)):
        dl.notify(slot, peer, signal=number, sig_op="set", comm_scope="intra_node")


@triton.jit
def await_all(slots, number, PES: tl.constexpr):
    return dl.wait_slots(slots, PES, "sys", "acquire", waitValue=number)


@dataclass(frozen=True)
class Plan:
    """How a collective's work is shared: `programs` take pieces of `piece` elements, `block` of them at a time.

    A piece has a signal of its own, so what has come of it can be worked on. `piece` is a multiple of `block`; `block`,
    and `warps` (of a program, on a GPU), are powers of two. All programs must run at once. By packets an element is a
    word of 4 bytes, and a piece is a block.

    Raises:
        ArgumentError: the numbers do not fit.
    """

    programs: int
    piece: int
    block: int
    warps: int = 4

    def __post_init__(self) -> None:
        make_plain(self)
        check_counts("Plan", programs=self.programs, piece=self.piece)
        check_blocks("Plan", block=self.block, warps=self.warps)
        if self.piece % self.block:
            # The end of a piece would be the begin of the next one, which may not have come yet.
            detail = f"piece is {self.piece}; it must be a multiple of block, {self.block}"
            raise ArgumentError(op="Plan", detail=detail)

    @property
    def text(self) -> str:
        return f"{self.programs}x{self.piece}x{self.block}x{self.warps}"


PIECE_BYTES = 32 << 10
"""Of a piece at most: sums of one hide behind the way of the next."""


FEW_BYTES = 1 << 20
"""Below, pieces of `PIECE_BYTES` at most are faster even if nothing is overlapped."""


def plan_for(count: int, itemsize: int, overlapped: bool = True) -> Plan:
    """For `count` elements to each PE: few programs for what is small, all multiprocessors for what is large.

    `overlapped`: what has come is worked on while more is on its way, piece by piece. Otherwise a program has one.
    """
    if shmem.device().type == "cpu":
        return Plan(4, 4096, 4096)
    nbytes = count * itemsize
    if nbytes <= 64 << 10:
        block = max(256, 2048 // itemsize)
        return Plan(min(32, triton.cdiv(count, block)), block, block)
    multiprocessors = multiprocessors_of(shmem.device())
    if overlapped or nbytes < FEW_BYTES:
        programs, block, warps, most = 2 * multiprocessors, 8192 // itemsize, 8, PIECE_BYTES // itemsize
    else:
        programs, block, warps, most = multiprocessors, 16384 // itemsize, 16, None
    share = triton.cdiv(triton.cdiv(count, programs), block) * block
    return Plan(programs, max(block, min(share, most or share)), block, warps)


def check_known(op: str, dtype: torch.dtype) -> None:
    """Raise where Triton has no such numbers."""
    if dtype.is_complex:
        raise ArgumentError(op=op, detail=f"Triton has no {dtype}; torch.view_as_real makes real numbers of it")
    if not _known_to_triton(dtype):
        raise ArgumentError(op=op, detail=f"Triton has no {dtype}; a view as torch.uint8 has the same bytes")


def _known_to_triton(dtype: torch.dtype) -> bool:
    try:
        from triton._utils import canonicalize_dtype
    except ImportError:  # Triton 3.2, which triton-ascend builds on
        return True
    try:
        return bool(canonicalize_dtype(dtype))
    except KeyError:
        return False


class Counted(Collective):
    """Owns the memory of a counted collective: symmetric staging memory (twice), signals, the number of the call."""

    _launch: Callable[..., object]
    _again: Callable[..., bool]
    """`Repeated.again`, with what a call is given."""

    def __init__(
        self, stage: Sequence[int], dtype: torch.dtype, count: int, phases: int, plan: Plan,
        staged: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        """`count` of what a plan shares out; `staged`: its type in staging memory. No phases: no signals."""
        check_known(type(self).__name__, dtype)
        # The end of the last piece is counted too.
        given = "what a PE gives to another" if phases else "what a PE gives to another, as words of 4 bytes,"
        check_elements(type(self).__name__, plan.piece, **{given: count})
        self.dtype, self.phases, self.plan = dtype, phases, plan
        self._empty = count == 0
        self._pieces = max(1, triton.cdiv(count, self.plan.piece))
        self._programs = min(self.plan.programs, self._pieces)
        self._numbers = torch.zeros(self._programs, dtype=torch.int64, device=shmem.device())
        self._symmetric: list[torch.Tensor] = []
        if phases:
            self._signals = shmem.create_signals(2 * phases * self._pieces * shmem.n_pes())
            self._symmetric.append(self._signals)
        self._stage = self._make_symmetric((2, *stage), staged)

    def _gone(self, *_: torch.Tensor) -> bool:
        with self._alone:  # says why not
            return True

    def _make_symmetric(self, shape: Sequence[int], dtype: torch.dtype | None = None) -> torch.Tensor:
        made = shmem.create_tensor(shape, dtype or self.dtype)
        self._symmetric.append(made)
        return made

    def _repeated(
        self, kernel: triton.JITFunction, arguments: Sequence[object], written: Sequence[torch.Tensor] | None = None
    ) -> Callable[..., None]:
        self._again = lambda *_: False
        if self._empty:  # on every PE
            return lambda *_: None
        launch = Repeated(kernel, self._programs, arguments, self.plan.warps, written)
        if shmem.device().type != "cpu":  # there the look would take a part of a small call's time
            self._again = launch.again
            return launch

        def alone(*tensors: torch.Tensor) -> None:
            with self._alone:
                launch(*tensors)

        return alone

    def _lose(self, why: str) -> None:
        self._launch = self._again = self._gone
        super()._lose(why)

    def _release(self) -> None:
        self._launch = self._again = self._gone
        shmem.barrier_all()
        for tensor in reversed(self._symmetric):
            shmem.free_tensor(tensor)
