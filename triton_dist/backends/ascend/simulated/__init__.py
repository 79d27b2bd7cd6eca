# SPDX-License-Identifier: MIT
"""The simulated NPU: the template library of `_mlir_ciface_aclshmem_*` functions on the host engine.

`symbols` and `ir` are what the engine asks of a back end that it simulates; `enter` makes the device state of a PE,
which ends with the PE; `keep` keeps what its engines may still read; `EMITTERS` says how `hivm.hir.custom` is emitted.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from typing import Any

from triton_dist import errors, knobs
from triton_dist.backends.ascend.simulated import library
from triton_dist.backends.ascend.simulated.state import attach, detach, npu_of
from triton_dist.backends.cpu.state import DeviceState, Fault, on_leave

symbols = library.symbols
ir = library.ir
EMITTERS = "triton_dist.backends.ascend.simulated.emit"
__all__ = ["EMITTERS", "describe", "enter", "explain", "ir", "keep", "npu_of", "symbols"]


def enter(device: DeviceState, engine: str | None = None) -> None:
    """Give a PE of the host engine its simulated device state; without `engine`, the setting chooses the transport."""
    attach(device, engine or knobs.engine or "MTE")
    # No transfer of the PE touches memory after its end.
    on_leave(device, lambda: detach(device, _stop_agent()))


def keep(device: DeviceState, arguments: Sequence[Any]) -> None:
    """A launch is over: keep its arguments while transfers are in the queues, which may read or write them."""
    if (npu := npu_of(device)) is not None:
        npu.keep(arguments)


@functools.cache
def _stop_agent() -> Any:
    from triton_dist.backends.cpu.native.runtime import runtime

    return ctypes.CFUNCTYPE(None, ctypes.c_uint64)(runtime().image["asc_stop"])


def describe(device: DeviceState, address: int) -> str | None:
    """What a wait inside the library waits for; None: the address is a kernel's."""
    npu = npu_of(device)
    return None if npu is None else npu.describe(address)


def explain(fault: Fault, common: dict[str, Any]) -> Exception:
    """The exception for a fault that only the simulated library has."""
    return errors.SimulatedLibraryFault(**common, library="aclshmem", detail=_detail(fault))


def _detail(fault: Fault) -> str:
    seen = fault.seen
    match fault.code:
        case library.UNREACHABLE:
            return f"no load or store reaches PE {seen}, as with ROCE between nodes; putmem, getmem and signal_op do"
        case library.BAD_OP:
            portable = "libshmem_device's SIGNAL_SET and SIGNAL_ADD, 9 and 10, become these"
            return f"signal operation {seen} is none of aclshmem's: 0 sets, 1 adds ({portable})"
        case library.BAD_TEAM:
            return f"there is no team {seen}, or this PE is not in it"
        case library.BAD_CMP:
            return f"comparison {seen} is none of aclshmem's, 0 to 5"
        case library.TOO_LONG:
            left = f"{fault.expected} bytes are left there"
            return f"a transfer of {_shown(seen)} bytes to or from {_place(fault.slot)} is too long: {left}"
        case library.NO_AGENT:
            return f"the system gives no thread for the queue of an engine: {os.strerror(seen)}"
    return f"fault {fault.code}"


def _shown(size: int) -> str:
    """A size, which the library takes as unsigned: a negative one is large, and the largest is any that is too large
    for 32 bits."""
    if size == (1 << 32) - 1:
        return "4 GiB or more, or -1,"
    return f"{size - (1 << 32)} (as unsigned, {size})" if size >= 1 << 31 else str(size)


def _place(address: int) -> str:
    from triton_dist import shmem

    return shmem.describe_address(address) if shmem.initialized() else f"address {address:#x}"
