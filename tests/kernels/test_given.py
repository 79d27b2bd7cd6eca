# SPDX-License-Identifier: MIT
"""What operations are made with: things of the right kinds, and the same on every PE."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
import torch

from triton_dist import shmem
from triton_dist.errors import ArgumentError, CollectiveMismatch, NotInitialized, TritonDistError
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
    Tiles,
)
from triton_dist.kernels.counted import Plan
from triton_dist.testing import run_pes

F32 = torch.float32
COLLECTIVES = AllGather, AllReduce, ReduceScatter
GEMMS = AllGatherGemm, AllGatherMatmul, GemmReduceScatter, MatmulAllReduce, MatmulReduceScatter

Make = Callable[[], object]
Case = tuple[str, Make]


def made(kind: Callable[..., object], *arguments: Any, **options: Any) -> Make:
    return lambda: kind(*arguments, **options)


def shapes() -> list[Case]:
    text = "shape is {!r}; it must be a tuple of whole numbers, 0 or more"
    wrong = 4, (-1,), (-4, -1), (2.0,), (True,), "ab", None, (4, "4")
    return [
        (f"{kind.__name__}: {text.format(shape)}", made(kind, shape, F32)) for kind in COLLECTIVES for shape in wrong
    ]


def sizes() -> list[Case]:
    text = "{} is {!r}; it must be a whole number, 0 or more"
    cases = []
    for kind in (*GEMMS, GemmAllReduce, ProducerConsumer):
        names = [name for name, p in inspect.signature(kind).parameters.items() if p.default is inspect.Parameter.empty]
        for wrong in (-4, 4.0, "4", True, None, (4,)):
            arguments = [wrong] * len(names) if kind is GemmAllReduce else [wrong] * (len(names) - 1) + [F32]
            cases.append((f"{kind.__name__}: {text.format(names[0], wrong)}", made(kind, *arguments)))
    return cases


def dtypes() -> list[Case]:
    text = "dtype is {!r}; it must be a torch.dtype, torch.float32 say"
    of_shape = [(kind, [(4,)]) for kind in COLLECTIVES]
    of_sizes: list[tuple[Any, list[Any]]] = [(kind, [4, 4]) for kind in GEMMS]
    return [
        (f"{kind.__name__}: {text.format(wrong)}", made(kind, *arguments, wrong))
        for kind, arguments in [*of_shape, *of_sizes, (ProducerConsumer, [4])]
        for wrong in ("float32", float, None)
    ]


PLAN = 1, 16, 16
OPTIONS: list[Case] = [
    ("AllGather: packets is 'no'; it must be True or False, or None", made(AllGather, (4,), F32, packets="no")),
    ("AllReduce: packets is 0; it must be True or False, or None", made(AllReduce, (4,), F32, packets=0)),
    ("AllGather: direct is 1; it must be True or False, or None", made(AllGather, (4,), F32, direct=1)),
    ("ReduceScatter: pull is 'no'; it must be True or False, or None", made(ReduceScatter, (4,), F32, pull="no")),
    ("AllReduce: plan is (1, 16, 16); it must be a Plan, or None", made(AllReduce, (4,), F32, plan=PLAN)),
    ("GemmReduceScatter: tiles is 3; it must be a Tiles, or None", made(GemmReduceScatter, 4, 4, F32, tiles=3)),
    ("MatmulReduceScatter: pieces is 2.0; it must be a whole number, or None",
        made(MatmulReduceScatter, 4, 4, F32, pieces=2.0)),
    ("AllGatherMatmul: first is True; it must be a whole number, or None",
        made(AllGatherMatmul, 4, 4, F32, first=True)),
    ("AllGather: Triton has no torch.float8_e8m0fnu; a view as torch.uint8 has the same bytes",
        made(AllGather, (4,), torch.float8_e8m0fnu)),
    ("AllGather: Triton has no torch.uint4; a view as torch.uint8 has the same bytes",
        made(AllGather, (4,), torch.uint4, packets=True)),
    ("ProducerConsumer: Triton has no torch.float8_e8m0fnu; a view as torch.uint8 has the same bytes",
        made(ProducerConsumer, 4, torch.float8_e8m0fnu)),
    ("ProducerConsumer: Triton has no torch.complex64; torch.view_as_real makes real numbers of it",
        made(ProducerConsumer, 4, torch.complex64)),
]  # fmt: skip


WRONG = [*shapes(), *sizes(), *dtypes(), *OPTIONS]


@pytest.mark.parametrize(("message", "make"), WRONG, ids=[message[:60] for message, _ in WRONG])
def test_what_is_of_another_kind(message: str, make: Make) -> None:
    def call() -> str:
        with pytest.raises(ArgumentError) as caught:
            make()
        return str(caught.value)

    assert run_pes(call, 1) == [message]


class Number:
    """A whole number of another type than Python's, as numpy has them."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __index__(self) -> int:
        return self._value


class Algorithm(str, Enum):
    ONE = "one-shot"


def of(value: int) -> Any:
    return Number(value)


ALIKE: dict[str, tuple[Make, Make]] = {
    "shape": (made(AllReduce, (4,), F32), made(AllReduce, [of(4)], F32)),
    "plan": (
        made(AllGather, (4,), F32, plan=Plan(1, 16, 16)),
        made(AllGather, (4,), F32, plan=Plan(of(1), of(16), of(16), of(4))),
    ),
    "tiles": (
        made(GemmReduceScatter, 4, 4, F32, tiles=Tiles(16, 16, 16)),
        made(GemmReduceScatter, 4, 4, F32, tiles=Tiles(of(16), of(16), of(16))),
    ),
    "choice": (made(AllReduce, (4,), F32, algorithm="one-shot"), made(AllReduce, (4,), F32, algorithm=Algorithm.ONE)),
    "blocks": (made(AllGatherGemm, 4, 4, F32), made(AllGatherGemm, 4, 4, F32, blocks=[of(64), 64, of(32)])),
    "count": (made(AllGatherGemm, 4, 4, F32), made(AllGatherGemm, m=4, k=4, dtype=F32, pushers=of(1))),
    "optional": (
        made(MatmulReduceScatter, 4, 4, F32, pieces=2),
        made(MatmulReduceScatter, 4, 4, F32, pieces=of(2)),
    ),
    "left out": (made(AllReduce, (4,), F32), made(AllReduce, dtype=F32, shape=(4,), plan=None)),
}


@pytest.mark.parametrize("what", ALIKE)
def test_what_is_equal_is_alike(what: str) -> None:
    def call(pe: int) -> None:
        op: Any = ALIKE[what][pe]()
        op(*operands_of(op))
        op.free()

    run_pes(call, 2)


def operands_of(op: object) -> tuple[torch.Tensor, ...]:
    if isinstance(op, AllReduce | AllGather):
        return (torch.ones(4),)
    rows = 8 if isinstance(op, GemmReduceScatter | MatmulReduceScatter) else 4
    return torch.ones(rows, 4), torch.eye(4)


def test_what_is_no_number_is_refused_alike_though_each_pe_has_another() -> None:
    cases = (
        (lambda: AllGatherGemm(4, 4, F32, pushers=object()), "pushers is <object .*> *; it must be a whole number, 1"),  # type: ignore[arg-type]
        (lambda: AllReduce((4,), F32, algorithm=object()), "algorithm is <object .*>; it must be one of one-shot,"),  # type: ignore[arg-type]
        (lambda: MatmulAllReduce(torch.ones(2, dtype=torch.int64), 4, F32), "m is tensor.*; it must be a whole"),  # type: ignore[arg-type]
        (lambda: AllReduce(b"ab", F32), "shape is b'ab'; it must be a tuple of whole numbers"),  # type: ignore[arg-type]
    )

    def call() -> None:
        for make, message in cases:
            with pytest.raises(ArgumentError, match=message):
                make()

    run_pes(call, 2)


class Twice(AllReduce):
    def __init__(self) -> None:
        for _ in range(2):
            super().__init__((2,), F32)


@dataclass
class Unhashable(AllReduce):
    count: int

    def __post_init__(self) -> None:
        super().__init__((self.count,), F32)


def test_an_operation_is_made_once() -> None:
    def call() -> None:
        op = AllReduce((2,), F32)
        for again in (lambda: op.__init__((3,), F32), Twice):
            with pytest.raises(ArgumentError, match=r"^AllReduce: this one is made already; make another one"):
                again()
        assert op(torch.ones(2)).tolist() == [2.0, 2.0]

    run_pes(call, 2)


def test_a_class_of_the_users_need_not_be_hashable() -> None:
    def call() -> AllReduce:
        op = Unhashable(2)
        assert op(torch.ones(2)).tolist() == [2.0, 2.0]
        return op

    with pytest.raises(ArgumentError, match=r"shmem.finalize\(\) took its memory"):
        run_pes(call, 2)[0](torch.ones(2))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_operation_is_not_copied(copied: Callable[[object], object]) -> None:
    def call() -> None:
        with pytest.raises(ArgumentError, match=r"^AllReduce: it owns memory of the PEs, so it cannot be copied"):
            copied(AllReduce((2,), F32))

    run_pes(call, 1)


def test_whole_numbers_and_shapes_of_other_types() -> None:
    number: Any = of(4)
    shapes: tuple[Any, ...] = (4,), [4], torch.Size([4]), (number,)

    def call() -> None:
        for shape in shapes:
            reduce = AllReduce(shape, F32)
            assert reduce.shape == (4,)
            assert reduce(torch.ones(4)).tolist() == [2.0] * 4
            reduce.free()
        op = MatmulAllReduce(number, number, F32)
        assert torch.equal(op(torch.eye(4), torch.eye(4)), 2 * torch.eye(4))
        op.free()

    run_pes(call, 2)


# Alike on every PE

PAIRS: dict[str, tuple[Make, Make]] = {
    "type": (made(AllReduce, (8,), F32, packets=True), made(AllReduce, (8,), torch.int32, packets=True)),
    "operation": (made(ReduceScatter, (8,), F32), made(AllReduce, (8,), F32, algorithm="one-shot")),
    "packets": (made(AllGather, (8,), F32, packets=True), made(AllGather, (8,), F32, packets=False)),
    "plan": (made(AllGather, (64,), F32, plan=Plan(2, 16, 16)), made(AllGather, (64,), F32, plan=Plan(4, 16, 16))),
    "size": (made(MatmulAllReduce, 4, 8, F32), made(MatmulAllReduce, 8, 4, F32)),
    "blocks": (made(GemmAllReduce, 4, 4), made(GemmAllReduce, 4, 4, blocks=(64, 64, 16))),
}


@pytest.mark.parametrize("what", PAIRS)
def test_pes_that_make_different_operations(what: str) -> None:
    """Some of these ask for equal memory: they would go on to wrong numbers, or wait for ever."""
    raised: list[str] = []

    def call() -> None:
        try:
            PAIRS[what][shmem.my_pe()]()
        except CollectiveMismatch as error:
            raised.append(str(error))
            raise

    with pytest.raises(TritonDistError):
        run_pes(call, 2)
    assert raised
    for line, pe in zip(raised[0].splitlines()[1:], range(2), strict=True):
        assert line.startswith(f"  PE {pe}: ")
        assert re.search(r": (All|Reduce|Matmul|Gemm)\w+\(.*\) at \S*test_given\.py:\d+", line)


class OfTheUsers(AllReduce):
    def __init__(self, pe: int, count: Any) -> None:
        super().__init__((count,), F32)
        self.pe = pe


def test_a_class_of_the_users_may_have_arguments_that_differ() -> None:
    def call() -> list[float]:
        op = OfTheUsers(shmem.my_pe(), 2)
        with pytest.raises(ArgumentError, match=r"^AllReduce: shape is \(0\.5,\)"):
            OfTheUsers(0, 0.5)
        return op(torch.ones(2)).tolist()

    assert run_pes(call, 2) == [[2.0, 2.0]] * 2
    with pytest.raises(CollectiveMismatch, match=r"PE 0: AllReduce\(\(4,\), torch.float32\)"):
        run_pes(lambda: OfTheUsers(0, 4 + shmem.my_pe()), 2)


def test_arguments_that_are_missing_or_unknown() -> None:
    def call() -> None:
        for make, text in (made(AllReduce, (4,)), "'dtype'"), (made(AllReduce, (4,), F32, paket=1), "'paket'"):
            with pytest.raises(TypeError, match=rf"^AllReduce: .*{text}"):
                make()

    run_pes(call, 1)


def test_an_error_names_the_line_that_made_the_operation() -> None:
    def call() -> None:
        with pytest.raises(TritonDistError, match=r"test_given\.py:\d+: create_\w+\(.* needs \d+ bytes"):
            AllGather((1 << 26,), F32)

    run_pes(call, 1, heap_size=1 << 20)


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_without_init(kind: Callable[..., object]) -> None:
    with pytest.raises(NotInitialized, match=f"^{kind.__name__} needs a PE"):
        kind((4,), F32)


def test_an_operation_whose_freeing_failed_is_gone() -> None:
    """Its next call returned what nobody had written."""

    def call() -> None:
        ops = [AllReduce((4,), F32), MatmulAllReduce(4, 4, F32)], [AllReduce((4,), F32), MatmulAllReduce(4, 4, F32)]
        for op, x in zip(ops[shmem.my_pe()], ((torch.ones(4),), (torch.ones(4, 4), torch.eye(4))), strict=True):
            with pytest.raises(CollectiveMismatch):
                op.free()
            for again in (lambda: op(*x), op.free):  # noqa: B023
                with pytest.raises(
                    ArgumentError, match=r": its free\(\) failed with CollectiveMismatch\. Make another"
                ):
                    again()

    run_pes(call, 2)
