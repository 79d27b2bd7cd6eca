# SPDX-License-Identifier: MIT
"""The runtime adapter over `import shmem as ash`, the vendor's aclshmem.

The library takes and gives addresses as integers and return codes; here they become tensors and exceptions that name
the call and say what the code means.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from triton_dist import knobs
from triton_dist.backends.ascend import codes
from triton_dist.backends.base import RuntimeAdapter
from triton_dist.errors import (
    AclshmemFailed,
    AclshmemMissing,
    NotInitialized,
    NotSymmetric,
    PeOutOfRange,
    UnequalTensors,
    WaitTimeout,
)
from triton_dist.shmem.callsite import call_site

if TYPE_CHECKING:
    import torch

    from triton_dist.shmem.config import ShmemConfig

SIGNAL_SLOT_BYTES = 64
_COMPARE = {
    "eq": lambda seen, value: seen == value,
    "ne": lambda seen, value: seen != value,
    "gt": lambda seen, value: seen > value,
    "ge": lambda seen, value: seen >= value,
    "lt": lambda seen, value: seen < value,
    "le": lambda seen, value: seen <= value,
}


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


class AscendAdapter(RuntimeAdapter):
    """One PE: a process with one NPU. `ash` is the library, for tests the stand-in."""

    def __init__(self, ash: Any = None, device: str | None = None) -> None:
        self._ash = ash
        self._device_name = device
        self._config: ShmemConfig | None = None
        self._tensors: dict[int, tuple[Any, int]] = {}
        self._scratch = 0

    # Life

    def init(self, config: ShmemConfig) -> None:
        """The library's five steps. Collective."""
        ash = self._ash = self._ash or library()
        self._use_device(config)
        # 1. No encryption of the bootstrap: the PEs meet inside one cluster.
        codes.check("set_conf_store_tls", ash.set_conf_store_tls(False, ""))
        # 2 to 4. Who this is, how large the heap, where the PEs meet, what moves data.
        attributes = ash.InitAttr()
        attributes.my_rank, attributes.n_ranks = config.pe, config.n_pes
        attributes.local_mem_size = config.heap_size
        attributes.ip_port = self._address(config)
        attributes.option_attr.data_op_engine_type = getattr(ash.OpEngineType, knobs.engine or "MTE")
        # 5.
        codes.check("aclshmem_init", ash.aclshmem_init(attributes))
        self._config = config
        self._scratch = ash.aclshmem_malloc(SIGNAL_SLOT_BYTES)

    def init_with_unique_id(self, config: ShmemConfig, uid: bytes) -> None:
        """`init` where one PE made an id by `unique_id` and gave it to all."""
        ash = self._ash = self._ash or library()
        self._use_device(config)
        code = ash.aclshmem_init_using_unique_id(config.pe, config.n_pes, config.heap_size, uid)
        codes.check("aclshmem_init_using_unique_id", code)
        self._config = config
        self._scratch = ash.aclshmem_malloc(SIGNAL_SLOT_BYTES)

    def unique_id(self) -> bytes:
        """Where the PEs can meet, made by one of them."""
        self._ash = self._ash or library()
        return self._ash.aclshmem_get_unique_id()

    def use_tls(self, info: str, key: str = "", password: str = "", decrypt: Any = None) -> None:
        """Encrypt the bootstrap; before `init`, on every PE."""
        ash = self._ash = self._ash or library()
        codes.check("set_conf_store_tls", ash.set_conf_store_tls(True, info))
        if key:
            codes.check("set_conf_store_tls_key", ash.set_conf_store_tls_key(key, password, decrypt))

    def finalize(self) -> None:
        """Collective: what was not freed is."""
        ash = self._running("finalize()")
        for tensor, _ in list(self._tensors.values()):
            ash.aclshmem_free_tensor(tensor)
        self._tensors.clear()
        ash.aclshmem_free(self._scratch)
        self._config = None
        codes.check("aclshmem_finalize", ash.aclshmem_finalize())

    def _use_device(self, config: ShmemConfig) -> None:
        if self._device_name is not None:
            return
        import torch

        npu = torch.npu  # pyright: ignore[reportAttributeAccessIssue]
        index = config.pe % npu.device_count()
        npu.set_device(index)
        self._device_name = f"npu:{index}"

    @staticmethod
    def _address(config: ShmemConfig) -> str:
        meeting = config.rendezvous
        # The launcher's own store listens on its port; the library's listens on the next.
        return f"tcp://{meeting.host}:{meeting.port + 1}" if meeting else "tcp://127.0.0.1:8666"

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
        ash = self._running("create_tensor")
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        # The library refuses a size of 0.
        given = sizes if math.prod(sizes) else (1,)
        try:
            tensor = ash.aclshmem_create_tensor(given, dtype=dtype, device_id=self._index())
        except RuntimeError as error:
            raise AclshmemFailed(call="aclshmem_create_tensor", code="an error", meaning=str(error)) from error
        tensor.zero_()
        self._tensors[tensor.data_ptr()] = (tensor, tensor.numel() * dtype.itemsize)
        # Nobody may write into it before all have zeroed theirs.
        self.barrier_all()
        return tensor if given == sizes else tensor[:0].view(sizes)

    def create_signals(self, n: int, dtype: torch.dtype) -> torch.Tensor:
        """Collective: `n` signals of zero, each in a line of 64 bytes."""
        stride = SIGNAL_SLOT_BYTES // dtype.itemsize
        return self.create_tensor((n * stride,), dtype)[::stride]

    def free_tensor(self, tensor: torch.Tensor) -> None:
        """Collective: the library frees by the address, so a part of a tensor is refused."""
        ash = self._running("free_tensor")
        entry = self._tensors.pop(tensor.data_ptr(), None)
        if entry is None:
            raise self._not_symmetric("free_tensor", "the tensor", tensor)
        self.barrier_all()
        ash.aclshmem_free_tensor(entry[0])

    def peer_tensor(self, tensor: torch.Tensor, pe: int) -> torch.Tensor:
        """The same tensor, or part of one, at `pe`, if loads and stores reach it."""
        ash = self._running("peer_tensor")
        address = ash.aclshmem_ptr(self._checked("peer_tensor", "the tensor", tensor), self._peer("peer_tensor", pe))
        if not address:
            raise AclshmemFailed(call="aclshmem_ptr", code=0, meaning=f"no load or store reaches PE {pe}")
        length = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
        flat = ash.construct_tensor_from_ptr(address, (length,), tensor.dtype, self._device_name)
        return flat.as_strided(tuple(tensor.shape), tensor.stride())

    # Transfers

    def put(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
        """Copy to `pe`; done on return."""
        ash = self._running("put")
        self._equal("put", dest, source)
        data = source.contiguous()
        address = self._checked("put", "dest", dest)
        ash.aclshmem_putmem(address, data.data_ptr(), data.numel() * data.element_size(), self._peer("put", pe))

    def get(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
        """Copy from `pe`; done on return."""
        ash = self._running("get")
        self._equal("get", dest, source)
        if not dest.is_contiguous():
            part = source.new_empty(source.shape)
            self.get(part, source, pe)
            dest.copy_(part)
            return
        address = self._checked("get", "source", source)
        ash.aclshmem_getmem(dest.data_ptr(), address, dest.numel() * dest.element_size(), self._peer("get", pe))

    def signal(self, signal: torch.Tensor, value: int, op: str, pe: int) -> None:
        """Set a signal of `pe`, or add to an int32 one."""
        ash = self._running("signal")
        address, peer = self._checked("signal", "the signal", signal), self._peer("signal", pe)
        if op == "set":
            word = signal.new_full((1,), value)
            ash.aclshmem_putmem(address, word.data_ptr(), word.element_size(), peer)
            return
        if signal.element_size() != 4:
            raise AclshmemFailed(call="signal", code=codes.UNSUPPORTED, meaning="it adds to int32 signals only")
        # The library has no signal without a transfer in its public interface: one word of scratch goes with it.
        ash.aclshmemx_putmem_signal(self._scratch, self._scratch, 4, address, value, 1, peer)

    def wait_signal(self, signal: torch.Tensor, value: int, cmp: str = "eq", timeout: float | None = None) -> int:
        """Wait until a signal of this PE compares to `value`. The library's own wait has no deadline, so this polls."""
        self._running("wait_signal")
        assert self._config is not None
        where, compare = call_site(), _COMPARE[cmp]
        limit = self._config.deadline_seconds() if timeout is None else timeout
        start = time.monotonic()
        while not compare(seen := int(signal.item()), value):
            if limit and time.monotonic() - start > limit:
                place = {"where": where, "slot": self.describe_address(signal.data_ptr())}
                wanted = {"expected": f"{cmp} {value}", "seen": seen}
                raise WaitTimeout(pe=self.my_pe(), program="none (the host)", seconds=limit, **place, **wanted)
            time.sleep(20e-6)
        return seen

    def barrier_all(self) -> None:
        """Collective. Where the library's module has no barrier, freeing memory is one: it meets all PEs."""
        ash = self._running("barrier_all")
        if (barrier := getattr(ash, "aclshmem_barrier_all", None)) is not None:
            barrier()
            return
        ash.aclshmem_free(ash.aclshmem_malloc(SIGNAL_SLOT_BYTES))

    # What is where

    def is_symmetric(self, tensor: torch.Tensor) -> bool:
        self._running("is_symmetric()")
        return self._owner(tensor) is not None

    def offset_of(self, tensor: torch.Tensor) -> int:
        ash = self._running("offset_of()")
        return self._checked("offset_of", "the tensor", tensor) - ash.aclshmemx_get_heap_base()

    def describe_address(self, address: int) -> str:
        for start, (tensor, size) in self._tensors.items():
            if start <= address < start + size:
                return f"byte {address - start} of {tuple(tensor.shape)} {tensor.dtype} at {start:#x}"
        return f"address {address:#x}"

    def info(self) -> dict[str, Any]:
        self._running("info()")
        assert self._config is not None
        used = sum(size for _, size in self._tensors.values())
        return {
            "pe": self.my_pe(),
            "n_pes": self.n_pes(),
            "pes_are": "devices",
            "heap_bytes": self._config.heap_size,
            "free_bytes": self._config.heap_size - used,
            "tensors": len(self._tensors),
        }

    def _index(self) -> int:
        return int((self._device_name or "0").rpartition(":")[2] or 0) if ":" in (self._device_name or "") else 0

    def _owner(self, tensor: torch.Tensor) -> int | None:
        address = tensor.data_ptr()
        return next((start for start, (_, size) in self._tensors.items() if start <= address < start + size), None)

    def _checked(self, call: str, argument: str, tensor: torch.Tensor) -> int:
        if self._owner(tensor) is None:
            raise self._not_symmetric(call, argument, tensor)
        return tensor.data_ptr()

    def _not_symmetric(self, call: str, argument: str, tensor: torch.Tensor) -> NotSymmetric:
        got = f"{tuple(tensor.shape)} {tensor.dtype}"
        return NotSymmetric(pe=self.my_pe(), where=call_site(), call=call, argument=argument, got=got)

    def _peer(self, call: str, pe: int) -> int:
        if not 0 <= pe < self.n_pes():
            raise PeOutOfRange(pe=self.my_pe(), where=call_site(), call=call, got=pe, last=self.n_pes() - 1)
        return pe

    def _equal(self, call: str, dest: torch.Tensor, source: torch.Tensor) -> None:
        if dest.shape != source.shape or dest.dtype != source.dtype:
            shown = {name: f"{tuple(t.shape)} {t.dtype}" for name, t in (("dest", dest), ("source", source))}
            raise UnequalTensors(pe=self.my_pe(), where=call_site(), call=call, **shown)
