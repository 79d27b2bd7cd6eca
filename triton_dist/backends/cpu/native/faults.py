# SPDX-License-Identifier: MIT
"""What a fault record says, as an exception a person can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton_dist import errors

from .. import state
from .library import simulated
from .ranges import Ranges

TIMED_OUT, ABORTED, BAD_PE, FOREIGN, BAD_OP, BAD_TEAM, ASSERTION, OUT_OF_BOUNDS, BAD_COUNT, TOO_LONG = range(1, 11)
NULL, BAD_CMP = 11, 12
LAST_OWN = 99
"""Codes above are those of the vendor library that is being simulated."""


def explain(
    fault: state.Fault,
    device: state.DeviceState,
    kernel: str,
    sites: Sequence[str],
    grid: tuple[int, int, int],
    ranges: Ranges | None = None,
    roots: Sequence[int | None] = (),
) -> Exception:
    """The exception for a fault of `kernel`."""
    where = sites[fault.site] if 0 <= fault.site < len(sites) else f"in {kernel}"
    common: dict[str, Any] = {"pe": fault.pe, "program": _program(fault.program, grid), "where": where}
    if fault.code == TIMED_OUT:
        common["seconds"] = fault.detail / 1e9
        slot = _vendors(device, fault.slot) or (_describe(fault.slot) if fault.slot else "")
        if not slot:  # the engine does not know what the loop compares
            return errors.PollTimeout(**common)
        return errors.WaitTimeout(**common, slot=slot, expected=fault.expected, seen=fault.seen)
    if fault.code == ABORTED and fault.detail == state.PEER_DIED:
        what = f"{kernel} (program {common['program']}, {where})"
        return errors.PeerDied(pe=fault.pe, dead=device.dead_pe, detail=_death_of(device.dead_pe), what=what)
    if (bad := _BAD_ARGUMENTS.get(fault.code)) is not None:
        return bad(fault, common)
    if fault.code == ASSERTION:
        return errors.DeviceAssertion(**common, kernel=kernel)
    if fault.code == OUT_OF_BOUNDS and ranges is not None:
        access = f"{'write' if fault.seen else 'read'} of {fault.expected} byte{'s' if fault.expected > 1 else ''}"
        root = roots[fault.site] if 0 <= fault.site < len(roots) else None
        return errors.OutOfBounds(**common, kernel=kernel, access=access, place=ranges.describe(fault.slot, root))
    if fault.code > LAST_OWN and (vendor := simulated()) is not None:
        return vendor.explain(fault, common)
    return errors.KernelAborted(detail=f"{kernel} ended early on PE {fault.pe} (fault {fault.code})")


_BAD_ARGUMENTS: dict[int, Callable[[state.Fault, dict[str, Any]], Exception]] = {
    BAD_PE: lambda f, common: errors.PeOutOfRangeInKernel(**common, got=f.seen, n_pes=f.expected),
    FOREIGN: lambda f, common: (
        errors.ForeignAddressInKernel(**common, address=_describe(f.slot), peer=f.seen)
        if f.slot
        else errors.NullAddressInKernel(**common, peer=f.seen)
    ),
    BAD_OP: lambda f, common: errors.BadSignalOpInKernel(**common, got=f.seen),
    BAD_CMP: lambda f, common: errors.BadComparisonInKernel(**common, got=f.seen),
    BAD_COUNT: lambda f, common: errors.BadCountInKernel(**common, got=f.seen),
    TOO_LONG: lambda f, common: errors.TransferTooLongInKernel(
        **common, got=f.seen, place=_describe(f.slot), left=f.expected
    ),
    NULL: lambda f, common: errors.NullPointerInKernel(**common),
    BAD_TEAM: lambda f, common: errors.BadTeamInKernel(**common, got=f.seen),
}
"""What a kernel passed to an operation, by the fault's code."""


def _program(linear: int, grid: tuple[int, int, int]) -> str:
    x, y, z = linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1])
    return f"({x}, {y}, {z})" if grid[1] * grid[2] > 1 else str(x)


def _death_of(pe: int) -> str:
    """How a peer ended, if the runtime knows it."""
    try:
        from triton_dist import shmem

        return shmem.death_of(pe)
    except Exception:
        return "its process or thread ended"


def _vendors(device: state.DeviceState, address: int) -> str | None:
    """What the simulated vendor's library has at an address, if it is its own."""
    describe = getattr(simulated(), "describe", None)
    return describe(device, address) if describe is not None else None


def _describe(address: int) -> str:
    """Which tensor an address belongs to, if the symmetric heap knows it."""
    try:
        from triton_dist import shmem

        return shmem.describe_address(address).removeprefix("signal ")
    except Exception:
        return f"at {address:#x}"
