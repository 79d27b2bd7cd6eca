# SPDX-License-Identifier: MIT
"""The stand-in's functions. Errors are what the package gives: a code, a RuntimeError, 0, or a line on stderr."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import re
import socket
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from triton_dist import shmem
from triton_dist.backends.ascend import codes
from triton_dist.backends.ascend.standin import pes, teams
from triton_dist.backends.ascend.standin.types import InitAttr, InitStatus, MemType, OpEngineType, TeamConfig
from triton_dist.errors import ShmemConfigError, ShmemError
from triton_dist.shmem.config import Rendezvous, ShmemConfig

if TYPE_CHECKING:
    import torch

VERSION = (1, 2, 0)
_ADDRESS = re.compile(r"(?:tcp6?://)?(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^:/\[\]]+)):(?P<port>\d+)")
_ENGINES = {OpEngineType.SDMA: "SDMA", OpEngineType.UDMA: "UDMA", OpEngineType.ROCE: "ROCE", OpEngineType.MTE: "MTE"}


# Before init


def set_conf_store_tls(enable: bool, tls_info: str) -> int:
    """Encryption of the bootstrap. The stand-in takes the settings and says that it does not use them: its PEs meet
    inside this machine."""
    if not isinstance(tls_info, str):
        return _fail("set_conf_store_tls", codes.INVALID_PARAM, f"tls_info is {tls_info!r}, no text")
    if enable:
        pes.log("set_conf_store_tls: the stand-in's bootstrap stays on this machine and is not encrypted", pes.WARNING)
    return codes.OK


def set_conf_store_tls_key(tls_pk: str, tls_pk_pw: str, py_decrypt_func: Callable[[str], str] | None) -> int:
    """The key for it, its password, and what decrypts that."""
    texts = isinstance(tls_pk, str) and isinstance(tls_pk_pw, str)
    if not texts or not (py_decrypt_func is None or callable(py_decrypt_func)):
        return _fail("set_conf_store_tls_key", codes.INVALID_PARAM, "it takes two texts and a function, or None")
    return codes.OK


def set_log_level(level: int) -> int:
    return codes.OK if 0 <= level <= 5 else codes.INVALID_PARAM


def set_extern_logger(func: Callable[[int, str], None]) -> int:
    pes.logger = func
    return codes.OK


# Life


def aclshmem_init(attributes: InitAttr) -> int:
    """Collective: 0, or a negative code with a line on stderr."""
    code = _checked(attributes)
    if code != codes.OK:
        return _fail("aclshmem_init", code, codes.MEANINGS[code])
    meeting = _meeting(attributes.ip_port)
    if meeting is None and attributes.n_ranks > 1 and not shmem.initialized():
        return _fail("aclshmem_init", codes.INVALID_VALUE, f"ip_port {attributes.ip_port!r} is no address")
    engine = _engine(attributes.option_attr.data_op_engine_type)
    return _start(attributes.my_rank, attributes.n_ranks, attributes.local_mem_size, meeting, engine)


def _meeting(address: str) -> Rendezvous | None:
    """Where an address says that the PEs meet; None if it is none."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) < 1 << 16:
        return None
    return Rendezvous(host=found["v6"] or found["host"], port=int(found["port"]))


def _checked(attributes: InitAttr) -> int:
    option = attributes.option_attr
    if pes.current() is not None:
        return codes.INNER
    if attributes.my_rank >= attributes.n_ranks:
        return codes.INVALID_PARAM
    rank_ok = attributes.my_rank >= 0 and attributes.n_ranks <= codes.MAX_PES
    size_ok = 0 < attributes.local_mem_size <= codes.MAX_LOCAL_BYTES
    times = (option.shm_init_timeout, option.shm_create_timeout, option.control_operation_timeout)
    engine_ok = 0 < int(option.data_op_engine_type) < 16
    return codes.OK if rank_ok and size_ok and engine_ok and all(times) else codes.INVALID_VALUE


def _engine(mask: OpEngineType) -> str:
    return next(name for bit, name in _ENGINES.items() if mask & bit)


def _start(rank: int, ranks: int, size: int, meeting: Rendezvous | None, engine: str) -> int:
    try:
        if shmem.initialized():  # a PE of testing.run_pes, or of a caller that uses shmem.init
            shmem.init(pe=rank, n_pes=ranks)
        else:
            pes.start(ShmemConfig(pe=rank, n_pes=ranks, heap_size=size + codes.EXTRA_BYTES, rendezvous=meeting))
        pes.bind(engine)
    except ValidationError as error:  # more PEs than the host engine has
        return _fail("aclshmem_init", codes.INVALID_VALUE, "; ".join(each["msg"] for each in error.errors()))
    except ShmemConfigError as error:
        return _fail("aclshmem_init", codes.INVALID_PARAM, str(error))
    except ShmemError as error:
        return _fail("aclshmem_init", codes.BOOTSTRAP, str(error))
    return codes.OK


def aclshmem_get_unique_id() -> bytes:
    """An address where the PEs can meet; one PE makes it and gives it to all."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}".encode().ljust(128, b"\0")


def aclshmem_init_using_unique_id(mype: int, npes: int, mem_size: int, uid: bytes) -> int:
    """`aclshmem_init` where a unique id says the address."""
    call = "aclshmem_init_using_unique_id"
    if not isinstance(uid, bytes):
        raise TypeError(f"{call}: the id must be bytes, not {type(uid).__name__}")
    if len(uid) < 128:
        return _fail(call, codes.INVALID_PARAM, "the id is too short")
    attributes = InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = mype, npes, mem_size
    attributes.ip_port = uid.rstrip(b"\0").decode(errors="replace")
    return aclshmem_init(attributes)


def aclshmem_finalize() -> int:
    """Collective."""
    if pes.current() is None:
        return _fail("aclshmem_finalize", codes.NOT_INITED, codes.MEANINGS[codes.NOT_INITED])
    pes.unbind()
    shmem.finalize()
    return codes.OK


def aclshmem_global_exit(status: int) -> None:
    """Ends all ranks: the others see that this one is gone."""
    shmem.adapter().abandon(f"aclshmem_global_exit({status})")
    sys.stdout.flush()
    os._exit(status)


def aclshmemx_init_status() -> InitStatus:
    return InitStatus.NOT_INITIALIZED if pes.current() is None else InitStatus.INITIALIZED


def _fail(call: str, code: int, why: str) -> int:
    pes.log(f"{call}: {why} ({code})")
    return code


# Memory


def aclshmem_malloc(size: int) -> int:
    """Collective: the address of `size` bytes."""
    return pes.allocate("aclshmem_malloc", size)


def aclshmem_calloc(nmemb: int, size: int) -> int:
    return pes.allocate("aclshmem_calloc", nmemb * size if nmemb > 0 else 0)


def aclshmem_align(alignment: int, size: int) -> int:
    if alignment <= 0 or alignment & (alignment - 1) or alignment > mmap.PAGESIZE:
        limit = f"it must be a power of two, at most {mmap.PAGESIZE} in the stand-in"
        raise RuntimeError(f"aclshmem_align: the alignment is {alignment}; {limit}")
    return pes.allocate("aclshmem_align", size, alignment)


def aclshmem_free(ptr: int) -> None:
    """Collective. An error is only logged."""
    if not pes.release(ptr):
        pes.log(f"aclshmem_free: {ptr:#x} was not allocated")


def aclshmem_ptr(ptr: int, peer: int) -> int:
    """The address at a peer, or 0."""
    device = pes.device()
    if device is None or not 0 <= peer < device.n_pes or not 0 <= ptr - device.heap_base < device.heap_size:
        return 0
    bases = (ctypes.c_uint64 * device.n_pes).from_address(device.peer_base)
    return bases[peer] + ptr - device.heap_base


def aclshmemx_get_heap_base(mem_type: MemType | None = None) -> int:
    del mem_type
    device = pes.device()
    return 0 if device is None else device.heap_base


def aclshmem_create_tensor(
    shape: Sequence[int] | int, dtype: torch.dtype | None = None, device_id: int = 0
) -> torch.Tensor:
    """Collective: a tensor (of this machine's CPU). Its contents are not promised to be zero."""
    import torch

    del device_id
    pe = pes.require("aclshmem_create_tensor")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if 0 in sizes:
        raise RuntimeError(f"aclshmem_create_tensor: {sizes} has no elements, and the library refuses 0 bytes")
    try:
        tensor = shmem.create_tensor(sizes, torch.float32 if dtype is None else dtype)
    except ShmemError as error:
        raise RuntimeError(f"aclshmem_create_tensor: {error}") from error
    pe.tensors[tensor.data_ptr()] = tensor
    return tensor


def aclshmem_free_tensor(tensor: torch.Tensor) -> None:
    """Collective: frees `tensor.data_ptr()`, so pass the tensor that was created, not a view at an offset."""
    aclshmem_free(tensor.data_ptr())


def construct_tensor_from_ptr(
    ptr: int, shape: Sequence[int] | int, dtype: torch.dtype, device: Any = None
) -> torch.Tensor:
    """A tensor over memory that the caller keeps alive."""
    import torch

    del device
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not ptr or any(size < 0 for size in sizes):
        raise RuntimeError(f"construct_tensor_from_ptr: there is no tensor of shape {sizes} at address {ptr:#x}")
    count = math.prod(sizes)
    if not count:
        return torch.empty(sizes, dtype=dtype)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(ptr)
    return torch.frombuffer(memory, dtype=torch.uint8).view(dtype).view(sizes)


# Who is who


def my_pe(team: int = 0) -> int:
    return team_my_pe(team)


def pe_count(team: int = 0) -> int:
    return team_n_pes(team)


def team_my_pe(team_id: int) -> int:
    team = teams.get(team_id)
    return -1 if team is None else team.my_pe


def team_n_pes(team_id: int) -> int:
    team = teams.get(team_id)
    return -1 if team is None else team.size


def team_split_strided(parent: int, start: int, stride: int, size: int) -> int:
    """Collective: the new team's number; -1 for a PE outside it, another negative code for an error."""
    return teams.split_strided(parent, start, stride, size)


def team_split_2d(parent: int, x_range: int) -> tuple[int, int]:
    """Collective: the team of this PE's row and the one of its column, rows being `x_range` PEs long."""
    return teams.split_2d(parent, x_range)


def team_translate_pe(src_team: int, src_pe: int, dest_team: int) -> int:
    return teams.translate(src_team, src_pe, dest_team)


def team_destroy(team: int) -> None:
    teams.destroy(team)


def aclshmem_team_get_config(team: int) -> TeamConfig:
    if teams.get(team) is None:
        raise RuntimeError(f"aclshmem_team_get_config: there is no team {team}")
    return TeamConfig()


# Transfers


def aclshmem_putmem(dst: int, src: int, elem_size: int, pe: int) -> None:
    """Copy `elem_size` bytes to a PE."""
    there = pes.peer_address("aclshmem_putmem", dst, pe, elem_size)
    ctypes.memmove(there, pes.source("aclshmem_putmem", src), elem_size)


def aclshmem_getmem(dst: int, src: int, elem_size: int, pe: int) -> None:
    """Copy `elem_size` bytes from a PE."""
    there = pes.peer_address("aclshmem_getmem", src, pe, elem_size)
    ctypes.memmove(pes.source("aclshmem_getmem", dst), there, elem_size)


aclshmem_putmem_nbi, aclshmem_getmem_nbi = aclshmem_putmem, aclshmem_getmem


def aclshmemx_putmem_signal(dst: int, src: int, elem_size: int, sig: int, signal: int, sig_op: int, pe: int) -> None:
    """Copy, then set (0) or add to (1) the int32 signal."""
    # Before the copy, which an error shall not leave half done.
    signalled = pes.signal_address("aclshmemx_putmem_signal", sig, sig_op, pe)
    aclshmem_putmem(dst, src, elem_size, pe)
    pes.send(signalled, signal, sig_op)


aclshmemx_putmem_signal_nbi = aclshmemx_putmem_signal


def aclshmem_signal_wait_until(sig_addr: int, cmp: int, cmp_val: int) -> None:
    """Wait for an int32 signal of this PE."""
    if not sig_addr:
        raise ValueError("aclshmem_signal_wait_until: the address is null")
    pes.wait_until(sig_addr, cmp, cmp_val)


# What it is


def aclshmem_info_get_version() -> tuple[int, int]:
    return VERSION[:2]


def aclshmem_info_get_name() -> str:
    return "aclshmem (stand-in of triton_dist)"


def get_ffts_config() -> int:
    return 0


__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", None) == __name__ and not name.startswith("_")
]
__all__ += ["aclshmem_getmem_nbi", "aclshmem_putmem_nbi", "aclshmemx_putmem_signal_nbi"]
