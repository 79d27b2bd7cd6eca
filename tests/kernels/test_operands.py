# SPDX-License-Identifier: MIT
"""What all operations refuse or take alike: gradients, calls after `free`, tensors that are not what memory holds."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad

from triton_dist import kernels, shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels import (
    AllGather,
    AllGatherGemm,
    AllGatherMatmul,
    AllReduce,
    GemmAllReduce,
    GemmReduceScatter,
    MatmulAllReduce,
    MatmulReduceScatter,
    ProducerConsumer,
    ReduceScatter,
)
from triton_dist.kernels.collective import Collective
from triton_dist.kernels.counted import Plan
from triton_dist.kernels.gemm_reduce_scatter import Tiles
from triton_dist.shmem import session
from triton_dist.testing import run_pes

PES = 2
F32 = torch.float32


@dataclass(frozen=True)
class Case:
    """An operation, the shapes of its operands, and which of them it writes."""

    make: Callable[[], Any]
    operands: dict[str, tuple[int, ...]]
    out: tuple[int, ...] | None = None

    def values(self) -> list[torch.Tensor]:
        return [torch.full(shape, 2.0 + shmem.my_pe()) for shape in self.operands.values()]


SQUARE, TALL = (4, 4), (4 * PES, 4)
CASES = {
    "AllGather": Case(lambda: AllGather((4,), F32), {"shard": (4,)}),
    "AllReduce": Case(lambda: AllReduce((4,), F32), {"source": (4,)}),
    "ReduceScatter": Case(lambda: ReduceScatter((4,), F32), {"parts": (PES, 4)}, out=(4,)),
    "ReduceScatter, pull": Case(lambda: ReduceScatter((4,), F32, pull=True), {"parts": (PES, 4)}, out=(4,)),
    "AllGatherGemm": Case(lambda: AllGatherGemm(4, 4, F32), {"a": SQUARE, "b": SQUARE}),
    "GemmAllReduce": Case(lambda: GemmAllReduce(4, 4), {"a": SQUARE, "b": SQUARE}),
    "GemmReduceScatter": Case(lambda: GemmReduceScatter(4, 4, F32), {"a": TALL, "b": SQUARE}),
    "AllGatherMatmul": Case(lambda: AllGatherMatmul(4, 4, F32), {"a": SQUARE, "b": SQUARE}, out=TALL),
    "MatmulAllReduce": Case(lambda: MatmulAllReduce(4, 4, F32), {"a": SQUARE, "b": SQUARE}),
    "MatmulReduceScatter": Case(lambda: MatmulReduceScatter(4, 4, F32), {"a": TALL, "b": SQUARE}),
    "ProducerConsumer": Case(lambda: ProducerConsumer(4, F32), {"rows": SQUARE}),
}
each_operation = pytest.mark.parametrize("name", CASES)


def test_no_operation_is_forgotten() -> None:
    named = {kind for kind in map(kernels.__dict__.get, kernels.__all__) if isinstance(kind, type)}
    assert {name.split(",")[0] for name in CASES} == {kind.__name__ for kind in named if issubclass(kind, Collective)}


@each_operation
def test_an_operand_that_requires_a_gradient_is_refused(name: str) -> None:
    """Before others hear of the call: PEs that were refused different numbers of calls are still in step."""
    case = CASES[name]

    def call() -> None:
        with case.make() as op:
            for round_ in range(3):
                for refused in [*case.operands, *(["out"] if case.out else [])] * (shmem.my_pe() + round_ % 2):
                    operands = dict(zip(case.operands, case.values(), strict=True))
                    operands[refused] = torch.zeros(operands.get(refused, torch.empty(case.out or ())).shape)
                    operands[refused].requires_grad_()
                    text = f"{type(op).__name__}: {refused} requires a gradient, and none comes back: give "
                    text += f"{refused}.detach(), or call under torch.no_grad()"
                    with pytest.raises(ArgumentError) as caught:
                        op(**operands)
                    assert str(caught.value) == text
                expected = op(*case.values()).clone()
                with torch.no_grad():
                    result = op(*(value.requires_grad_() for value in case.values()))
                assert not result.requires_grad
                assert torch.equal(result, expected)

    run_pes(call, PES)


@each_operation
def test_what_was_freed_says_so(name: str) -> None:
    case = CASES[name]

    def call() -> None:
        op = case.make()
        op(*case.values())
        op.free()
        for attempt in (lambda: op(*case.values()), op.free):
            with pytest.raises(ArgumentError, match=f"{type(op).__name__}: it was freed. Make another one"):
                attempt()

    run_pes(call, PES)


@each_operation
@pytest.mark.parametrize("made", [False, True])
def test_inference_mode_may_begin_or_end_between_calls(name: str, *, made: bool) -> None:
    case = CASES[name]

    def call() -> None:
        with torch.inference_mode(made):
            op = case.make()
        results = []
        for mode in (True, False, True):
            with torch.inference_mode(mode):
                results.append(op(*case.values()).clone())
        assert torch.equal(results[0], results[1])
        assert torch.equal(results[0], results[2])
        op.free()

    run_pes(call, PES)


@each_operation
def test_signs_that_torch_left_for_later(name: str) -> None:
    """A view of negated numbers may be contiguous, and have the positive ones in memory."""
    case = CASES[name]

    def call() -> None:
        with case.make() as op:
            expected = op(*(-value for value in case.values())).clone()
            assert torch.equal(op(*(torch._neg_view(value) for value in case.values())), expected)

    run_pes(call, PES)


@each_operation
@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_an_operand_without_memory_is_refused(name: str) -> None:
    case = CASES[name]

    def call() -> None:
        with case.make() as op:
            fakes = [FakeTensorMode().from_tensor(value) for value in case.values()]
            with pytest.raises(ArgumentError, match="is a FakeTensor without memory; keep the call out of what is tr"):
                op(*fakes)

    run_pes(call, PES)


@each_operation
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_of_other_kinds_are_refused(name: str) -> None:
    """The message names the operation and the operand; nothing is said to the other PEs."""
    case = CASES[name]
    op_name, operand = name.split(",")[0], next(iter(case.operands))
    others: dict[str, Callable[[torch.Tensor], Any]] = {
        "is on meta; this PE is on cpu": lambda t: t.to("meta"),
        "is nested; it must be dense": lambda t: torch.nested.as_nested_tensor([t, t]),
        "is torch.sparse_coo; it must be dense": lambda t: t.to_sparse(),
        "is a list; it must be a torch.Tensor": lambda t: t.tolist(),
        "is a ndarray; it must be a torch.Tensor": lambda t: t.numpy(),
        "is a NoneType; it must be a torch.Tensor": lambda t: None,
    }

    def call() -> None:
        with case.make() as op:
            for text, change in list(others.items())[:: 1 + shmem.my_pe()]:
                first, *more = case.values()
                with pytest.raises(ArgumentError) as raised:
                    op(change(first), *more)
                assert str(raised.value).startswith(f"{op_name}: {operand} {text}")
            op(*case.values())

    run_pes(call, PES)


@each_operation
def test_a_tangent_is_refused(name: str) -> None:
    case = CASES[name]

    def call() -> None:
        with case.make() as op:
            for _ in range(shmem.my_pe()):
                with forward_ad.dual_level():
                    duals = [forward_ad.make_dual(value, value) for value in case.values()]
                    with pytest.raises(ArgumentError, match="has a tangent, and none comes back"):
                        op(*duals)
            op(*case.values())

    run_pes(call, PES)


@each_operation
def test_what_was_made_before_finalize_says_so(name: str) -> None:
    """As PE 0 of 1 it would go on: the memory may be there still, but the others are not."""
    case = CASES[name]

    def call() -> None:
        operands = case.values()
        op = case.make()
        op(*operands)
        text = rf"^{type(op).__name__}: shmem\.finalize\(\) took its memory\. Make another one after shmem\.init\(\)$"
        shmem.finalize()
        for attempt in (lambda: op(*operands), op.free):
            with pytest.raises(ArgumentError, match=text):
                attempt()

    run_pes(call, PES)


@each_operation
def test_what_was_made_by_pes_that_are_over_says_so(name: str) -> None:
    made_by: dict[int, tuple[Any, list[torch.Tensor]]] = {}

    def make() -> None:
        made_by[shmem.my_pe()] = CASES[name].make(), CASES[name].values()

    def call() -> None:
        op, operands = made_by[shmem.my_pe()]
        with pytest.raises(ArgumentError, match=r"Make another one after shmem\.init\(\)$"):
            op(*operands)

    run_pes(make, PES)
    run_pes(call, PES)
    op, operands = made_by[0]
    with pytest.raises(ArgumentError, match=r"Make another one after shmem\.init\(\)$"):
        op(*operands)


def test_an_operation_that_nobody_has_any_more_hears_of_nothing() -> None:
    def call() -> None:
        owners = session.require("this").owners
        op = MatmulAllReduce(4, 4, F32)
        assert len(owners) == 2  # with what it is made of
        op.free()
        del op
        gc.collect()
        assert not owners

    run_pes(call, 1)


def made(kind: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[], object]:
    return lambda: kind(*arguments, **options)


NO_POWERS: tuple[tuple[str, Any], ...] = (
    ("m", 0), ("m", 24), ("n", -32), ("k", 20), ("k", True), ("m", 32.0), ("warps", 3)
)  # fmt: skip
NO_COUNTS: tuple[tuple[str, Any], ...] = (("group", 0), ("stages", -1), ("sums", 0), ("chunk", 0))
WRONG: dict[str, Callable[[], object]] = {
    **{f"Tiles: {name} is {n!r}; it must be a power of two": made(Tiles, **{name: n}) for name, n in NO_POWERS},
    **{f"Tiles: {name} is {n!r}; it must be 1 or more": made(Tiles, **{name: n}) for name, n in NO_COUNTS},
    "Tiles: chunk is 1.5; it must be a whole number, 1 or more": made(Tiles, chunk=1.5),
    "Plan: programs is 0; it must be 1 or more": made(Plan, 0, 256, 256),
    "Plan: piece is 0; it must be 1 or more": made(Plan, 1, 0, 256),
    "Plan: block is 100; it must be a power of two": made(Plan, 1, 100, 100),
    "Plan: warps is 0; it must be a power of two": made(Plan, 1, 256, 256, 0),
    "Plan: piece is 300; it must be a multiple of block, 256": made(Plan, 1, 300, 256),
    "AllGatherGemm: pushers is 0; it must be 1 or more": made(AllGatherGemm, 4, 4, F32, pushers=0),
    "AllGatherGemm: workers is 0; it must be 1 or more": made(AllGatherGemm, 4, 4, F32, workers=0),
    "AllGatherGemm: blocks[1] is 48; it must be a power of two": made(AllGatherGemm, 4, 4, F32, blocks=(16, 48, 16)),
    "GemmAllReduce: programs is -1; it must be 1 or more": made(GemmAllReduce, 4, 4, programs=-1),
    "GemmAllReduce: blocks is (16, 16); it must be three numbers, for m, n and k": made(
        GemmAllReduce, 4, 4, blocks=(16, 16)
    ),
    "ProducerConsumer: slots is 0; it must be 1 or more": made(ProducerConsumer, 4, F32, slots=0),
    "ProducerConsumer: consumers is 0; it must be 1 or more": made(ProducerConsumer, 4, F32, consumers=0),
    "GemmReduceScatter: it multiplies floats of up to 32 bits, not torch.float8_e8m0fnu. MatmulReduceScatter "
    "multiplies whatever torch does": made(GemmReduceScatter, 4, 4, torch.float8_e8m0fnu),
}


@pytest.mark.parametrize("message", WRONG)
def test_numbers_with_which_nothing_can_be_done(message: str) -> None:
    def make() -> str:
        with pytest.raises(ArgumentError) as caught:
            WRONG[message]()
        return str(caught.value)

    assert run_pes(make, 1) == [message]


LARGE = 1 << 31
I8, SMALL_PLAN = torch.int8, Plan(1, 1024, 1024)


def wide(rows: int, columns: int) -> torch.Tensor:
    """So many elements, and the memory of one."""
    return torch.zeros(1).expand(rows, columns)


TOO_LARGE: dict[str, Callable[[], object]] = {
    "AllGather: what a PE gives to another": made(AllGather, (LARGE,), I8, plan=SMALL_PLAN),
    "AllGather: what a PE gives": made(AllGather, (LARGE - 1024,), I8, plan=SMALL_PLAN),
    "ReduceScatter: what a PE gives to another": made(ReduceScatter, (2, LARGE), I8),
    "AllReduce: what a PE gives to another": made(AllReduce, (LARGE,), I8, algorithm="one-shot"),
    "AllReduce: what a PE gives to another, as words of 4 bytes,": made(AllReduce, (LARGE,), F32, packets=True),
    "AllGatherGemm: a": made(AllGatherGemm, 1 << 16, 1 << 15, F32),
    "AllGatherGemm: b": lambda: AllGatherGemm(1, 1 << 16, F32)(wide(1, 1 << 16), wide(1 << 16, 1 << 15)),
    "GemmAllReduce: the result": made(GemmAllReduce, 1 << 16, 1 << 15),
    "GemmAllReduce: a": lambda: GemmAllReduce(1 << 16, 1)(wide(1 << 16, 1 << 15), wide(1 << 15, 1)),
    "GemmAllReduce: b": lambda: GemmAllReduce(1, 1 << 16)(wide(1, 1 << 15), wide(1 << 15, 1 << 16)),
}


@pytest.mark.parametrize("begin", TOO_LARGE)
def test_more_than_a_kernel_counts(begin: str) -> None:
    """Said before memory is asked for, and before other PEs are told of a call."""

    def make() -> None:
        with pytest.raises(ArgumentError, match=rf"^{begin}.* has \d+ elements; a call takes at most 214\d+, so"):
            TOO_LARGE[begin]()

    run_pes(make, 1)


@pytest.mark.parametrize(("rows", "length"), [(3, 0), (0, 4), (0, 0)])
def test_a_queue_of_rows_without_elements(rows: int, length: int) -> None:
    def call() -> None:
        with ProducerConsumer(length, F32, slots=2) as queue:
            for _ in range(2):
                assert queue(torch.ones(rows, length)).shape == (rows, length)

    run_pes(call, PES)


@pytest.mark.parametrize("scale", ["2", None, torch.tensor(2.0)], ids=str)
def test_a_scale_that_is_no_number(scale: Any) -> None:
    """No other PE has heard of that call: the next one is right."""

    def call() -> None:
        with ProducerConsumer(4, F32) as queue:
            if shmem.my_pe() == 0:
                with pytest.raises(ArgumentError, match=r"^ProducerConsumer: scale is .*; it must be a number$"):
                    queue(SQUARE, scale=scale)
            assert queue(torch.ones(4, 4), scale=2).eq(2).all()

    run_pes(call, PES)
