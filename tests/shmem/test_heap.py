# SPDX-License-Identifier: MIT
"""Segments of shared memory, and the two ways to a peer's descriptor."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
import torch

from triton_dist.backends.cpu import atomics, heap
from triton_dist.backends.cpu.heap import PAGE, FdServer, Segment, open_peer_fd, strided_length
from triton_dist.errors import HeapTooLarge, UnsupportedHost

SIZE = 1 << 20


@pytest.fixture
def shared() -> Iterator[Segment]:
    segment = Segment.create(SIZE)
    yield segment
    segment.close_fd()


@pytest.mark.parametrize("how", ["auto", "proc", "socket"])
def test_a_peer_sees_the_same_memory(shared: Segment, how: Literal["auto", "proc", "socket"]) -> None:
    assert shared.fd is not None
    server = FdServer(shared.fd)
    peer = Segment.attach(open_peer_fd(os.getpid(), shared.fd, server.name, how), SIZE)
    server.close()
    assert peer.address != shared.address
    shared.tensor(4096, (3,), torch.int32).copy_(torch.tensor([1, 2, 3]))
    assert peer.tensor(4096, (3,), torch.int32).tolist() == [1, 2, 3]


def test_the_socket_is_taken_where_proc_is_denied(shared: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str, *rest: Any) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(heap.os, "open", denied)
    assert shared.fd is not None
    server = FdServer(shared.fd)
    fd = open_peer_fd(os.getpid(), shared.fd, server.name, "auto")
    assert os.fstat(fd).st_ino == os.fstat(shared.fd).st_ino
    os.close(fd)
    with pytest.raises(UnsupportedHost, match=r"opening /proc/.* failed.*Permission denied"):
        open_peer_fd(os.getpid(), shared.fd, server.name, "proc")
    server.close()
    with pytest.raises(UnsupportedHost, match="neither through /proc nor by socket"):
        open_peer_fd(os.getpid(), shared.fd, server.name, "auto")


def test_a_tensor_keeps_its_memory_alive() -> None:
    segment = Segment.private(SIZE)
    tensor = segment.tensor(128, (4,), torch.float64)
    tensor.fill_(2.5)
    del segment
    gc.collect()
    assert tensor.tolist() == [2.5] * 4


def test_a_tensor_ends_where_its_storage_does() -> None:
    tensor = Segment.private(SIZE).tensor(64, (2, 3), torch.int16)
    assert tensor.untyped_storage().nbytes() == 12
    assert tensor.storage_offset() == 0
    assert tensor.is_contiguous()


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.uint64, torch.float16]
)
def test_every_dtype(dtype: torch.dtype) -> None:
    tensor = Segment.private(SIZE).tensor(64, (2, 2), dtype)
    assert tensor.dtype == dtype
    assert tensor.shape == (2, 2)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,)])
def test_every_shape(shape: tuple[int, ...]) -> None:
    assert Segment.private(SIZE).tensor(64, shape, torch.float32).shape == shape


def test_strides() -> None:
    tensor = Segment.private(SIZE).tensor(64, (3,), torch.int64, (8,))
    assert (tensor[1].data_ptr() - tensor.data_ptr(), tensor.untyped_storage().nbytes()) == (64, 136)
    assert strided_length((3, 2), (10, 1)) == 22
    assert strided_length((0, 2), (10, 1)) == 0


@pytest.mark.parametrize(
    ("offset", "nbytes"), [(64, 100), (64, 40 * PAGE), (PAGE, 32 * PAGE), (3 * PAGE + 8, 64 * PAGE)]
)
@pytest.mark.parametrize("drops_pages", [True, False])
def test_clearing_a_range(
    offset: int, nbytes: int, drops_pages: bool, shared: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not drops_pages:
        monkeypatch.setattr(Segment, "_drop_pages", lambda *_: False)
    whole = shared.tensor(0, (SIZE,), torch.uint8)
    whole.fill_(7)
    shared.clear(offset, nbytes)
    assert not whole[offset : offset + nbytes].any()
    assert (whole[:offset] == 7).all()
    assert (whole[offset + nbytes :] == 7).all()


def test_memory_is_virtual_until_touched() -> None:
    segment = Segment.create(1 << 32)
    assert segment.fd is not None
    assert os.fstat(segment.fd).st_blocks == 0
    segment.tensor(1 << 31, (1,), torch.int8).fill_(1)
    assert 0 < os.fstat(segment.fd).st_blocks * 512 <= 1 << 21
    segment.close_fd()


def test_without_memfd_there_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(heap.os, "memfd_create")
    with pytest.raises(UnsupportedHost, match=r"no memfd .* testing.run_pes"):
        Segment.create(SIZE)


@pytest.mark.parametrize(("bits", "dtype"), [(32, torch.int32), (64, torch.int64)])
def test_atomics(bits: int, dtype: torch.dtype) -> None:
    tensor = Segment.private(SIZE).tensor(64, (2,), dtype)
    word, address = atomics.word(bits), tensor.data_ptr()
    word.store(address, -5)
    assert word.load(address) == -5
    assert word.add(address, 7) == -5
    assert word.spin(address, 2, 100) == 2
    assert word.spin(address, 1, 100) == 2
    assert tensor.tolist() == [2, 0]


@pytest.mark.parametrize("size", [200 << 40, 2**63 - 1, 10**30])
@pytest.mark.parametrize("make", [Segment.private, Segment.create])
def test_a_size_that_no_machine_has(make: Callable[[int], Segment], size: int) -> None:
    fds = len(os.listdir("/proc/self/fd"))
    with pytest.raises(HeapTooLarge, match=rf"a segment of {size} bytes .*Lower TRITON_DIST_HEAP_SIZE"):
        make(size)
    assert len(os.listdir("/proc/self/fd")) == fds


def test_a_heap_may_be_larger_than_the_memory() -> None:
    """Pages count when they are touched."""
    segment = Segment.private(1 << 40)
    segment.tensor(1 << 39, (4,), torch.int32).fill_(3)
