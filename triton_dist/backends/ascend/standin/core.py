# SPDX-License-Identifier: MIT
"""`shmem.core`: buffers instead of addresses, exceptions instead of codes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec

from triton_dist.backends.ascend import codes
from triton_dist.backends.ascend.standin import host, pes

P = ParamSpec("P")
__all__ = [
    "AclshmemError", "AclshmemInvalid", "Buffer", "buffer", "finalize", "free", "get", "get_peer_buffer",
    "get_unique_id", "get_version", "init", "put", "put_signal", "quiet", "signal_op", "signal_wait",
]  # fmt: skip


class AclshmemError(RuntimeError):
    """A call failed."""


class AclshmemInvalid(ValueError):
    """An argument is invalid."""


@dataclass(frozen=True)
class Buffer:
    """Bytes of the symmetric heap."""

    addr: int
    length: int


def get_version() -> str:
    return ".".join(map(str, host.VERSION))


def get_unique_id() -> bytes:
    return host.aclshmem_get_unique_id()


def init(
    uid: bytes | None = None, rank: int = -1, nranks: int = 0, initializer_method: str = "uid", mem_size: int = 1 << 30
) -> None:
    """Collective."""
    if initializer_method != "uid" or uid is None:
        raise AclshmemInvalid(f"initializer_method {initializer_method!r}, uid {uid!r}")
    code = host.aclshmem_init_using_unique_id(rank, nranks, mem_size, uid)
    if code != codes.OK:
        raise AclshmemError(f"init: {codes.MEANINGS.get(code, code)}")


def finalize() -> None:
    """Collective."""
    if host.aclshmem_finalize() != codes.OK:
        raise AclshmemError("finalize: the library is not initialised")


def buffer(size: int) -> Buffer:
    """Collective."""
    if size <= 0:
        raise AclshmemInvalid(f"buffer: {size} bytes")
    try:
        return Buffer(host.aclshmem_malloc(size), size)
    except RuntimeError as error:
        raise AclshmemError(str(error)) from error


def free(buf: Buffer) -> None:
    """Collective."""
    if not pes.release(buf.addr):
        raise AclshmemInvalid(f"free: the buffer at {buf.addr:#x} was not allocated, or was freed")


def get_peer_buffer(buf: Buffer, pe: int) -> Buffer:
    address = host.aclshmem_ptr(buf.addr, pe)
    if not address:
        raise AclshmemInvalid(f"get_peer_buffer: PE {pe}")
    return Buffer(address, buf.length)


def _as_invalid(function: Callable[P, None]) -> Callable[P, None]:
    """With the exception that this interface has for a wrong argument."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except AclshmemInvalid:
            raise
        except (RuntimeError, ValueError) as error:
            raise AclshmemInvalid(str(error)) from error

    return wrapper


@_as_invalid
def put(dst: Buffer, src: Buffer, pe: int) -> None:
    host.aclshmem_putmem(dst.addr, src.addr, _fitting(dst, src), pe)


@_as_invalid
def get(dst: Buffer, src: Buffer, pe: int) -> None:
    host.aclshmem_getmem(dst.addr, src.addr, _fitting(dst, src), pe)


@_as_invalid
def put_signal(dst: Buffer, src: Buffer, sig: Buffer, signal: int, sig_op: int, pe: int) -> None:
    host.aclshmemx_putmem_signal(dst.addr, src.addr, _fitting(dst, src), sig.addr, signal, sig_op, pe)


@_as_invalid
def signal_op(sig: Buffer, signal: int, sig_op: int, pe: int) -> None:
    pes.send(pes.signal_address("signal_op", sig.addr, sig_op, pe), signal, sig_op)


@_as_invalid
def signal_wait(sig: Buffer, cmp: int, value: int) -> None:
    host.aclshmem_signal_wait_until(sig.addr, cmp, value)


def quiet() -> None:
    """Every transfer of the host is complete when its call returns."""


def _fitting(dst: Buffer, src: Buffer) -> int:
    if src.length > dst.length:
        raise AclshmemInvalid(f"{src.length} bytes do not fit {dst.length}")
    return src.length
