# SPDX-License-Identifier: MIT
"""Launching a kernel again: what is looked up once, and what each launch brings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad
from triton.compiler import CompiledKernel

from triton_dist import backends, shmem
from triton_dist.kernels import repeated
from triton_dist.kernels.repeated import EACH_TIME, Repeated


class FakeKernel:
    """Notes what is launched, by Triton's way and by the compiled kernel's."""

    def __init__(self) -> None:
        self.slow: list[tuple[Any, ...]] = []
        self.fast: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]:
        def launch(*arguments: Any, num_warps: int) -> Any:
            self.slow.append((grid, *arguments, num_warps))
            return Compiled(self.fast, len(self.slow))

        return launch


class Compiled:
    """As Triton's: `run`, with grid, stream, function, metadata and hooks first, or `compiled[grid](...)`."""

    function, packed_metadata = "function", "metadata"

    def __init__(self, calls: list[tuple[Any, ...]], variant: int) -> None:
        self.calls, self.variant = calls, variant

    def run(self, *arguments: Any) -> None:
        assert arguments[:9] == (3, 1, 1, 5, "function", "metadata", None, None, None)
        self.calls.append((self.variant, *arguments[9:]))

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return lambda *arguments: self.calls.append((grid, self.variant, *arguments))


@pytest.fixture
def memory() -> torch.Tensor:
    whole = torch.zeros(64)
    return whole[-whole.data_ptr() % 64 // 4 :]


def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as `Repeated` can see: tensors of the host, number -1, count as that GPU's."""
    monkeypatch.setattr(shmem, "device", lambda: SimpleNamespace(type="cuda", index=-1))
    # Whatever the tests are run for: that one has no way of its own to launch.
    monkeypatch.setattr(backends, "active", lambda: backends.get("cpu"))
    monkeypatch.setattr(repeated, "_streams", lambda: lambda index: 5)


def test_who_listens_to_launches_hears_of_them(monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor) -> None:
    on_a_gpu(monkeypatch)
    kernel = FakeKernel()
    launch = Repeated(kernel, 3, [EACH_TIME], 4)
    launch(memory)

    def hook(metadata: Any) -> None:
        del metadata

    from triton import knobs

    knobs.runtime.launch_enter_hook.add(hook)
    try:
        launch(memory)
    finally:
        knobs.runtime.launch_enter_hook.remove(hook)
    launch(memory)
    # Triton's own way tells them.
    assert kernel.fast == [((3, 1, 1), 1, memory.data_ptr()), (1, memory.data_ptr())]


def test_a_compiled_kernel_is_launched_as_triton_does() -> None:
    """The order of what comes before the kernel's own arguments."""
    text = inspect.getsource(CompiledKernel.__getitem__)
    order = [
        "self.run(grid[0], grid[1], grid[2], stream, self.function, self.packed_metadata, launch_metadata,",
        "knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook, *args)",
    ]
    assert all(part in text for part in order), text


def test_a_variant_is_looked_up_once(monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor) -> None:
    on_a_gpu(monkeypatch)
    kernel, fixed, at = FakeKernel(), torch.zeros(2), memory.data_ptr()
    launch = Repeated(kernel, 3, [EACH_TIME, fixed, 7, EACH_TIME], 4)
    launch(memory, memory)
    assert len(kernel.slow) == 1
    launch(memory[4:], memory[8:])
    launch(memory, memory[1:])  # another alignment, another variant
    launch(memory[4:], memory[2:])
    launch(memory, memory)
    assert len(kernel.slow) == 2
    for call in kernel.slow:  # Triton itself gets tensors
        assert [value is fixed for value in call] == [False, False, True, False, False, False]
    assert kernel.fast == [
        (1, at + 16, fixed.data_ptr(), 7, at + 32),
        (2, at + 16, fixed.data_ptr(), 7, at + 8),
        (1, at, fixed.data_ptr(), 7, at),
    ]


def test_the_back_ends_own_way_is_taken(monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor) -> None:
    on_a_gpu(monkeypatch)
    calls: list[Any] = []

    class Backend:
        def relaunch(self, *given: Any) -> Callable[..., None]:
            calls.append(given[1:])
            return lambda *launched: calls.append(launched)

    monkeypatch.setattr(backends, "active", Backend)
    kernel, at = FakeKernel(), memory.data_ptr()
    launch = Repeated(kernel, 3, [7, EACH_TIME], 4)
    launch(memory)
    launch(memory[4:])
    assert calls == [(3, [7, EACH_TIME], [1]), (5, (at + 16,))]
    assert not kernel.fast


def test_a_launch_that_was_heard_leaves_the_variant_of_the_last_one(
    monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor
) -> None:
    """A tensor is recognised by its address; it must not meet another alignment's variant."""
    from triton import knobs

    on_a_gpu(monkeypatch)
    kernel, at = FakeKernel(), memory.data_ptr()
    launch = Repeated(kernel, 3, [EACH_TIME], 4)
    for tensor in (memory, memory[1:], memory[1:]):
        launch(tensor)
    with monkeypatch.context() as heard:
        heard.setattr(knobs.runtime, "launch_enter_hook", lambda metadata: None)
        launch(memory)
        assert not launch.again(memory[1:])
    assert not launch.again(memory)
    assert launch.again(memory[1:])
    assert kernel.fast == [(2, at + 4), ((3, 1, 1), 1, at), (2, at + 4)]


def test_tensors_like_those_of_a_launch_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor
) -> None:
    on_a_gpu(monkeypatch)
    kernel, at = FakeKernel(), memory.data_ptr()
    first, other, out = memory[:16].view(4, 4), memory[16:32].view(4, 4), memory[32:36]
    launch = Repeated(kernel, 3, [EACH_TIME, 7, EACH_TIME], 4)
    assert not launch.again(first, out)
    for operand in (first, first, other):
        launch(operand, out)
    kernel.fast.clear()
    assert launch.again(first, out)
    assert launch.again(other, out)
    assert launch.again(first.detach(), out.view(2, 2))
    assert kernel.fast == [(1, at + begin, 7, at + 128) for begin in (0, 64, 0)]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.view(16),
        lambda t: t.view(torch.int32),
        lambda t: t.t(),
        lambda t: torch._neg_view(t),
        lambda t: t.view(16)[4:].view(3, 4),
        lambda t: t.to_sparse(),
        lambda t: t.detach().requires_grad_(),
        lambda t: t.numpy(),
        lambda t: t.data_ptr(),
        lambda t: None,
    ],
    ids=["shape", "dtype", "strides", "sign", "address", "sparse", "gradient", "numpy", "int", "None"],
)
def test_what_differs_from_tensors_of_a_launch_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor, change: Callable[[torch.Tensor], Any]
) -> None:
    on_a_gpu(monkeypatch)
    kernel, operand = FakeKernel(), memory[:16].view(4, 4)
    launch = Repeated(kernel, 3, [EACH_TIME], 4)
    for _ in range(2):
        launch(operand)
    kernel.fast.clear()
    assert not launch.again(change(operand))
    assert not launch.again(operand, memory)
    assert not kernel.fast
    assert launch.again(operand)


def test_addresses_are_forgotten_before_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor
) -> None:
    on_a_gpu(monkeypatch)
    monkeypatch.setattr(repeated, "MOST_SEEN", 2)
    launch = Repeated(FakeKernel(), 3, [EACH_TIME], 4)
    for begin in (0, 4, 8, 12):
        launch(memory[begin:])
    assert [launch.again(memory[begin:]) for begin in (0, 4, 8, 12)] == [False, False, False, True]


def test_the_host_takes_tritons_way(monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor) -> None:
    monkeypatch.setattr(shmem, "device", lambda: torch.device("cpu"))
    kernel = FakeKernel()
    launch = Repeated(kernel, 3, [EACH_TIME, 7], 4)
    for _ in range(3):
        launch(memory)
    assert [call[0] for call in kernel.slow] == [(3,)] * 3
    assert not kernel.fast


def test_triton_agrees_about_alignment() -> None:
    from triton.backends.compiler import BaseBackend

    specialize = getattr(BaseBackend, "get_tensor_specialization", None)
    if specialize is None:
        pytest.skip("this Triton does not tell")
    assert repeated.ALIGNMENT == 16
    memory = torch.zeros(64)
    memory = memory[-memory.data_ptr() % 64 // 4 :]
    assert specialize(memory, align=True) == "D"
    assert specialize(memory[1:], align=True) != "D"


def test_a_view_of_the_last_tensor_that_says_more_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, memory: torch.Tensor
) -> None:
    on_a_gpu(monkeypatch)
    kernel = FakeKernel()
    launch = Repeated(kernel, 3, [EACH_TIME], 4)
    for _ in range(3):
        launch(memory)
    launch(torch._neg_view(memory))  # with its sign: elsewhere
    assert [call[1] for call in kernel.fast[:2]] == [memory.data_ptr()] * 2
    assert kernel.fast[-1][1] != memory.data_ptr()
    assert launch.again(memory)
    with forward_ad.dual_level():
        assert not launch.again(forward_ad.make_dual(memory, torch.ones_like(memory)))
