# SPDX-License-Identifier: MIT
"""The runtime adapter over NVSHMEM: one PE a process, bootstrapped over torch's store.

Everything is ordered by torch's current stream, as torch's own operations are: `put`, `get`, `signal`, `barrier_all`
and `stream_wait_signal` return before they are done. `wait_signal`, `create_tensor`, `free_tensor` and `finalize`
return when they are.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from triton_dist.backends.agreement import Agreement
from triton_dist.backends.base import RuntimeAdapter
from triton_dist.backends.cuda import CudaBackend, library
from triton_dist.backends.cuda.modules import MODULES
from triton_dist.backends.cuda.nvshmem import LIMITED_MPG, UID_BYTES, Nvshmem
from triton_dist.backends.cuda.stream_ops import WAITS, StreamOps
from triton_dist.errors import (
    BadSignal,
    NotInitialized,
    NotSymmetric,
    NvshmemError,
    NvshmemMismatch,
    NvshmemNotFound,
    PartOfTensor,
    WaitTimeout,
)
from triton_dist.shmem.host import checks
from triton_dist.shmem.host.checks import Call

if TYPE_CHECKING:
    import torch

    from triton_dist.shmem.config import ShmemConfig
    from triton_dist.shmem.provider import SymmetricMemory

_BACKEND = CudaBackend()
_HEAP_SIZE = "NVSHMEM_SYMMETRIC_SIZE"
_OPS = {"set": 9, "add": 10}
_POLL_SECONDS = 50e-6


@dataclass
class _Range:
    """Symmetric memory: NVSHMEM's (peers looked up), or somebody else's (a table of the peers' addresses)."""

    address: int
    nbytes: int
    made: str
    peers: Sequence[int] | None = None

    def holds(self, address: int) -> bool:
        return self.address <= address < self.address + max(self.nbytes, 1)


class CudaAdapter(RuntimeAdapter):
    """One PE on a GPU."""

    _heap_size: str | None = None
    """What this process wrote into NVSHMEM's variable."""

    def __init__(self, nvshmem: Nvshmem | None = None, stream_ops: StreamOps | None = None) -> None:
        self._given, self._given_ops = nvshmem, stream_ops
        self._nvshmem: Any = None
        self._config: Any = None
        self._ranges: list[_Range] = []
        self._anchor = 0
        self._owner = False
        self._gpu_count: int | None = None

    # Life

    def init(self, config: ShmemConfig) -> None:
        """Collective: meet the others, and make this process a PE."""
        self._device = _choose_device()
        self._set_heap_size(config)
        if library.without_network():
            # Without a network NVSHMEM's thread has nothing to send, and would poll on a core of its own all the time.
            os.environ.setdefault("NVSHMEM_DISABLE_LOCAL_ONLY_PROXY", "1")
        nvshmem = self._given or Nvshmem()
        self._owner = not nvshmem.initialized()
        if self._owner:
            nvshmem.init(config.pe, config.n_pes, _shared_uid(config, nvshmem))
        self._nvshmem, self._config, self._gpu_count = nvshmem, config, None
        self._stream_ops = self._given_ops or StreamOps()
        self._check_versions()
        self._check_identity()
        # The first allocation: where the heap begins.
        self._anchor = nvshmem.malloc(64)
        self._agreement = Agreement(self, partial(self._allocate, self._call("init()")), self._meet)
        MODULES.start(nvshmem)

    def _set_heap_size(self, config: ShmemConfig) -> None:
        """As asked for in the program, else as NVSHMEM's own variable says, else by our setting."""
        # What an earlier init wrote there is nobody's wish.
        if "heap_size" in config.model_fields_set or os.environ.get(_HEAP_SIZE) in (None, CudaAdapter._heap_size):
            os.environ[_HEAP_SIZE] = CudaAdapter._heap_size = str(config.heap_size)

    def _check_versions(self) -> None:
        """The device code and the host library must be of one release."""
        try:
            device = library.installed().version
        except NvshmemNotFound:
            return  # A kernel that needs it says so.
        library.check_packages()
        host = self._nvshmem.version()
        if device[0].isdigit() and device.split(".")[:2] != host.split(".")[:2]:
            raise NvshmemMismatch(
                detail=f"the device library is {device} ({library.installed().folder}), the host library {host}",
                fix="Both come with nvidia-nvshmem-cu13 (or -cu12); is another libnvshmem_host.so loaded?",
            )

    def _check_identity(self) -> None:
        found = self._nvshmem.my_pe(), self._nvshmem.n_pes()
        if found != (self._config.pe, self._config.n_pes):
            launcher = f"PE {self._config.pe} of {self._config.n_pes}"
            detail = f"NVSHMEM says PE {found[0]} of {found[1]}, the launcher {launcher}."
            fix = "NVSHMEM was initialised before, by other rules."
            raise NvshmemError(call="shmem.init", detail=detail, fix=fix)

    def finalize(self) -> None:
        """Collective. Modules first, then memory, then the library."""
        import torch

        nvshmem = self._running("finalize()")
        torch.cuda.synchronize(self._device)
        nvshmem.barrier_all()
        MODULES.stop()
        for memory in [memory for memory in self._ranges if memory.peers is None]:
            nvshmem.free(memory.address)
        nvshmem.free(self._anchor)
        if self._owner:
            nvshmem.hostlib_finalize()
        self._nvshmem, self._ranges = None, []

    def abandon(self, why: str) -> None:
        """Nothing can be said to the peers; the launcher ends them."""
        del why
        self._nvshmem = None

    def _running(self, call: str) -> Any:
        if self._nvshmem is None:
            raise NotInitialized(call=call)
        return self._nvshmem

    def _call(self, name: str) -> Call:
        self._running(name)
        return Call(self._config.pe, name)

    # Identity

    def my_pe(self) -> int:
        self._running("my_pe()")
        return self._config.pe

    def n_pes(self) -> int:
        self._running("n_pes()")
        return self._config.n_pes

    def device(self) -> torch.device:
        self._running("device()")
        return self._device

    def shares_device(self) -> bool:
        return self._gpus() < self.n_pes()

    def on_one_device(self) -> bool:
        return 1 == self._gpus() < self.n_pes()

    def _gpus(self) -> int:
        """How many all PEs have. Collective, the first time."""
        self._running("shares_device()")
        if self._gpu_count is None:
            self._gpu_count = len(set(self._said_by_all(_uuid_of(self._device))))
        return self._gpu_count

    def _said_by_all(self, name: bytes) -> list[bytes]:
        """Collective: what each PE says, all as many bytes."""
        import torch

        mine = torch.tensor(list(name), dtype=torch.uint8, device=self._device)
        table = self.create_tensor((self.n_pes(), len(name)), torch.uint8)
        for pe in range(self.n_pes()):
            self.put(table[self.my_pe()], mine, pe)
        self.barrier_all()
        said = [bytes(row) for row in table.tolist()]
        self.free_tensor(table)
        return said

    def info(self) -> dict[str, Any]:
        self._running("info()")
        heap = _bytes_of(os.environ[_HEAP_SIZE])
        used = sum(memory.nbytes for memory in self._ranges if memory.peers is None)
        return {
            "pe": self._config.pe,
            "n_pes": self._config.n_pes,
            "pes_are": "devices",
            "heap_bytes": heap,
            "free_bytes": max(0, heap - used),
            "tensors": len(self._ranges) - 1,  # without the agreement's tables
        }

    # Memory

    def create_tensor(self, shape: Sequence[int] | int, dtype: torch.dtype) -> torch.Tensor:
        """Collective: zeros, which all peers have before any PE returns."""
        call = self._call(f"create_tensor({checks.shown_shape(shape)}, {dtype})")
        sizes = checks.shape_of(shape, call)
        return self._create(call, sizes, checks.dtype_of(dtype, call))

    def create_signals(self, n: int, dtype: torch.dtype) -> torch.Tensor:
        """Collective: `n` signals of zero, next to each other."""
        call = self._call(f"create_signals({checks.shown_count(n)}, {dtype})")
        checks.check_signal_dtype(checks.dtype_of(dtype, call), call, _BACKEND)
        return self._create(call, (checks.count_of(n, call),), dtype)

    def agree(self, call: str) -> None:
        """Collective: raise on every PE unless all make this `call`. Waits for this PE's stream."""
        made = self._call(call)
        self._agreement.check(call, made.where)

    def _create(self, call: Call, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        self.agree(call.call)
        return self._allocate(call, shape, dtype)

    def _allocate(self, call: Call, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        import torch

        nbytes = dtype.itemsize * math.prod(shape)
        # NVSHMEM's malloc holds a barrier on a stream of its own, which must not run beside one on the user's stream.
        torch.cuda.synchronize(self._device)
        # NVSHMEM returns null for 0 bytes.
        address = self._nvshmem.malloc(max(nbytes, 1))
        if address == 0:
            size = os.environ[_HEAP_SIZE]
            detail = f"PE {call.pe}, {call.where}: no {nbytes} bytes are left of the symmetric heap ({size})."
            variable = "TRITON_DIST_HEAP_SIZE" if size == CudaAdapter._heap_size else _HEAP_SIZE
            raise NvshmemError(call=call.call, detail=detail, fix=f"Set {variable}, or free tensors.")
        self._ranges.append(_Range(address, nbytes, f"{call.call} at {call.where}"))
        made = self._tensor_at(address, nbytes, shape, dtype)
        made.view(torch.uint8).zero_()
        torch.cuda.synchronize(self._device)
        self._nvshmem.barrier_all()
        return made

    def _tensor_at(self, address: int, nbytes: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor over memory that it does not own."""
        import torch

        # The device is said, not asked of the pointer: a peer's memory may belong to another device.
        storage = torch._C._construct_storage_from_data_pointer(address, self._device, nbytes)  # pyright: ignore
        empty = torch.empty(0, dtype=torch.uint8, device=self._device)
        whole = empty.set_(storage, 0, (nbytes,), (1,))  # pyright: ignore
        return whole.view(dtype).view(tuple(shape))

    def free_tensor(self, tensor: torch.Tensor) -> None:
        """Collective: no PE may use it any more. Waits for this PE's device."""
        import torch

        call = self._call("free_tensor")
        memory = self._locate(tensor, "the tensor", call)
        if checks.address_of(tensor) != memory.address or tensor.numel() * tensor.element_size() != memory.nbytes:
            raise PartOfTensor(**call.fields(), argument="the tensor", got=checks.brief(tensor), whole=memory.made)
        if memory.peers is not None:
            raise NotSymmetric(**call.fields(), argument="the tensor", got="memory that somebody else owns")
        self.agree(f"free_tensor(byte {memory.address - self._anchor} of the heap, {memory.nbytes} bytes)")
        torch.cuda.synchronize(self._device)
        self._nvshmem.free(memory.address)
        # Forgotten at once: its address may be given out again.
        self._ranges.remove(memory)

    def adopt(self, memory: SymmetricMemory) -> None:
        """Let `peer_tensor`, `put`, `get` and `signal` know symmetric memory that somebody else owns.

        Kernels do not: `dl.symm_at` knows NVSHMEM's heap only, and gives null for any other address.
        """
        self._running("adopt()")
        made = f"memory of a {type(memory).__name__}"
        self._ranges.append(_Range(memory.address, memory.nbytes, made, tuple(memory.peer_addresses)))

    # Access to peers

    def peer_tensor(self, tensor: torch.Tensor, pe: int) -> torch.Tensor:
        call = self._call("peer_tensor")
        peer = checks.check_pe(pe, self._config.n_pes, call)
        memory = self._locate(tensor, "the tensor", call)
        if peer == self._config.pe:
            return tensor
        address = self._address_on(memory, checks.address_of(tensor), peer)
        if address == 0:
            detail = f"PE {call.pe}, {call.where}: the memory of PE {peer} cannot be reached by loads and stores."
            raise NvshmemError(call=call.call, detail=detail, fix="Use shmem.put and shmem.get.")
        if not tensor.is_contiguous():
            span = _span(tensor)
            flat = self._tensor_at(address, span * tensor.element_size(), (span,), tensor.dtype)
            return flat.as_strided(tensor.shape, tensor.stride())
        return self._tensor_at(address, tensor.numel() * tensor.element_size(), tensor.shape, tensor.dtype)

    def _address_on(self, memory: _Range, address: int, pe: int) -> int:
        """Where `address` is on `pe`, as seen here; 0 if it is not mapped."""
        if memory.peers is not None:
            return memory.peers[pe] + (address - memory.address) if memory.peers[pe] else 0
        return self._nvshmem.ptr(address, pe)

    def put(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
        """In order of the current stream."""
        call = self._call("put")
        peer = checks.check_pe(pe, self._config.n_pes, call)
        memory = self._locate(dest, "dest", call)
        checks.require_tensor(source, "source", call)
        checks.check_equal(dest, source, "source", call)
        if peer == self._config.pe or self._address_on(memory, checks.address_of(dest), peer):
            _copy(self.peer_tensor(dest, peer), source)
            return
        source = source.to(self._device).contiguous()
        self._remote("putmem_on_stream", dest, dest, source, peer, call)

    def get(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
        """In order of the current stream."""
        call = self._call("get")
        peer = checks.check_pe(pe, self._config.n_pes, call)
        memory = self._locate(source, "source", call)
        checks.require_tensor(dest, "dest", call)
        checks.check_equal(dest, source, "source", call)
        if peer == self._config.pe or self._address_on(memory, checks.address_of(source), peer):
            _copy(dest, self.peer_tensor(source, peer))
            return
        self._remote("getmem_on_stream", source, dest, source, peer, call)

    def _remote(
        self, name: str, symmetric: torch.Tensor, dest: torch.Tensor, source: torch.Tensor, pe: int, call: Call
    ) -> None:
        """Over the network: whole pieces of memory only."""
        if not (dest.is_contiguous() and source.is_contiguous() and dest.device == self._device):
            detail = f"PE {call.pe}, {call.where}: over the network, both tensors must be contiguous and on the GPU."
            raise NvshmemError(call=call.call, detail=detail, fix="Copy into such a tensor first.")
        nbytes = symmetric.numel() * symmetric.element_size()
        getattr(self._nvshmem, name)(dest.data_ptr(), source.data_ptr(), nbytes, pe, self._stream())
        self._nvshmem.quiet_on_stream(self._stream())

    # Signals and barriers

    def barrier_all(self) -> None:
        """Collective, in order of the current stream: what follows on it follows what all PEs had on theirs."""
        self._running("barrier_all()")
        self._agreement.barrier_all()

    def _meet(self) -> None:
        nvshmem = self._nvshmem
        if self._shares_without_limit():
            # Host collectives on a stream end the process there.
            import torch

            torch.cuda.current_stream(self._device).synchronize()
            nvshmem.barrier_all()
            return
        nvshmem.barrier_all_on_stream(self._stream())

    def _shares_without_limit(self) -> bool:
        """Several PEs share a GPU, and MPS gives each no fixed share of it."""
        return self._nvshmem.init_status() == LIMITED_MPG

    def signal(self, signal: torch.Tensor, value: int, op: str, pe: int) -> None:
        """In order of the current stream: who sees it sees what this stream wrote before."""
        call = self._call("signal")
        peer = checks.check_pe(pe, self._config.n_pes, call)
        kind = self._signal_kind(signal, call)
        checks.check_signal_op(op, signal, call, _BACKEND)
        number = kind.check(value, call) & ((1 << 64) - 1)
        memory = self._locate(signal, "the signal", call)
        address = self._address_on(memory, signal.data_ptr(), peer)
        if op == "set" and address:
            self._stream_ops.write(self._stream(), address, number)
        elif memory.peers is None:
            self._nvshmem.signal_op_on_stream(signal.data_ptr(), number, _OPS[op], peer, self._stream())
        else:
            detail = "memory that NVSHMEM does not own can only be set, and only where it can be reached"
            raise BadSignal(**call.fields(), detail=detail)

    def stream_wait_signal(self, signal: torch.Tensor, value: int, cmp: str = "ge") -> None:
        """In order of the current stream, which waits; there is no deadline."""
        call = self._call("stream_wait_signal")
        checks.check_choice("cmp", cmp, tuple(WAITS), call)
        number = self._signal_kind(signal, call).check(value, call) & ((1 << 64) - 1)
        self._locate(signal, "the signal", call)
        self._stream_ops.wait(self._stream(), signal.data_ptr(), number, cmp)

    def wait_signal(self, signal: torch.Tensor, value: int, cmp: str = "eq", timeout: float | None = None) -> int:
        """Polls from the host, beside the current stream; returns the value seen."""
        import torch

        call = self._call("wait_signal")
        compare = checks.COMPARISONS[checks.check_choice("cmp", cmp, tuple(checks.COMPARISONS), call)]
        kind = self._signal_kind(signal, call)
        kind.check(value, call)
        self._locate(signal, "the signal", call)
        seconds = checks.seconds_of(timeout, self._config.deadline_seconds(), call)
        start = time.monotonic()
        with torch.cuda.stream(torch.cuda.Stream(self._device)):
            while True:
                seen = kind.read(int(signal.view(torch.int64).item()))
                if compare(seen, value):
                    return seen
                waited = time.monotonic() - start
                if seconds and waited > seconds:
                    break
                time.sleep(_POLL_SECONDS)
        raise WaitTimeout(
            pe=call.pe,
            program="none (the host)",
            where=call.where,
            seconds=waited,
            slot=self.describe_address(signal.data_ptr()),
            expected=f"{cmp} {value}",
            seen=seen,
        )

    def signal_sender(self, signal: torch.Tensor, pe: int) -> Callable[[int], None]:
        call = self._call("signal_sender")
        peer = checks.check_pe(pe, self._config.n_pes, call)
        self._signal_kind(signal, call)
        address = self._address_on(self._locate(signal, "the signal", call), signal.data_ptr(), peer)
        if not address:
            return super().signal_sender(signal, pe)
        write, stream = self._stream_ops.write, self._stream_ops.current
        return lambda value: write(stream(), address, value)

    def signal_waiter(self, signal: torch.Tensor) -> Callable[[int], None]:
        call = self._call("signal_waiter")
        self._signal_kind(signal, call)
        self._locate(signal, "the signal", call)
        wait, stream, address = self._stream_ops.wait, self._stream_ops.current, signal.data_ptr()
        return lambda value: wait(stream(), address, value, "eq")

    def _signal_kind(self, signal: torch.Tensor, call: Call) -> checks.SignalKind:
        checks.require_tensor(signal, "the signal", call)
        return checks.check_signal(signal, call, _BACKEND)

    # What is where

    def is_symmetric(self, tensor: torch.Tensor) -> bool:
        self._running("is_symmetric()")
        if not checks.is_dense_tensor(tensor):
            return False
        place = checks.place_of(tensor)
        return any(memory.holds(place) for memory in self._ranges)

    def offset_of(self, tensor: torch.Tensor) -> int:
        call = self._call("offset_of")
        memory = self._locate(tensor, "the tensor", call)
        start = self._anchor if memory.peers is None else memory.address
        return checks.address_of(tensor) - start

    def describe_address(self, address: int) -> str:
        for memory in self._ranges:
            if memory.holds(address):
                return f"byte {address - memory.address} of {memory.made}"
        return f"address {address:#x}, in no symmetric tensor of this PE"

    def _locate(self, tensor: Any, argument: str, call: Call) -> _Range:
        checks.require_tensor(tensor, argument, call)
        place = checks.place_of(tensor)
        for memory in self._ranges:
            if memory.holds(place):
                return memory
        raise NotSymmetric(**call.fields(), argument=argument, got=f"{checks.brief(tensor)} on {tensor.device}")

    def _stream(self) -> int:
        import torch

        return torch.cuda.current_stream(self._device).cuda_stream


def _copy(dest: torch.Tensor, source: torch.Tensor) -> None:
    import torch

    with torch.no_grad():
        dest.copy_(source)


def _choose_device() -> torch.device:
    """This PE's GPU: by LOCAL_RANK if a launcher set it (several PEs may share one), else torch's current one."""
    import torch

    if not torch.cuda.is_available():
        fix = "Install a torch with CUDA, or simulate: TRITON_DIST_SIMULATE=1."
        raise NvshmemError(call="shmem.init", detail="torch sees no NVIDIA GPU.", fix=fix)
    if "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    device = torch.device("cuda", torch.cuda.current_device())
    # NVSHMEM takes the current CUDA context, which torch makes late.
    torch.empty(1, device=device)
    return device


def _uuid_of(device: torch.device) -> bytes:
    import torch

    return torch.cuda.get_device_properties(device).uuid.bytes


def _shared_uid(config: ShmemConfig, nvshmem: Any) -> bytes:
    """PE 0's unique id, handed to all: over torch.distributed if it is initialised, else over the launcher's store."""
    if config.n_pes == 1:
        return nvshmem.new_uid()
    store = _store_of(config)
    key = f"nvshmem uid {_next_generation()}"
    if config.pe == 0:
        store.set(key, nvshmem.new_uid())
    store.wait([key], timedelta(seconds=config.init_timeout))
    uid = bytes(store.get(key))
    assert len(uid) == UID_BYTES
    return uid


_generation = 0


def _next_generation() -> int:
    """Inits are collective, so all PEs count them alike."""
    global _generation
    _generation += 1
    return _generation


_stores: list[Any] = []
"""Kept open: PE 0 may serve it, and the others may still read."""


def _store_of(config: ShmemConfig) -> Any:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.distributed_c10d._get_default_store()
    if not _stores:
        from triton_dist.shmem.host.world import connect

        assert config.rendezvous is not None
        _stores.append(connect(config, config.rendezvous))
    return _stores[0]


def _span(tensor: torch.Tensor) -> int:
    """Elements from the first to the last."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _bytes_of(text: str) -> int:
    """NVSHMEM's sizes: a number with K, M, G or T."""
    scale = {"k": 10, "m": 20, "g": 30, "t": 40}.get(text[-1:].lower())
    return int(float(text[:-1]) * (1 << scale)) if scale else int(text)
