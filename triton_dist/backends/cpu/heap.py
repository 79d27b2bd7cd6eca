# SPDX-License-Identifier: MIT
"""The memory of a symmetric heap on the host: one segment a PE, which its peers map too.

A segment is an anonymous memfd. It has no name, so nothing is left behind: the kernel frees it when the last process
that maps it ends, however it ends. It does not live in /dev/shm and does not depend on its size. A mapping is virtual:
a page costs memory when it is first touched.
"""

from __future__ import annotations

import array
import contextlib
import mmap
import os
import secrets
import socket
import struct
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from triton_dist.errors import HeapTooLarge, UnsupportedHost

if TYPE_CHECKING:
    import torch

PAGE = mmap.PAGESIZE

FdPassing = Literal["auto", "proc", "socket"]


class Segment:
    """A mapping of `size` bytes of shared memory. Tensors over it keep it alive, also after `finalize`."""

    def __init__(self, mapping: mmap.mmap, fd: int | None = None) -> None:
        import torch

        self._mapping, self.fd = mapping, fd
        self._bytes = torch.frombuffer(mapping, dtype=torch.uint8)
        self.address: int = self._bytes.data_ptr()
        self.size = len(mapping)

    @classmethod
    def private(cls, size: int) -> Segment:
        """A segment for PEs that are threads of this process."""
        with _refusing(size):
            return cls(mmap.mmap(-1, size, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE))

    @classmethod
    def create(cls, size: int) -> Segment:
        """A segment that other processes can map; `fd` names it until `close_fd`."""
        with _refusing(size):
            fd = anonymous_file("triton_dist_heap", size)
            try:
                return cls(mmap.mmap(fd, size), fd)
            except BaseException:
                os.close(fd)
                raise

    @classmethod
    def attach(cls, fd: int, size: int) -> Segment:
        """Map a peer's segment; takes over `fd`."""
        try:
            with _refusing(size):
                return cls(mmap.mmap(fd, size))
        finally:
            os.close(fd)

    def close_fd(self) -> None:
        """Drop the descriptor once every peer has mapped the segment."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def contains(self, address: int) -> bool:
        return self.address <= address < self.address + self.size

    def tensor(
        self, offset: int, shape: Sequence[int], dtype: torch.dtype, strides: Sequence[int] | None = None
    ) -> torch.Tensor:
        """An ordinary torch tensor at `offset`, whose storage ends where the tensor does."""
        import torch

        count = strided_length(shape, strides) * dtype.itemsize
        # Raw bytes first, as frombuffer does not take every dtype; no empty buffers, as it takes none of those either.
        raw = torch.frombuffer(self._mapping, dtype=torch.uint8, offset=offset, count=max(count, dtype.itemsize))
        typed = raw.view(dtype)
        if strides is None:
            return typed[: count // dtype.itemsize].view(tuple(shape))
        return typed.as_strided(tuple(shape), tuple(strides))

    def clear(self, offset: int, nbytes: int) -> None:
        """Set a range to zero; whole pages go back to the system."""
        first, last = -(-offset // PAGE) * PAGE, (offset + nbytes) // PAGE * PAGE
        if last - first < 16 * PAGE or not self._drop_pages(first, last - first):
            self._bytes[offset : offset + nbytes].zero_()
            return
        self._bytes[offset:first].zero_()
        self._bytes[last : offset + nbytes].zero_()

    def _drop_pages(self, offset: int, nbytes: int) -> bool:
        try:
            self._mapping.madvise(mmap.MADV_REMOVE, offset, nbytes)
        except (OSError, AttributeError):
            return False
        return True


_MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0
"""A heap may be larger than the memory there is: pages count when they are touched."""


@contextlib.contextmanager
def _refusing(size: int) -> Iterator[None]:
    """The system's refusal of a segment, as an error that says what to do."""
    try:
        yield
    except (OSError, OverflowError, ValueError) as error:
        detail = error.strerror if isinstance(error, OSError) else "no machine has so many addresses"
        raise HeapTooLarge(size=size, detail=detail) from error


_MFD_NOEXEC_SEAL = 0x0008  # linux/memfd.h; Linux 6.3 and later


def anonymous_file(name: str, size: int) -> int:
    """A descriptor of `size` bytes of memory, all zero; `name` shows in /proc only."""
    if not hasattr(os, "memfd_create"):
        raise UnsupportedHost(detail="it has no memfd (only Linux does). PEs as threads work: testing.run_pes")
    try:
        # Hardened systems (vm.memfd_noexec=2) give no other kind.
        fd = os.memfd_create(name, os.MFD_CLOEXEC | _MFD_NOEXEC_SEAL)
    except OSError:
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def strided_length(shape: Sequence[int], strides: Sequence[int] | None) -> int:
    """Elements from the first to the last of a tensor, both included."""
    if any(n == 0 for n in shape):
        return 0
    if strides is None:
        length = 1
        for n in shape:
            length *= n
        return length
    return 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


# A peer's descriptor.
#
# The short way is to open /proc/<pid>/fd/<n>. The kernel allows it under the same rule as reading another process's
# memory map (ptrace access mode READ): same user, and the peer "dumpable". Yama's ptrace_scope restricts only mode
# ATTACH, so siblings may do it on stock Ubuntu. It fails where a peer changed its user or capabilities, in some
# hardened containers (hidepid, a seccomp or LSM profile), and where /proc is missing. Then the peer sends the
# descriptor over a Unix socket (SCM_RIGHTS), which needs no such right. The socket's name is in the abstract
# namespace: no file.


class FdServer:
    """Hands this PE's descriptor to peers of the same user that ask for it, until closed."""

    def __init__(self, fd: int) -> None:
        self.name = f"triton_dist-{os.getpid()}-{secrets.token_hex(8)}"
        self._fd = fd
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind("\0" + self.name)
        self._socket.listen(64)
        self._thread = threading.Thread(target=self._serve, name="triton_dist fd server", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:  # closed
                return
            with peer, contextlib.suppress(OSError):
                if _uid_of(peer) == os.getuid():
                    peer.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self._fd]))])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


def _uid_of(peer: socket.socket) -> int:
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[1]


def open_peer_fd(pid: int, fd: int, server: str, how: FdPassing) -> int:
    """A descriptor of a peer's segment: by /proc, or from its server."""
    if how != "socket":
        try:
            return os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if how == "proc":
                raise UnsupportedHost(detail=f"opening /proc/{pid}/fd/{fd} failed: {error}") from error
    return _receive_fd(server)


def _receive_fd(server: str) -> int:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(30)
            client.connect("\0" + server)
            _, fds, _, _ = socket.recv_fds(client, 1, 1)
    except OSError as error:
        raise UnsupportedHost(
            detail=f"a peer's memory can be had neither through /proc nor by socket: {error}"
        ) from error
    if not fds:
        raise UnsupportedHost(detail="a peer refused to share its memory: it runs as another user")
    return fds[0]
