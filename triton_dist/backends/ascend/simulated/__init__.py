# SPDX-License-Identifier: MIT
"""The simulated NPU: the template library of `_mlir_ciface_aclshmem_*` functions on the host engine.

`symbols` and `ir` are what the engine asks of a back end that it simulates; `enter` and `leave` make and end the
device state of a PE; `EMITTERS` says how `hivm.hir.custom` is emitted.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from triton_dist import errors, knobs
from triton_dist.backends.ascend.simulated import library
from triton_dist.backends.ascend.simulated.state import attach, detach, npu_of
from triton_dist.backends.cpu.state import DeviceState, Fault

symbols = library.symbols
ir = library.ir
EMITTERS = "triton_dist.backends.ascend.simulated.emit"
__all__ = ["EMITTERS", "enter", "explain", "ir", "leave", "npu_of", "symbols"]


def enter(device: DeviceState, engine: str | None = None) -> None:
    """Give a PE of the host engine its simulated device state; without `engine`, the setting chooses the transport."""
    attach(device, engine or knobs.engine or "MTE")


def leave(device: DeviceState) -> None:
    """The PE ends: no transfer of it touches memory afterwards."""
    if npu_of(device) is not None:
        detach(device, _stop_agent())


@functools.cache
def _stop_agent() -> Any:
    from triton_dist.backends.cpu.native.runtime import runtime

    return ctypes.CFUNCTYPE(None, ctypes.c_uint64)(runtime().image["asc_stop"])


def explain(fault: Fault, common: dict[str, Any]) -> Exception:
    """The exception for a fault that only the simulated library has."""
    detail = {
        library.UNREACHABLE: f"no load or store reaches PE {fault.seen}, as with ROCE between nodes; "
        "putmem, getmem and signals do",
        library.BAD_OP: f"signal operation {fault.seen} is none of aclshmem's: 0 sets, 1 adds",
        library.BAD_TEAM: f"there is no team {fault.seen}, or this PE is not in it",
        library.BAD_CMP: f"comparison {fault.seen} is none of aclshmem's, 0 to 5",
    }.get(fault.code, f"fault {fault.code}")
    return errors.SimulatedLibraryFault(**common, library="aclshmem", detail=detail)
