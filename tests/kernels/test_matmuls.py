# SPDX-License-Identifier: MIT
"""GEMMs with communication that are made of several launches, against torch."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from triton_dist import kernels, platform, shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels import (
    AllGatherGemm,
    AllGatherMatmul,
    AllReduce,
    GemmAllReduce,
    GemmReduceScatter,
    MatmulAllReduce,
    MatmulReduceScatter,
)
from triton_dist.kernels.counted import plan_for
from triton_dist.kernels.device import multiprocessors_of
from triton_dist.kernels.gemm_reduce_scatter import Tiles, _copies_in_bulk, _described
from triton_dist.testing import run_pes

PES = (1, 2, 3, 4)
CALLS = 5


def numbers(rows: int, columns: int, seed: int) -> torch.Tensor:
    """Small whole numbers: their products and sums are exact."""
    return torch.randint(-4, 5, (rows, columns), generator=torch.Generator().manual_seed(seed)).float()


def equal(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("size", [(1, 1, 1), (24, 33, 50)])
@pytest.mark.parametrize("pes", PES)
def test_all_gather_matmul(pes: int, size: tuple[int, int, int]) -> None:
    check_all_gather_matmul(pes, *size, first=None)


@pytest.mark.parametrize("first", [1, 7, 23, 24])
def test_the_first_rows_may_be_any(first: int) -> None:
    check_all_gather_matmul(2, 24, 33, 50, first)


def check_all_gather_matmul(pes: int, m: int, n: int, k: int, first: int | None) -> None:
    def multiply() -> None:
        with AllGatherMatmul(m, k, torch.float32, first=first) as op:
            for call in range(CALLS):
                shards = [numbers(m, k, 10 * call + pe) for pe in range(pes)]
                b = numbers(k, n, 100 + shmem.my_pe())
                equal(op(shards[shmem.my_pe()], b), torch.cat(shards) @ b)

    run_pes(multiply, pes)


@pytest.mark.parametrize("pieces", [None, 0, 1, 3])
@pytest.mark.parametrize("pes", PES)
def test_matmul_reduce_scatter(pes: int, pieces: int | None) -> None:
    check_reduce_scatter(pes, 12, 17, 40, lambda m, n: MatmulReduceScatter(m, n, torch.float32, pieces=pieces))


@pytest.mark.parametrize("size", [(1, 1, 1), (32, 32, 32), (33, 70, 50), (80, 40, 96)])
@pytest.mark.parametrize("pes", PES)
def test_gemm_reduce_scatter(pes: int, size: tuple[int, int, int]) -> None:
    tiles = Tiles(32, 32, 16, group=2, warps=4, chunk=1)
    check_reduce_scatter(pes, *size, lambda m, n: GemmReduceScatter(m, n, torch.float32, tiles=tiles))


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.parametrize("descriptors", [False, True])
@pytest.mark.parametrize("size", [(50, 36, 44), (130, 100, 33)])
def test_gemm_reduce_scatter_in_chunks(
    size: tuple[int, int, int], *, descriptors: bool, chunk: int, near: bool
) -> None:
    """Rows of 33 numbers cannot be described: these are loaded by pointers."""
    if near and platform.current().backend == "ascend":
        pytest.skip("Ascend's signals have no scope of a device")
    tiles = Tiles(32, 32, 16, group=2, warps=4, chunk=chunk)

    def make(m: int, n: int) -> GemmReduceScatter:
        shmem.adapter().on_one_device = lambda: near  # type: ignore[method-assign]
        op = GemmReduceScatter(m, n, torch.float32, tiles=tiles, descriptors=descriptors)
        ones = torch.ones(4, size[2])
        assert (op._as_descriptors(ones, ones) is not None) == (descriptors and size[2] % 4 == 0)
        return op

    check_reduce_scatter(3, *size, make)


def test_what_can_be_described() -> None:
    whole = torch.zeros(4, 16)
    assert _described(whole, 2, 4).block_shape == [2, 4]
    assert list(_described(whole.bfloat16(), 2, 8).shape) == [4, 16]
    assert _described(torch.zeros(4, 6), 2, 4) is None
    assert _described(whole.view(-1)[1:49].view(3, 16), 2, 4) is None
    assert _described(torch.zeros(0, 16), 2, 4) is None
    # A tile must be as wide as what is copied; and the stride of a single row means nothing.
    assert _described(whole, 2, 2) is None
    assert _described(torch.zeros(1, 33)[:, :16], 2, 4).strides == [16, 1]


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, **properties: int) -> torch.device:
    module = SimpleNamespace(get_device_properties=lambda device: SimpleNamespace(**properties))
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    return torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("room", "itemsize", "stages", "sums"),
    [(227, 2, 4, 3), (163, 2, 3, 2), (99, 2, 2, 1), (227, 4, 2, 1), (48, 2, 1, 1)],
)
def test_stages_fit_the_shared_memory(
    monkeypatch: pytest.MonkeyPatch, room: int, itemsize: int, stages: int, sums: int
) -> None:
    device = on_a_gpu(monkeypatch, shared_memory_per_block_optin=room << 10)
    fitting = Tiles().fitting(device, itemsize)
    assert (fitting.stages, fitting.sums) == (stages, sums)


@pytest.mark.parametrize(("count", "chunk"), [(0, 1), (131, 1), (132, 1), (264, 2), (10_000, 4)])
def test_chunks_leave_work_for_all_multiprocessors(monkeypatch: pytest.MonkeyPatch, count: int, chunk: int) -> None:
    assert Tiles().spread(on_a_gpu(monkeypatch, multi_processor_count=132), count).chunk == chunk


def test_a_device_may_count_cores_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for counts, wanted in (({"multi_processor_count": 132}, 132), ({"vector_core_num": 40}, 40), ({}, 1)):
        device = on_a_gpu(monkeypatch, **counts)
        monkeypatch.setattr(shmem, "device", lambda device=device: device)
        assert multiprocessors_of(device) == wanted
        assert Tiles().spread(device, 3 * wanted).chunk == 3
        assert plan_for(1 << 24, 2).programs == 2 * wanted
        assert plan_for(1 << 24, 2, overlapped=False).programs == wanted
        # What was not asked for has no stage of shared memory.
        assert Tiles().fitting(device, 2).stages == 1


def test_descriptors_are_for_hopper_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _copies_in_bulk(on_a_gpu(monkeypatch, major=9))
    assert not _copies_in_bulk(on_a_gpu(monkeypatch, major=8))
    assert not _copies_in_bulk(torch.device("cpu"))
    monkeypatch.setattr(torch.version, "hip", "7.0")
    assert not _copies_in_bulk(on_a_gpu(monkeypatch, major=9))


def test_pes_that_share_a_gpu_get_one_kernel() -> None:
    def multiply() -> str:
        shmem.adapter().shares_device = lambda: True  # type: ignore[method-assign]
        one, other = (MatmulReduceScatter(8, 8, dtype) for dtype in (torch.bfloat16, torch.float32))
        assert [(op.m, op.n, op.dtype) for op in (one, other)] == [(8, 8, torch.bfloat16), (8, 8, torch.float32)]
        ones = torch.ones(16, 8)
        assert (one(ones.bfloat16(), ones[:8].bfloat16()) == 16).all()
        other.free()
        one.free()
        return f"{type(one._fused).__name__} {other._fused}"

    assert run_pes(multiply, 2) == ["GemmReduceScatter None"] * 2


def check_reduce_scatter(pes: int, m: int, n: int, k: int, make: Callable[[int, int], Any]) -> None:
    def multiply() -> None:
        me = shmem.my_pe()
        with make(m, n) as op:
            for call in range(CALLS):
                wide = [numbers(pes * m, k, 10 * call + pe) for pe in range(pes)]
                tall = [numbers(k, n, 100 + 10 * call + pe) for pe in range(pes)]
                total = sum(a @ b for a, b in zip(wide, tall, strict=True))
                equal(op(wide[me], tall[me]), total[me * m : (me + 1) * m])  # type: ignore[index]

    run_pes(multiply, pes)


@pytest.mark.parametrize("m", [1, 16, 50])
@pytest.mark.parametrize("pes", PES)
def test_matmul_all_reduce(pes: int, m: int) -> None:
    n, k = 130, 40

    def multiply() -> None:
        me = shmem.my_pe()
        with MatmulAllReduce(m, n, torch.float32) as op:
            for call in range(CALLS):
                wide = [numbers(m, k, 10 * call + pe) for pe in range(pes)]
                tall = [numbers(k, n, 100 + 10 * call + pe) for pe in range(pes)]
                equal(op(wide[me], tall[me]), sum(a @ b for a, b in zip(wide, tall, strict=True)))  # type: ignore[arg-type]

    run_pes(multiply, pes)


def lay(matrix: torch.Tensor, how: str) -> torch.Tensor:
    """The same numbers, elsewhere in memory."""
    if how == "columns":
        return matrix.T.contiguous().T
    height, width = matrix.shape
    if how == "off by one":  # no descriptor can have such an address
        return torch.empty(matrix.numel() + 1, dtype=matrix.dtype)[1:].view(height, width).copy_(matrix)
    return torch.empty(height, width + 7, dtype=matrix.dtype)[:, 3 : 3 + width].copy_(matrix)


LAYOUTS = ("columns", "off by one", "part")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("size", [(33, 48, 32), (1, 16, 16), (64, 32, 1), (20, 32, 0)])
@pytest.mark.parametrize("pes", [2, 3])
def test_operands_may_lie_differently_on_each_pe(pes: int, size: tuple[int, int, int], dtype: torch.dtype) -> None:
    """One PE loads by descriptors what another loads by pointers; two operations take turns."""
    if dtype.itemsize == 1 and platform.current().backend == "ascend":
        pytest.skip("Ascend's library sends no floats of a byte")
    m, n, k = size
    tiles = Tiles(32, 32, 16, group=2, warps=4, chunk=2)

    def multiply() -> None:
        me = shmem.my_pe()
        ops = [GemmReduceScatter(m, n, dtype, tiles=tiles, descriptors=True) for _ in range(2)]
        for call in range(2 * len(LAYOUTS)):
            wide = [numbers(pes * m, k, 10 * call + pe).sign() for pe in range(pes)]
            tall = [numbers(k, n, 100 + 10 * call + pe).sign() for pe in range(pes)]
            total = sum(a @ b for a, b in zip(wide, tall, strict=True))[me * m : (me + 1) * m]  # type: ignore[index]
            a, b = (lay(x[me].to(dtype), LAYOUTS[(call + me + i) % 3]) for i, x in enumerate((wide, tall)))
            found = ops[call % 2](a, b).float()
            # Sums of up to 3 * 32 ones; with few bits they are rounded where they are sent.
            torch.testing.assert_close(found, total, rtol=0, atol=0 if dtype.itemsize > 1 else 8)
        for op in ops:
            op.free()

    run_pes(multiply, pes)


SCATTERS: dict[str, Callable[[int, int], Any]] = {
    "one kernel": lambda m, n: GemmReduceScatter(m, n, torch.float32),
    "copies": lambda m, n: MatmulReduceScatter(m, n, torch.float32),
    "stores": lambda m, n: MatmulReduceScatter(m, n, torch.float32, pieces=0),
}


@pytest.mark.parametrize("kind", SCATTERS)
@pytest.mark.parametrize("pes", PES)
def test_a_sum_may_be_a_factor_of_the_next(pes: int, kind: str) -> None:
    size = 70

    def multiply() -> None:
        me = shmem.my_pe()
        factors = [numbers(size, size, pe) for pe in range(pes)]
        with SCATTERS[kind](size, size) as op:
            found = factors[me]
            for call in range(3):
                wide = [numbers(pes * size, size, 10 * call + pe).sign() for pe in range(pes)]
                total = sum(a @ b for a, b in zip(wide, factors, strict=True))
                factors = list(total.split(size))  # type: ignore[union-attr]
                found = op(wide[me], found)
                equal(found, factors[me])
            if pes == 1:
                equal(op(found, found), factors[0] @ factors[0])

    run_pes(multiply, pes)


@pytest.mark.parametrize("pes", PES)
def test_a_product_may_replace_its_factors(pes: int) -> None:
    m, k = 64, 64 * pes

    def multiply() -> None:
        me = shmem.my_pe()
        with AllGatherMatmul(m, k, torch.float32) as op:
            for call in range(2 * pes):
                shards = [numbers(m, k, 10 * call + pe) for pe in range(pes)]
                b = numbers(k, k, 100 + me)
                expected = torch.cat(shards) @ b
                if call < pes:
                    out = torch.empty(k, k)
                    rows = out[call * m : (call + 1) * m]
                    equal(op(rows.copy_(shards[me]), b, out), expected)
                else:
                    equal(op(shards[me], b, b), expected)

    run_pes(multiply, pes)


def described(m: int, n: int) -> Any:
    return GemmReduceScatter(m, n, torch.float32, descriptors=True)


@pytest.mark.parametrize("size", [(0, 4, 4), (4, 0, 4), (4, 4, 0), (0, 0, 0)])
@pytest.mark.parametrize("pes", PES)
def test_sizes_may_be_zero(pes: int, size: tuple[int, int, int]) -> None:
    m, n, k = size

    def multiply() -> None:
        for make in (*SCATTERS.values(), described, lambda m, n: MatmulAllReduce(m, n, torch.float32), GemmAllReduce):
            with make(m, n) as op:
                summed = isinstance(op, MatmulAllReduce | GemmAllReduce)
                for _ in range(2):
                    a = torch.ones(m if summed else pes * m, k)
                    equal(op(a, torch.ones(k, n)), torch.full((m, n), k * pes * 1.0))
        for gather in (AllGatherMatmul, AllGatherGemm):
            with gather(m, k, torch.float32) as op:
                for _ in range(2):
                    equal(op(torch.ones(m, k), torch.ones(k, n)), torch.full((pes * m, n), k * 1.0))

    run_pes(multiply, pes)


@pytest.mark.parametrize("gather", [AllGatherMatmul, AllGatherGemm])
@pytest.mark.parametrize("pes", PES)
def test_a_pe_may_have_no_columns(pes: int, gather: Callable[..., Any]) -> None:
    """It still keeps step with the others."""

    def multiply() -> None:
        me = shmem.my_pe()
        with gather(65, 33, torch.float32) as op:
            for call in range(20):
                shards, b = [numbers(65, 33, call + pe) for pe in range(pes)], numbers(33, 40 if me else 0, call)
                equal(op(shards[me], b), torch.cat(shards) @ b)

    run_pes(multiply, pes)


REFUSED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "is on meta": lambda a: a.to("meta"),
    "must be dense": lambda a: a.to_sparse(),
    "must be a torch.Tensor": lambda _: None,  # type: ignore[return-value, arg-type]
    "must be [0-9a-z]* x": lambda a: a[:1],
}


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("name", ["GemmReduceScatter", "MatmulReduceScatter", "AllGatherMatmul", "AllGatherGemm"])
def test_a_refused_call_is_none(name: str, refused: str) -> None:
    """PEs that were refused different numbers of calls are still in step."""
    make = getattr(kernels, name)

    def multiply() -> None:
        me = shmem.my_pe()
        with make(4, 4, torch.float32) as op:
            a, b = torch.ones(4 if "Gather" in name else 8, 4), torch.eye(4)
            for call in range(6):
                for _ in range(me + call % 2):
                    with pytest.raises(ArgumentError, match=f"a .*{refused}"):
                        op(REFUSED[refused](a), b)
                found = op(a * (call + me), b)
                gathered = torch.tensor([call] * 4 + [call + 1] * 4)[:, None].expand(8, 4).float()
                equal(found, gathered if "Gather" in name else torch.full((4, 4), 2 * call + 1.0))

    run_pes(multiply, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: AllReduce((4,), torch.float32),
        lambda: MatmulReduceScatter(4, 4, torch.float32),
        lambda: AllGatherGemm(4, 4, torch.float32),
    ],
)
def test_two_calls_at_once_are_refused(make: Callable[[], Any]) -> None:
    """What a second thread would find, while a first one is inside."""

    def call() -> None:
        with make() as op:
            operands = [torch.ones(4)] if isinstance(op, AllReduce) else [torch.ones(4, 4)] * 2
            message = f"{type(op).__name__}: another thread is in a call of it"
            with op._alone, pytest.raises(ArgumentError, match=message):
                op(*operands)
            op(*operands)

    run_pes(call, 1)


WRONG: dict[str, Callable[[], object]] = {
    **{
        f"{kind.__name__}: it multiplies floats of up to 32 bits, not torch.float64. {instead} multiplies whatever "
        "torch does": (lambda kind=kind: kind(4, 4, torch.float64))
        for kind, instead in ((GemmReduceScatter, "MatmulReduceScatter"), (AllGatherGemm, "AllGatherMatmul"))
    },
    "GemmAllReduce: it multiplies floats of up to 32 bits, not torch.int8. MatmulAllReduce multiplies whatever torch "
    "does": lambda: GemmAllReduce(4, 4)(torch.zeros(4, 4).char(), torch.zeros(4, 4).char()),
    "AllGatherMatmul: out is expanded: several of its elements are one": lambda: AllGatherMatmul(4, 4, torch.float32)(
        torch.zeros(4, 4), torch.zeros(4, 4), torch.zeros(1, 4).expand(4, 4)
    ),
    "AllGatherMatmul: first is 3; it must be 4, or left out: less is for two PEs": lambda: AllGatherMatmul(
        4, 4, torch.float32, first=3
    ),
    "AllGatherMatmul: a is 3 x 4 torch.float32; it must be 4 x 4 torch.float32": lambda: AllGatherMatmul(
        4, 4, torch.float32
    )(torch.zeros(3, 4), torch.zeros(4, 4)),
    "MatmulReduceScatter: pieces is 3; it must be 0 or divide 4": lambda: MatmulReduceScatter(
        4, 4, torch.float32, pieces=3
    ),
    "MatmulReduceScatter: b is 5 x 4 torch.float32; it must be 4 x 4 torch.float32": lambda: MatmulReduceScatter(
        4, 4, torch.float32
    )(torch.zeros(4, 4), torch.zeros(5, 4)),
    "GemmReduceScatter: a is 3 x 4 torch.float32; it must be 4 x any torch.float32": lambda: GemmReduceScatter(
        4, 4, torch.float32
    )(torch.zeros(3, 4), torch.zeros(4, 4)),
    "MatmulAllReduce: a is 3 x 4 torch.float32; it must be 4 x any torch.float32": lambda: MatmulAllReduce(
        4, 4, torch.float32
    )(torch.zeros(3, 4), torch.zeros(4, 4)),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_operands_say_what_is_wrong(message: str) -> None:
    def call() -> str:
        with pytest.raises(ArgumentError) as caught:
            WRONG[message]()
        return str(caught.value)

    assert run_pes(call, 1) == [message]
