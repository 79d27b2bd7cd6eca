# SPDX-License-Identifier: MIT
"""The runtime adapter over `import shmem as ash`, the vendor's aclshmem.

The library takes and gives addresses as integers and return codes; here they become tensors and exceptions that name
the call and say what the code means.
"""

from __future__ import annotations

import itertools
import math
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triton_dist import knobs
from triton_dist.backends.agreement import Agreement
from triton_dist.backends.ascend import AscendBackend, codes
from triton_dist.backends.base import RuntimeAdapter
from triton_dist.errors import (
    AclshmemFailed,
    AclshmemMissing,
    EngineNeedsAddress,
    NotInitialized,
    NotSymmetric,
    PartOfTensor,
    ShmemConfigError,
    WaitTimeout,
)
from triton_dist.shmem.host import checks
from triton_dist.shmem.host.checks import Call, address_of

if TYPE_CHECKING:
    import torch

    from triton_dist.shmem.config import ShmemConfig

_BACKEND = AscendBackend()
SIGNAL_SLOT_BYTES = 64
MOST_ADDRESS_CHARACTERS = 63
"""The library cuts an address that is longer."""


@dataclass(frozen=True)
class Tls:
    """How the bootstrap is encrypted: the arguments of `set_conf_store_tls` and `set_conf_store_tls_key`."""

    info: str
    key: str = ""
    password: str = ""
    decrypt: Callable[[str], str] | None = None


_tls: list[Tls] = []


def use_tls(info: str, key: str = "", password: str = "", decrypt: Callable[[str], str] | None = None) -> None:
    """Encrypt the bootstrap of each `shmem.init` from here on. Every PE calls it before init.

    Args:
        info: what `set_conf_store_tls` takes: the certificates, in the library's own format.
        key, password, decrypt: what `set_conf_store_tls_key` takes, if the key is given apart.
    """
    _tls[:] = [Tls(info, key, password, decrypt)]


def use_no_tls() -> None:
    """Take `use_tls` back."""
    _tls.clear()


def library() -> Any:
    """The package `shmem`; torch_npu is imported before it, as it needs that."""
    try:
        from triton_dist.backends.ascend import standin

        present = sys.modules.get("shmem")
        if present is None or not standin.is_standin(present):
            import torch_npu  # noqa: F401  # pyright: ignore[reportMissingImports]
        import shmem as ash  # pyright: ignore[reportMissingImports]
    except (ImportError, RuntimeError) as error:
        raise AclshmemMissing(detail=f"{type(error).__name__}: {error}") from error
    return ash


@dataclass(frozen=True)
class _Made:
    """Memory of the library, at least one element; the user has `elements` of it, of which every `step`th is seen."""

    tensor: Any
    elements: int
    step: int

    @property
    def nbytes(self) -> int:
        return self.tensor.numel() * self.tensor.element_size()


class AscendAdapter(RuntimeAdapter):
    """One PE: a process with one NPU. `ash` is the library, for tests the stand-in."""

    takes_unique_id = True

    def __init__(self, ash: Any = None, device: str | None = None) -> None:
        self._ash = ash
        self._device_name = device
        self._npu: Any = None
        self._config: ShmemConfig | None = None
        self._tensors: dict[int, _Made] = {}
        self._scratch = 0

    # Life

    def init(self, config: ShmemConfig) -> None:
        """The library's five steps. Collective."""
        if config.unique_id is not None:
            self.init_with_unique_id(config, config.unique_id)
            return
        ash = self._ash = self._ash or library()
        self._use_device(config)
        # 1. Is the bootstrap encrypted?
        self._set_tls(ash)
        # 2 to 4. Who this is, how large the heap, where the PEs meet, what moves data.
        attributes = ash.InitAttr()
        attributes.my_rank, attributes.n_ranks = config.pe, config.n_pes
        attributes.local_mem_size = config.heap_size
        attributes.ip_port = _address(config)
        attributes.option_attr.data_op_engine_type = getattr(ash.OpEngineType, knobs.engine or "MTE")
        # 5.
        codes.check("aclshmem_init", ash.aclshmem_init(attributes))
        self._started(ash, config)

    def init_with_unique_id(self, config: ShmemConfig, uid: bytes) -> None:
        """`init` where one PE made an id by `unique_id` and gave it to all. The library takes no engine then."""
        if knobs.engine not in (None, "MTE"):
            raise EngineNeedsAddress(engine=knobs.engine)
        ash = self._ash = self._ash or library()
        self._use_device(config)
        self._set_tls(ash)
        code = ash.aclshmem_init_using_unique_id(config.pe, config.n_pes, config.heap_size, uid)
        codes.check("aclshmem_init_using_unique_id", code)
        self._started(ash, config)

    def unique_id(self) -> bytes:
        """Where the PEs can meet, made by one of them."""
        self._ash = self._ash or library()
        try:
            return self._ash.aclshmem_get_unique_id()
        except RuntimeError as error:
            raise _failed("aclshmem_get_unique_id", error) from error

    @staticmethod
    def _set_tls(ash: Any) -> None:
        tls = _tls[-1] if _tls else None
        if tls is None:
            codes.check("set_conf_store_tls", ash.set_conf_store_tls(False, ""))
            return
        codes.check("set_conf_store_tls", ash.set_conf_store_tls(True, tls.info))
        if tls.key:
            code = ash.set_conf_store_tls_key(tls.key, tls.password, tls.decrypt)
            codes.check("set_conf_store_tls_key", code)

    def _started(self, ash: Any, config: ShmemConfig) -> None:
        try:
            self._scratch = ash.aclshmem_malloc(SIGNAL_SLOT_BYTES)
        except RuntimeError as error:
            ash.aclshmem_finalize()
            raise _failed("aclshmem_malloc", error) from error
        self._config = config
        try:
            self._agreement = Agreement(self, self._allocate, self._meet)
        except AclshmemFailed:
            self._config = None
            ash.aclshmem_finalize()
            raise

    def finalize(self) -> None:
        """Collective: what was not freed is."""
        ash = self._running("finalize()")
        self._settle()
        for made in list(self._tensors.values()):
            ash.aclshmem_free_tensor(made.tensor)
        self._tensors.clear()
        ash.aclshmem_free(self._scratch)
        self._config = None
        codes.check("aclshmem_finalize", ash.aclshmem_finalize())

    def _use_device(self, config: ShmemConfig) -> None:
        if self._device_name is not None:
            return
        import torch

        self._npu = torch.npu  # pyright: ignore[reportAttributeAccessIssue]
        index = config.pe % self._npu.device_count()
        self._npu.set_device(index)
        self._device_name = f"npu:{index}"

    def _settle(self) -> None:
        """The library's host calls know nothing of torch's streams: what was written there must be done before."""
        if self._npu is not None:
            self._npu.synchronize()

    def device(self) -> torch.device:
        import torch

        self._running("device()")
        return torch.device(self._device_name or "cpu")

    def _running(self, call: str) -> Any:
        if self._config is None:
            raise NotInitialized(call=call)
        return self._ash

    # Identity

    def my_pe(self) -> int:
        return self._running("my_pe()").my_pe()

    def n_pes(self) -> int:
        return self._running("n_pes()").pe_count()

    # Memory

    def create_tensor(self, shape: Sequence[int] | int, dtype: torch.dtype) -> torch.Tensor:
        """Collective: a tensor of zeros."""
        call = self._call(f"create_tensor({checks.shown_shape(shape)}, {dtype})")
        sizes, dtype = checks.shape_of(shape, call), checks.dtype_of(dtype, call)
        self._agreement.check(call.call, call.where)
        return self._allocate(sizes, dtype)

    def agree(self, call: str) -> None:
        """Collective: raise on every PE unless all make this `call`."""
        self._running(call)
        self._agreement.check(call, self._call(call).where)

    def _allocate(self, sizes: tuple[int, ...], dtype: torch.dtype, step: int = 1) -> torch.Tensor:
        ash = self._ash
        # The library refuses a size of 0.
        given = sizes if math.prod(sizes) else (1,)
        try:
            tensor = ash.aclshmem_create_tensor(given, dtype=dtype, device_id=self._index())
        except RuntimeError as error:
            raise _failed("aclshmem_create_tensor", error) from error
        tensor.zero_()
        self._tensors[tensor.data_ptr()] = _Made(tensor, math.prod(sizes), step)
        # Nobody may write into it before all have zeroed theirs.
        self._meet()
        return tensor if given == sizes else tensor[:0].view(sizes)

    def create_signals(self, n: int, dtype: torch.dtype) -> torch.Tensor:
        """Collective: `n` signals of zero, each in a line of 64 bytes."""
        call = self._call(f"create_signals({checks.shown_count(n)}, {dtype})")
        count = checks.count_of(n, call)
        step = SIGNAL_SLOT_BYTES * 8 // checks.check_signal_dtype(checks.dtype_of(dtype, call), call, _BACKEND).bits
        self._agreement.check(call.call, call.where)
        return self._allocate((count * step,), dtype, step)[::step]

    def free_tensor(self, tensor: torch.Tensor) -> None:
        """Collective: the library frees by the address, so a part of a tensor is refused."""
        ash, call = self._running("free_tensor"), self._call("free_tensor")
        start = self._checked(call, "the tensor", tensor)
        made, whole = self._tensors[start], self._tensors[start].tensor
        if address_of(tensor) != start or tensor.numel() * made.step != made.elements:
            got = checks.brief(tensor)
            raise PartOfTensor(**call.fields(), argument="the tensor", got=got, whole=f"a tensor {checks.brief(whole)}")
        # Every PE has come: nobody uses it any more.
        offset = start - ash.aclshmemx_get_heap_base()
        self.agree(f"free_tensor(byte {offset} of the heap, {checks.brief(whole)})")
        del self._tensors[start]
        ash.aclshmem_free_tensor(whole)

    def peer_tensor(self, tensor: torch.Tensor, pe: int) -> torch.Tensor:
        """The same tensor, or part of one, at `pe`, if loads and stores reach it."""
        ash, call = self._running("peer_tensor"), self._call("peer_tensor")
        self._checked(call, "the tensor", tensor)
        peer = checks.check_pe(pe, self.n_pes(), call)
        if peer == self.my_pe() or not tensor.numel():
            return tensor
        address = ash.aclshmem_ptr(address_of(tensor), peer)
        if not address:
            raise AclshmemFailed(call="aclshmem_ptr", code=0, meaning=f"no load or store reaches PE {pe}")
        flat = ash.construct_tensor_from_ptr(address, (_extent(tensor),), tensor.dtype, self._device_name)
        return flat.as_strided(tuple(tensor.shape), tensor.stride())

    # Transfers

    def put(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
        """Copy to `pe`; done on return. One transfer for each run of elements that lie side by side in `dest`."""
        ash, call = self._running("put"), self._call("put")
        self._checked(call, "dest", dest)
        checks.check_equal(dest, source, "source", call)
        peer, data = checks.check_pe(pe, self.n_pes(), call), source.contiguous()
        self._settle()
        for offset, position, count in _runs(dest):
            size = dest.element_size()
            theirs, mine = address_of(dest) + offset * size, address_of(data) + position * size
            ash.aclshmem_putmem(theirs, mine, count * size, peer)

    def get(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
        """Copy from `pe`; done on return."""
        ash, call = self._running("get"), self._call("get")
        self._checked(call, "source", source)
        checks.check_equal(dest, source, "dest", call)
        peer = checks.check_pe(pe, self.n_pes(), call)
        part = dest if dest.is_contiguous() else dest.new_empty(dest.shape)
        self._settle()
        for offset, position, count in _runs(source):
            size = source.element_size()
            mine, theirs = address_of(part) + position * size, address_of(source) + offset * size
            ash.aclshmem_getmem(mine, theirs, count * size, peer)
        if part is not dest:
            dest.copy_(part)

    def signal(self, signal: torch.Tensor, value: int, op: str, pe: int) -> None:
        """Set a signal of `pe`, or add to an int32 one."""
        ash, call = self._running("signal"), self._call("signal")
        self._checked(call, "the signal", signal)
        kind = checks.check_signal(signal, call, _BACKEND)
        checks.check_signal_op(op, signal, call, _BACKEND)
        number, peer = kind.check(value, call), checks.check_pe(pe, self.n_pes(), call)
        self._settle()
        if op == "set":
            word = _word(number, kind.bits, signal)
            self._settle()
            ash.aclshmem_putmem(address_of(signal), word.data_ptr(), kind.bits // 8, peer)
            return
        # The library has no signal without a transfer in its public interface: one word of scratch goes with it.
        ash.aclshmemx_putmem_signal(self._scratch, self._scratch, 4, address_of(signal), number, 1, peer)

    def wait_signal(self, signal: torch.Tensor, value: int, cmp: str = "eq", timeout: float | None = None) -> int:
        """Wait until a signal of this PE compares to `value`. The library's own wait has no deadline, so this polls."""
        self._running("wait_signal")
        call = self._call("wait_signal")
        compare = checks.COMPARISONS[checks.check_choice("cmp", cmp, tuple(checks.COMPARISONS), call)]
        self._checked(call, "the signal", signal)
        checks.check_signal(signal, call, _BACKEND).check(value, call)
        assert self._config is not None
        limit = checks.seconds_of(timeout, self._config.deadline_seconds(), call)
        start = time.monotonic()
        while not compare(seen := int(signal.item()), value):
            if limit and time.monotonic() - start > limit:
                place = {"where": call.where, "slot": self.describe_address(address_of(signal))}
                wanted = {"expected": f"{cmp} {value}", "seen": seen}
                raise WaitTimeout(pe=self.my_pe(), program="none (the host)", seconds=limit, **place, **wanted)
            time.sleep(20e-6)
        return seen

    def barrier_all(self) -> None:
        """Collective."""
        self._running("barrier_all()")
        self._agreement.barrier_all()

    def _meet(self) -> None:
        """Where the library's module has no barrier, freeing memory is one: it meets all PEs."""
        ash = self._ash
        self._settle()
        if (barrier := getattr(ash, "aclshmem_barrier_all", None)) is not None:
            barrier()
            return
        ash.aclshmem_free(ash.aclshmem_malloc(SIGNAL_SLOT_BYTES))

    # What is where

    def is_symmetric(self, tensor: torch.Tensor) -> bool:
        self._running("is_symmetric()")
        return self._owner(tensor) is not None

    def offset_of(self, tensor: torch.Tensor) -> int:
        ash, call = self._running("offset_of()"), self._call("offset_of")
        self._checked(call, "the tensor", tensor)
        return address_of(tensor) - ash.aclshmemx_get_heap_base()

    def describe_address(self, address: int) -> str:
        for start, made in self._tensors.items():
            if start <= address < start + made.nbytes:
                shape, dtype = tuple(made.tensor.shape), made.tensor.dtype
                return f"byte {address - start} of {shape} {dtype} at {start:#x}"
        return f"address {address:#x}"

    def info(self) -> dict[str, Any]:
        self._running("info()")
        assert self._config is not None
        used = sum(made.nbytes for made in self._tensors.values())
        return {
            "pe": self.my_pe(),
            "n_pes": self.n_pes(),
            "pes_are": "devices",
            "heap_bytes": self._config.heap_size,
            "free_bytes": max(0, self._config.heap_size - used),
            "tensors": len(self._tensors) - 1,  # without the agreement's tables
        }

    def _index(self) -> int:
        return int((self._device_name or "").partition(":")[2] or 0)

    def _call(self, name: str) -> Call:
        return Call(self.my_pe(), name)

    def _owner(self, tensor: Any) -> int | None:
        """Where the live tensor starts that this one is, or is a part of."""
        if not checks.is_dense_tensor(tensor):
            return None
        address = checks.place_of(tensor)
        return next((start for start, made in self._tensors.items() if start <= address < start + made.nbytes), None)

    def _checked(self, call: Call, argument: str, tensor: torch.Tensor) -> int:
        checks.require_tensor(tensor, argument, call)
        start = self._owner(tensor)
        if start is None:
            raise NotSymmetric(**call.fields(), argument=argument, got=checks.brief(tensor))
        return start


def _failed(call: str, error: RuntimeError) -> AclshmemFailed:
    return AclshmemFailed(call=call, code="an error", meaning=str(error))


def _address(config: ShmemConfig) -> str:
    meeting = config.rendezvous
    if meeting is None:
        return "tcp://127.0.0.1:8666"
    # The launcher's own store listens on its port; the library's listens on a neighbour.
    port = meeting.port + 1 if meeting.port < 65535 else meeting.port - 1
    host = _number_of(meeting.host)
    address = f"tcp6://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
    if len(address) > MOST_ADDRESS_CHARACTERS:
        detail = f"aclshmem takes {MOST_ADDRESS_CHARACTERS} characters of an address, and {address} is longer"
        raise ShmemConfigError(detail=f"{detail}. Set MASTER_ADDR to the number of the host's address.")
    return address


def _number_of(host: str) -> str:
    """The host's number, of the older kind if it has both: the library looks no names up."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return host  # the library says what is wrong with it
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return str(found[0][4][0])


def _extent(tensor: torch.Tensor) -> int:
    """Elements from the first to the last, with what lies between them."""
    return 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def _runs(tensor: torch.Tensor) -> Iterator[tuple[int, int, int]]:
    """The runs of neighbours of a tensor: (offset in its memory, position in row-major order, elements)."""
    if not tensor.numel():
        return
    length, kept = 1, tensor.dim()
    while kept and (tensor.shape[kept - 1] == 1 or tensor.stride(kept - 1) == length):
        kept -= 1
        length *= tensor.shape[kept]
    outer, strides = tensor.shape[:kept], tensor.stride()[:kept]
    for number, index in enumerate(itertools.product(*map(range, outer))):
        offset = sum(i * step for i, step in zip(index, strides, strict=True))
        yield offset, number * length, length


def _word(number: int, bits: int, like: torch.Tensor) -> torch.Tensor:
    """A signal's word, where the signal is, whatever its sign."""
    import torch

    return torch.tensor([number], dtype=torch.int32 if bits == 32 else torch.int64, device=like.device)
