# SPDX-License-Identifier: MIT
"""Wrong arguments: each its error, with PE, place and what to do."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from triton_dist import errors, knobs, shmem
from triton_dist.errors import ShmemError, TritonDistError
from triton_dist.testing import run_pes


def raised(fn: Callable[[], Any], n: int = 2) -> TritonDistError:
    """The error that `fn` raises on every PE; that of the last PE."""

    def caught() -> TritonDistError:
        with pytest.raises(TritonDistError) as info:
            fn()
        return info.value

    error = run_pes(caught, n)[-1]
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    return error


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((2, -3), torch.int8, r"the shape \(2, -3\) has a negative size"),
        ((2.5,), torch.int8, r"\(2.5,\) is no shape"),
        ("ab", torch.int8, "'ab' is no shape"),
        ((2,), "float32", "'float32' is no torch dtype"),
        ((2,), torch.qint8, "torch.qint8 has no plain elements"),
    ],
)
def test_allocations(shape: Any, dtype: Any, message: str) -> None:
    error = raised(lambda: shmem.create_tensor(shape, dtype))
    assert isinstance(error, errors.BadAllocation)
    assert error.fields["pe"] == 1
    with pytest.raises(errors.BadAllocation, match=message):
        raise error


@pytest.mark.parametrize(
    ("n", "dtype", "message"), [(2, torch.float32, "back end cannot be float32; valid: int"), (-1, None, "")]
)
def test_signal_allocations(n: int, dtype: Any, message: str) -> None:
    error = raised(lambda: shmem.create_signals(n, dtype))
    assert isinstance(error, (errors.BadSignal, errors.BadAllocation))
    assert message in str(error)


def test_ordinary_tensors_are_not_symmetric() -> None:
    for call in (
        lambda: shmem.free_tensor(torch.zeros(4)),
        lambda: shmem.peer_tensor(torch.zeros(4), 0),
        lambda: shmem.put(torch.zeros(4), torch.zeros(4), 0),
        lambda: shmem.get(torch.zeros(4), torch.zeros(4), 0),
        lambda: shmem.offset_of(torch.zeros(4)),
        lambda: shmem.signal(torch.zeros(1, dtype=torch.int64), 1, "set", 0),
        lambda: shmem.wait_signal(torch.zeros(1, dtype=torch.int64), 1),
    ):
        error = raised(call)
        assert isinstance(error, errors.NotSymmetric)
        assert "is not in this PE's symmetric heap (an ordinary tensor, (" in str(error)
        assert "test_errors.py:" in str(error)


def test_things_that_are_no_tensor() -> None:
    assert "a list, not a tensor" in str(raised(lambda: shmem.free_tensor([1, 2])))  # type: ignore[arg-type]

    def put_a_number() -> None:
        shmem.put(shmem.create_tensor((1,), torch.int8), 3, 0)  # type: ignore[arg-type]

    assert "source is not in this PE's symmetric heap (a int, not a tensor)" in str(raised(put_a_number))


def test_a_peers_tensor_is_not_ones_own() -> None:
    def pass_on() -> None:
        data, other = shmem.create_tensor((4,), torch.int8), (shmem.my_pe() + 1) % 2
        shmem.put(shmem.peer_tensor(data, other), torch.zeros(4, dtype=torch.int8), 0)

    assert "a tensor of PE 0, from peer_tensor" in str(raised(pass_on))


def test_a_bare_address_is_not_enough() -> None:
    def rebuild() -> None:
        data = shmem.create_tensor((4,), torch.int32)
        shmem.free_tensor(torch.from_numpy(data.numpy()))

    assert "made from a bare address" in str(raised(rebuild))


def test_tensors_of_another_world() -> None:
    old = run_pes(lambda: shmem.create_tensor((4,), torch.int8), 1)[0]
    assert isinstance(raised(lambda: shmem.free_tensor(old)), errors.NotSymmetric)


@pytest.mark.parametrize("reused", [False, True])
def test_a_freed_tensor(reused: bool) -> None:
    def use_after_free() -> None:
        data = shmem.create_tensor((4,), torch.int8)
        shmem.free_tensor(data)
        if reused:  # at the same place
            assert shmem.create_tensor((4,), torch.int8).data_ptr() == data.data_ptr()
        shmem.put(data, torch.zeros(4, dtype=torch.int8), 0)

    error = raised(use_after_free)
    assert isinstance(error, errors.FreedTensor)
    first = use_after_free.__code__.co_firstlineno
    assert f"test_errors.py:{first + 1}, freed by free_tensor((4,) int8) at " in str(error)
    assert f"test_errors.py:{first + 2}." in str(error)


def test_freeing_twice() -> None:
    def twice() -> None:
        data = shmem.create_tensor((4,), torch.int8)
        shmem.free_tensor(data)
        shmem.free_tensor(data)

    assert isinstance(raised(twice), errors.FreedTensor)


@pytest.mark.parametrize("part", [slice(1, None), slice(0, 2)])
def test_freeing_a_part(part: slice) -> None:
    def free() -> None:
        shmem.free_tensor(shmem.create_tensor((4,), torch.int8)[part])

    error = raised(free)
    assert isinstance(error, errors.PartOfTensor)
    assert "of create_tensor((4,), torch.int8) at" in str(error)


def test_another_shape_of_the_whole_may_be_freed() -> None:
    run_pes(lambda: shmem.free_tensor(shmem.create_tensor((4, 2), torch.int8).view(-1)), 2)
    run_pes(lambda: shmem.free_tensor(shmem.create_tensor((0, 2), torch.int8)), 2)
    run_pes(lambda: shmem.free_tensor(shmem.create_signals(5)), 2)


@pytest.mark.parametrize("pe", [2, -1, "left", None])
def test_a_pe_out_of_range(pe: Any) -> None:
    def all_calls() -> None:
        data, signals = shmem.create_tensor((1,), torch.int8), shmem.create_signals(1)
        for call in (
            lambda: shmem.peer_tensor(data, pe),
            lambda: shmem.put(data, torch.zeros(1, dtype=torch.int8), pe),
            lambda: shmem.get(torch.zeros(1, dtype=torch.int8), data, pe),
        ):
            with pytest.raises(errors.PeOutOfRange):
                call()
        shmem.signal(signals[0], 1, "set", pe)

    error = raised(all_calls)
    assert isinstance(error, errors.PeOutOfRange)
    assert f"signal: there is no PE {pe!r}; PEs are 0 to 1." in str(error)


def test_unequal_tensors() -> None:
    def put(source: torch.Tensor) -> Callable[[], None]:
        return lambda: shmem.put(shmem.create_tensor((4,), torch.int8), source, 0)

    shapes = raised(put(torch.zeros(5, dtype=torch.int8)))
    assert isinstance(shapes, errors.UnequalTensors)
    assert "dest is (4,) int8, source is (5,) int8" in str(shapes)
    assert isinstance(raised(put(torch.zeros(4))), errors.UnequalTensors)
    assert isinstance(
        raised(lambda: shmem.get(torch.zeros(3), shmem.create_tensor((4,), torch.float32), 0)), errors.UnequalTensors
    )


@pytest.mark.parametrize(
    ("make", "value", "op", "message"),
    [
        (lambda: shmem.create_tensor((1,), torch.float32), 1, "set", "back end cannot be float32"),
        (lambda: shmem.create_tensor((1,), torch.int16), 1, "set", "back end cannot be int16"),
        (lambda: shmem.create_signals(2), 1, "set", r"a signal is one element, but this tensor is (2,) int64"),
        (lambda: shmem.create_signals(2)[0], 1, "xor", "op = 'xor' is unknown; valid: set, add"),
        (lambda: shmem.create_signals(2)[0], 1.5, "set", "the value 1.5 is no whole number"),
        (lambda: shmem.create_signals(2)[0], 1 << 63, "set", "does not fit 64 bits (-"),
        (lambda: shmem.create_signals(2, torch.uint64)[0], -1, "set", "does not fit 64 bits (0 to"),
        pytest.param(
            lambda: shmem.create_signals(2, torch.int32)[0],
            1 << 31,
            "set",
            "does not fit 32 bits",
            marks=pytest.mark.backends("cpu", "ascend"),
        ),
        pytest.param(
            lambda: shmem.create_signals(2, torch.uint64)[0],
            -1,
            "add",
            "does not fit 64 bits (0 to",
            marks=pytest.mark.backends("cpu", "cuda"),
        ),
    ],
)
def test_signals(make: Callable[[], torch.Tensor], value: Any, op: str, message: str) -> None:
    error = raised(lambda: shmem.signal(make(), value, op, 0))
    assert isinstance(error, errors.BadSignal)
    assert message in str(error)


def test_an_unknown_comparison() -> None:
    error = raised(lambda: shmem.wait_signal(shmem.create_signals(1)[0], 1, "=="))
    assert "cmp = '==' is unknown; valid: eq, ne, gt, le, lt, ge" in str(error)


def test_a_signal_that_never_comes() -> None:
    def wait() -> None:
        signals = shmem.create_signals(3)
        signals[2] = 5
        shmem.wait_signal(signals[2], 7, "ge", timeout=0.2)

    error = raised(wait)
    assert isinstance(error, errors.WaitTimeout)
    message = str(error)
    assert f"PE 1, program none (the host), {error.fields['where']}: waited 0.2 s for signal 2 of" in message
    assert "expected ge 7, present value 5" in message
    assert f"test_errors.py:{wait.__code__.co_firstlineno + 3}" in message


def test_the_deadline_is_the_knobs() -> None:
    with knobs.scope(wait_timeout=0.1):
        error = raised(lambda: shmem.wait_signal(shmem.create_signals(1)[0], 1))
    assert isinstance(error, errors.WaitTimeout)


@pytest.mark.parametrize(
    "call",
    [
        shmem.my_pe,
        shmem.n_pes,
        shmem.barrier_all,
        shmem.finalize,
        shmem.info,
        shmem.adapter,
        lambda: shmem.create_tensor((1,), torch.int8),
        lambda: shmem.create_signals(1),
        lambda: shmem.put(torch.zeros(1), torch.zeros(1), 0),
        lambda: shmem.is_symmetric(torch.zeros(1)),
        lambda: shmem.describe_address(0),
    ],
)
def test_nothing_works_before_init(call: Callable[[], Any]) -> None:
    with pytest.raises(errors.NotInitialized, match=r"call triton_dist.shmem.init\(\) first"):
        call()


@pytest.mark.parametrize("timeout", ["1", float("nan"), -1, torch.tensor(1.0)], ids=str)
def test_a_deadline_that_is_none(timeout: Any) -> None:
    """Not a number would never be over. It is looked at also where the value is there."""

    def wait(value: int) -> None:
        shmem.wait_signal(shmem.create_signals(1)[0], value, timeout=timeout)

    for value in (0, 1):
        error = raised(lambda: wait(value))  # noqa: B023
        assert isinstance(error, errors.BadSignal)
        assert f"wait_signal: timeout = {timeout!r} is no number of seconds (0 or more; 0: no dead" in str(error)


def test_signals_to_reset_are_looked_at_before_the_first_barrier() -> None:
    def reset(signals: Any) -> None:
        shmem.reset_signals(signals)

    for signals, message in ((5, "a int, not a tensor"), (torch.zeros(2), "(2,) float32, freed or of somebody else")):
        error = raised(lambda: reset(signals))  # noqa: B023
        assert isinstance(error, errors.NotSymmetric)
        assert f": reset_signals: the tensor is not in this PE's symmetric heap ({message})" in str(error)
        assert "test_errors.py:" in str(error)


@pytest.mark.parametrize("n", [(2, 3), (), "4", 2.0, None])
def test_numbers_of_signals(n: Any) -> None:
    error = raised(lambda: shmem.create_signals(n))
    assert isinstance(error, errors.BadAllocation)
    assert f"create_signals({n!r}, torch.int64): {n!r} is no number of signals" in str(error)


def test_tensors_that_are_not_dense_are_in_no_heap() -> None:
    dense = torch.eye(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.as_nested_tensor([dense])
    for tensor, word in ((dense.to_sparse(), "torch.sparse_coo"), (nested, "nested")):
        for call in (shmem.free_tensor, shmem.offset_of, lambda t: shmem.put(t, dense, 0)):
            error = raised(lambda: call(tensor))  # noqa: B023
            assert isinstance(error, errors.NotSymmetric)
            assert f"(a tensor that is {word}, not dense)" in str(error)
        assert run_pes(lambda: shmem.is_symmetric(tensor), 1) == [False]  # noqa: B023
    assert run_pes(lambda: shmem.is_symmetric(5), 1) == [False]  # type: ignore[arg-type]


def test_a_second_init_with_unknown_settings() -> None:
    assert "there is no setting 'heap_bytes'; settings: pe, " in str(raised(lambda: shmem.init(heap_bytes=1 << 16)))


def test_a_second_init_with_other_settings() -> None:
    error = raised(lambda: shmem.init(heap_size=1 << 16))
    assert isinstance(error, errors.AlreadyInitialized)
    assert "this process is PE 1 of 2 already, with another heap_size" in str(error)


def test_all_are_shmem_errors() -> None:
    for cls in (errors.NotSymmetric, errors.FreedTensor, errors.PeOutOfRange, errors.BadSignal, errors.MissingPe):
        assert issubclass(cls, ShmemError)
