# SPDX-License-Identifier: MIT
"""The collectives against torch: sizes that fit nothing, every algorithm, several calls, the same bits everywhere."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from triton_dist import backends, knobs, shmem
from triton_dist.errors import ArgumentError, PollTimeout
from triton_dist.kernels import AllGather, AllReduce, ReduceScatter, packets
from triton_dist.kernels.all_reduce import algorithm_for
from triton_dist.kernels.counted import Plan
from triton_dist.kernels.packets import by_packets
from triton_dist.testing import run_pes

PES = (1, 2, 3, 4)
COUNTS = (1, 1000, 5003, 40_000)
SMALL = Plan(programs=3, piece=512, block=256)
"""Several pieces a program, several blocks a piece."""


@pytest.fixture(params=["cpu", "cuda"], autouse=True)
def backend(request: pytest.FixtureRequest) -> Iterator[None]:
    with knobs.scope(backend=request.param, simulate=request.param != "cpu"):
        yield


def data_of(pe: int, call: int, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small whole numbers: their sums are exact."""
    return ((torch.arange(count) * (pe + 3) + call) % 13).to(dtype)


@pytest.mark.parametrize("plan", [None, SMALL], ids=["plan by size", "small pieces"])
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize("count", COUNTS)
def test_all_gather(count: int, pes: int, direct: bool, plan: Plan | None) -> None:
    def gather() -> None:
        with AllGather((count,), torch.float32, direct=direct, plan=plan) as op:
            for call in range(5):
                shards = [data_of(pe, call, count) for pe in range(pes)]
                torch.testing.assert_close(op(shards[shmem.my_pe()]), torch.stack(shards), rtol=0, atol=0)

    run_pes(gather, pes)


@pytest.mark.parametrize("plan", [None, SMALL], ids=["plan by size", "small pieces"])
@pytest.mark.parametrize("pull", [False, True])
@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize("count", COUNTS)
def test_reduce_scatter(count: int, pes: int, pull: bool, plan: Plan | None) -> None:
    def scatter() -> None:
        me = shmem.my_pe()
        with ReduceScatter((count,), torch.float32, pull=pull, plan=plan) as op:
            for call in range(5):
                inputs = [data_of(pe, call, pes * count).view(pes, count) for pe in range(pes)]
                parts = inputs[me]
                if pull and call % 2:  # made in place
                    parts = op.input.copy_(parts)
                torch.testing.assert_close(op(parts), torch.stack(inputs)[:, me].sum(0), rtol=0, atol=0)

    run_pes(scatter, pes)


@pytest.mark.parametrize("plan", [None, SMALL], ids=["plan by size", "small pieces"])
@pytest.mark.parametrize("algorithm", ["one-shot", "two-shot"])
@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize("count", COUNTS)
def test_all_reduce(count: int, pes: int, algorithm: str, plan: Plan | None) -> None:
    def reduce() -> None:
        with AllReduce((count,), torch.float32, algorithm=algorithm, plan=plan) as op:  # type: ignore[arg-type]
            for call in range(5):
                inputs = [data_of(pe, call, count) for pe in range(pes)]
                torch.testing.assert_close(op(inputs[shmem.my_pe()]), torch.stack(inputs).sum(0), rtol=0, atol=0)

    run_pes(reduce, pes)


# Packets

PACKETS = [(2, None), (5004, SMALL), (40_000, None)]
"""How many numbers of 16 bits, so that their bytes are a multiple of 4; and a plan."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize(("count", "plan"), PACKETS)
def test_all_gather_by_packets(count: int, pes: int, dtype: torch.dtype, plan: Plan | None) -> None:
    def gather() -> None:
        with AllGather((4 * count,), dtype, packets=True, plan=plan) as op:
            for call in range(5):
                shards = [data_of(pe, call, 4 * count, dtype) for pe in range(pes)]
                torch.testing.assert_close(op(shards[shmem.my_pe()]), torch.stack(shards), rtol=0, atol=0)

    run_pes(gather, pes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.int16])
@pytest.mark.parametrize("pes", [1, 3])
@pytest.mark.parametrize(("count", "plan"), PACKETS)
def test_sums_by_packets(count: int, pes: int, dtype: torch.dtype, plan: Plan | None) -> None:
    def add() -> None:
        me = shmem.my_pe()
        scatter = ReduceScatter((count,), dtype, packets=True, plan=plan)
        reduce = AllReduce((pes * count,), dtype, packets=True, plan=plan)
        for call in range(5):
            inputs = [data_of(pe, call, pes * count, dtype) - 6 for pe in range(pes)]
            sums = torch.stack(inputs).sum(0, dtype=dtype)
            torch.testing.assert_close(reduce(inputs[me]), sums, rtol=0, atol=0)
            torch.testing.assert_close(scatter(inputs[me].view(pes, count)), sums.view(pes, count)[me], rtol=0, atol=0)
        reduce.free()
        scatter.free()

    run_pes(add, pes)


def test_packets_sum_as_signals_do() -> None:
    """The same bits: in the order of the PEs, rounded once."""

    def both() -> None:
        source = torch.randn(3000, generator=torch.Generator().manual_seed(shmem.my_pe())).to(torch.bfloat16)
        shape, dtype = (3000,), torch.bfloat16
        with AllReduce(shape, dtype, packets=True) as one, AllReduce(shape, dtype, packets=False) as other:
            assert torch.equal(one(source).view(torch.int16), other(source).view(torch.int16))

    run_pes(both, 3)


def test_packets_of_what_is_not_aligned() -> None:
    def odd() -> None:
        wide = torch.arange(1 + 2 * 600).to(torch.bfloat16)
        assert wide[1:].data_ptr() % 4
        out = torch.zeros(601, dtype=torch.bfloat16)[1:]
        with AllGather((600,), torch.bfloat16, packets=True) as gather:
            assert torch.equal(gather(wide[1:601])[1], wide[1:601])
        with AllReduce((600,), torch.bfloat16, packets=True) as reduce:
            assert torch.equal(reduce(wide[1:601]), 2 * wide[1:601])
        with ReduceScatter((600,), torch.bfloat16, packets=True) as scatter:
            assert scatter(wide[1:].view(2, 600), out) is out
            assert torch.equal(out, 2 * wide[1:].view(2, 600)[shmem.my_pe()])

    run_pes(odd, 2)


def test_calls_that_have_no_packets() -> None:
    def refused() -> list[str]:
        said = []
        for make in (
            lambda: AllGather((3,), torch.bfloat16, packets=True),
            lambda: AllGather((4,), torch.bfloat16, packets=True, direct=True),
            lambda: ReduceScatter((4,), torch.float64, packets=True),
            lambda: ReduceScatter((4,), torch.float32, packets=True, pull=True),
            lambda: AllReduce((4,), torch.float32, packets=True, algorithm="two-shot"),
        ):
            with pytest.raises(ArgumentError) as caught:
                make()
            said.append(str(caught.value))
        return said

    for said in run_pes(refused, 2):
        for text, words in zip(said, ("is 6", "direct", "16 or 32 bits", "pull", "two-shot"), strict=True):
            assert words in text
            assert "packets" in text


@pytest.mark.parametrize(
    ("nbytes", "dtype", "summed", "told", "chosen"),
    [
        (4096, torch.bfloat16, True, False, True),
        (1000, torch.bfloat16, True, False, True),
        (1004, torch.uint8, False, False, True),
        (1001, torch.uint8, False, False, False),  # Not whole words.
        (1004, torch.float64, True, False, False),  # A number across two of them.
        (1001, torch.bfloat16, True, True, False),
        (4096, torch.bfloat16, True, True, False),
        (1500, torch.bfloat16, True, False, False),  # Twice for two others is too much.
        (0, torch.bfloat16, True, False, False),
    ],
)
def test_what_goes_by_packets_is_small(
    monkeypatch: pytest.MonkeyPatch, nbytes: int, dtype: torch.dtype, summed: bool, told: bool, chosen: bool
) -> None:
    """On a GPU of a back end that says how much; never where it is simulated."""
    monkeypatch.setattr(type(backends.active()), "packet_bytes", 2999 if nbytes < 4000 else 8192)

    def choose() -> bool:
        assert not by_packets(None, nbytes, dtype, summed=summed, told=told)
        with monkeypatch.context() as patch:
            patch.setattr(packets, "shmem", SimpleNamespace(device=lambda: torch.device("cuda"), n_pes=lambda: 3))
            assert by_packets(True, nbytes, dtype, summed=summed, told=told)
            assert not by_packets(False, nbytes, dtype, summed=summed, told=told)
            return by_packets(None, nbytes, dtype, summed=summed, told=told)

    assert run_pes(choose, 1) == [chosen]


def test_packets_that_never_come() -> None:
    """The wait ends, as any other does."""

    over = threading.Event()

    def alone() -> None:
        op = AllGather((8,), torch.float32, packets=True)
        if shmem.my_pe() == 1:  # whose end would be waited for no longer either
            assert over.wait(60)
            return
        try:
            with knobs.scope(wait_timeout=0.3), pytest.raises(PollTimeout, match="same calls in the same order"):
                op(torch.zeros(8))
        finally:
            over.set()

    run_pes(alone, 2)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint16, torch.float8_e5m2, torch.float16, torch.int64], ids=str)
def test_packets_gather_bits(dtype: torch.dtype) -> None:
    """Whatever they stand for: NaN, -0."""

    def gather() -> None:
        me, most = shmem.my_pe(), 2 if dtype == torch.bool else 256
        with AllGather((3, 20), dtype, packets=True, plan=Plan(2, 16, 16)) as op:
            for call in range(4):
                seed = torch.Generator().manual_seed(call)
                raw = torch.randint(most, (3, 60 * dtype.itemsize), dtype=torch.uint8, generator=seed)
                assert torch.equal(op(raw[me].view(dtype).view(3, 20)).view(torch.uint8).view(raw.shape), raw)

    run_pes(gather, 3)


def test_packets_of_many_calls_whose_pes_are_late() -> None:
    def many() -> None:
        me, pes, late = shmem.my_pe(), shmem.n_pes(), random.Random(shmem.my_pe())
        gather = AllGather((50,), torch.int32, packets=True, plan=Plan(2, 16, 16))
        reduce = AllReduce((130,), torch.int16, packets=True, plan=Plan(3, 32, 32))
        for call in range(60):
            time.sleep(late.choice([0, 0, 0, 0.005]))
            came = gather(torch.full((50,), 10 * call + me, dtype=torch.int32))
            assert came.tolist() == [[10 * call + pe] * 50 for pe in range(pes)]
            reduce.result.fill_(call + me)  # and what is summed is where the sum goes
            assert reduce(reduce.result).tolist() == [pes * call + sum(range(pes))] * 130
        gather.free()
        reduce.free()

    run_pes(many, 4)


@pytest.mark.parametrize("calls_before", [(1 << 31) - 4, (1 << 32) - 3], ids=["2^31", "2^32"])
def test_packets_of_calls_whose_number_wraps(calls_before: int) -> None:
    def wraps() -> None:
        me, pes, late = shmem.my_pe(), shmem.n_pes(), random.Random(shmem.my_pe())
        with AllGather((50,), torch.int32, packets=True, plan=Plan(2, 16, 16)) as gather:
            gather._numbers.fill_(calls_before)
            for call in range(1, 9):
                time.sleep(late.choice([0, 0, 0.005]))
                came = gather(torch.full((50,), 10 * call + me, dtype=torch.int32))
                assert came.tolist() == [[10 * call + pe] * 50 for pe in range(pes)]

    run_pes(wraps, 3)


def test_packets_in_memory_that_had_those_of_the_same_calls() -> None:
    def again() -> None:
        me, pes, late, places = shmem.my_pe(), shmem.n_pes(), random.Random(shmem.my_pe()), set[int]()
        for made in range(1, 9):
            with AllGather((50,), torch.int32, packets=True, plan=Plan(2, 16, 16)) as gather:
                places.add(gather._stage.data_ptr())
                for call in range(3):
                    time.sleep(late.choice([0, 0, 0.005]))
                    sent = 100 * made + 10 * call
                    came = gather(torch.full((50,), sent + me, dtype=torch.int32))
                    assert came.tolist() == [[sent + pe] * 50 for pe in range(pes)]
        assert len(places) == 1

    run_pes(again, 3)


def test_packets_from_and_into_the_same_memory() -> None:
    def same() -> None:
        me, pes = shmem.my_pe(), shmem.n_pes()
        with ReduceScatter((66,), torch.bfloat16, packets=True, plan=Plan(2, 16, 16)) as op:
            for begin in (0, 1, 2, 66, 133):
                memory = torch.arange(pes * 66 + 4).to(torch.bfloat16) % 16
                parts, out = memory[: pes * 66].view(pes, 66), memory[begin : begin + 66]
                wanted = pes * parts[me]
                assert op(parts, out) is out
                assert torch.equal(out, wanted)

    run_pes(same, 3)


def test_nothing_by_packets() -> None:
    def none() -> None:
        with AllGather((0,), torch.float32, packets=True) as op:
            assert op(torch.zeros(0)).shape == (shmem.n_pes(), 0)

    run_pes(none, 2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int64], ids=str)
def test_types_are_summed_with_room(dtype: torch.dtype) -> None:
    def reduce() -> None:
        inputs = [data_of(pe, 0, 700, dtype) * 100 for pe in range(4)]
        expected = torch.stack(inputs).to(torch.float64).sum(0).to(dtype)
        with AllReduce((700,), dtype) as op, ReduceScatter((175,), dtype) as scatter:
            torch.testing.assert_close(op(inputs[shmem.my_pe()]), expected, rtol=0, atol=0)
            part = scatter(inputs[shmem.my_pe()].view(4, 175))
            torch.testing.assert_close(part, expected.view(4, 175)[shmem.my_pe()], rtol=0, atol=0)

    run_pes(reduce, 4)


@pytest.mark.parametrize("algorithm", ["one-shot", "two-shot"])
def test_all_pes_get_the_same_bits_in_all_runs(algorithm: str) -> None:
    def reduce() -> torch.Tensor:
        generator = torch.Generator().manual_seed(shmem.my_pe())
        with AllReduce((999,), torch.float32, algorithm=algorithm, plan=SMALL) as op:  # type: ignore[arg-type]
            return op(torch.randn(999, generator=generator)).clone()

    first, *others = run_pes(reduce, 4) + run_pes(reduce, 4)
    assert all(torch.equal(first, other) for other in others)


def test_the_algorithm_is_chosen_by_size() -> None:
    # On two PEs both send the same, but one-shot uses more of its own memory.
    assert [algorithm_for(n << 20, 2) for n in (1, 4, 16)] == ["one-shot", "one-shot", "two-shot"]
    assert [algorithm_for(n << 10, 4) for n in (64, 512, 1024)] == ["one-shot", "one-shot", "two-shot"]
    assert [algorithm_for(n << 10, 8) for n in (64, 256)] == ["one-shot", "two-shot"]

    def choose() -> tuple[str, str]:
        with AllReduce((1000,), torch.float32) as small, AllReduce((1 << 20,), torch.float32) as large:
            return small.algorithm, large.algorithm

    assert run_pes(choose, 3) == [("one-shot", "two-shot")] * 3


def test_pes_that_share_a_gpu_pull_what_is_large() -> None:
    def choose() -> list[bool]:
        shmem.adapter().shares_device = lambda: shares  # type: ignore[method-assign]
        ops = [ReduceScatter((n,), torch.float32) for n in (1000, 1 << 19)]
        chosen = [op.input is not None for op in ops]
        for op in ops:
            op.free()
        return chosen

    for shares in (False, True):
        assert run_pes(choose, 2) == [[False, shares]] * 2


@pytest.mark.parametrize("algorithm", ["one-shot", "two-shot"])
def test_a_sum_may_be_summed_again(algorithm: str) -> None:
    """In place: what a PE still reads, nobody overwrites."""

    def reduce() -> None:
        with AllReduce((5003,), torch.float32, algorithm=algorithm, plan=SMALL) as op:  # type: ignore[arg-type]
            for call in range(5):
                inputs = [data_of(pe, call, 5003) for pe in range(3)]
                result = op(op(op(inputs[shmem.my_pe()])))
                torch.testing.assert_close(result, torch.stack(inputs).sum(0) * 9, rtol=0, atol=0)

    run_pes(reduce, 3)


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_shard_of_the_result_may_be_gathered(which: int, direct: bool) -> None:
    def gather() -> None:
        with AllGather((5003,), torch.float32, direct=direct, plan=SMALL) as op:
            for call in range(5):
                shards = [data_of(pe, call, 5003) for pe in range(3)]
                again = op(op(shards[shmem.my_pe()])[which])
                torch.testing.assert_close(again, torch.stack([shards[which]] * 3), rtol=0, atol=0)

    run_pes(gather, 3)


@pytest.mark.parametrize("begin", [0, 7, 5003, 10006])
def test_parts_may_be_summed_where_they_lie(begin: int) -> None:
    def scatter() -> None:
        me = shmem.my_pe()
        with ReduceScatter((5003,), torch.float32, plan=SMALL) as op:
            for call in range(5):
                inputs = [data_of(pe, call, 3 * 5003).view(3, 5003) for pe in range(3)]
                out = inputs[me].view(-1)[begin : begin + 5003]
                expected = torch.stack(inputs)[:, me].sum(0)
                torch.testing.assert_close(op(inputs[me], out), expected, rtol=0, atol=0)

    run_pes(scatter, 3)


@pytest.mark.parametrize("pes", PES)
def test_sums_may_replace_parts_that_others_read(pes: int) -> None:
    """`out` in `input` itself, whichever part."""
    count = 9000

    def scatter() -> None:
        me = shmem.my_pe()
        with ReduceScatter((count,), torch.int64, pull=True) as op:
            assert op.input is not None
            for call in range(2 * pes):
                inputs = [data_of(pe, call, pes * count, torch.int64).view(pes, count) for pe in range(pes)]
                op.input.copy_(inputs[me])
                found = op(op.input, op.input[(me + call) % pes])
                assert found.data_ptr() == op.input[(me + call) % pes].data_ptr()
                torch.testing.assert_close(found, torch.stack(inputs)[:, me].sum(0), rtol=0, atol=0)

    run_pes(scatter, pes)


@pytest.mark.parametrize("pes", PES)
def test_parts_may_be_a_view_of_the_input(pes: int) -> None:
    def scatter() -> None:
        me = shmem.my_pe()
        inputs = [data_of(pe, 0, pes * pes).view(pes, pes) for pe in range(pes)]
        with ReduceScatter((pes,), torch.float32, pull=True) as op:
            assert op.input is not None
            op.input.copy_(inputs[me])
            torch.testing.assert_close(op(op.input.T), torch.stack(inputs)[:, :, me].sum(0), rtol=0, atol=0)

    run_pes(scatter, pes)


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
@pytest.mark.parametrize("pes", PES)
def test_nothing_may_be_sent(pes: int, shape: tuple[int, ...]) -> None:
    def send() -> None:
        nothing = torch.zeros(shape)
        for option in (False, True):
            with AllGather(shape, torch.float32, direct=option) as gather:
                assert gather(nothing).shape == (pes, *shape)
            with ReduceScatter(shape, torch.float32, pull=option) as scatter:
                assert scatter(torch.zeros(pes, *shape)).shape == shape
            with AllReduce(shape, torch.float32, algorithm="two-shot" if option else "one-shot") as reduce:
                assert reduce(nothing).shape == shape

    run_pes(send, pes)


def wrong_calls() -> dict[str, object]:
    return {
        "AllReduce: algorithm is 'ring'; it must be one of one-shot, two-shot": lambda: AllReduce(
            (4,), torch.float32, algorithm="ring"  # type: ignore[arg-type]
        ),
        "AllReduce: source is a list; it must be a torch.Tensor": lambda: (
            AllReduce((4,), torch.float32)([0.0] * 4)  # type: ignore[arg-type]
        ),
        "AllGather: shard is torch.sparse_coo; it must be dense: shard.to_dense()": lambda: (
            AllGather((4,), torch.float32)(torch.zeros(4).to_sparse())
        ),
        "AllGather: Triton has no torch.complex64; torch.view_as_real makes real numbers of it": lambda: (
            AllGather((4,), torch.complex64)
        ),
        "a sum over the PEs: torch.float8_e5m2 is too coarse for sums; convert it to a wider type": lambda: (
            ReduceScatter((4,), torch.float8_e5m2)
        ),
        "AllReduce: source is 3 torch.float32; it must be 4 torch.float32": lambda: (
            AllReduce((4,), torch.float32)(torch.zeros(3))
        ),
        "ReduceScatter: parts is 2 x 4 torch.float32; it must be 1 x 4 torch.float32": lambda: (
            ReduceScatter((4,), torch.float32)(torch.zeros(2, 4))
        ),
        "ReduceScatter: out must be contiguous: sums are stored there one by one": lambda: (
            ReduceScatter((4,), torch.float32)(torch.zeros(1, 4), torch.zeros(8)[::2])
        ),
        "ReduceScatter: out is 4 torch.float16; it must be 4 torch.float32": lambda: (
            ReduceScatter((4,), torch.float32)(torch.zeros(1, 4), torch.zeros(4).half())
        ),
    }


@pytest.mark.parametrize("message", wrong_calls())
def test_wrong_operands_say_what_is_wrong(message: str) -> None:
    def call() -> str:
        with pytest.raises(ArgumentError) as caught:
            wrong_calls()[message]()  # type: ignore[operator]
        return str(caught.value)

    assert run_pes(call, 1) == [message]
