# SPDX-License-Identifier: MIT
"""Checks of arguments that a PE makes on its own, before a call becomes collective."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triton_dist.errors import BadAllocation, BadSignal, PeOutOfRange, UnequalTensors

if TYPE_CHECKING:
    import torch

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "gt", "le", "lt", "ge")
}
SIGNAL_OPS = ("set", "add")


@dataclass(frozen=True)
class Call:
    """Who calls what from where: the fields that every message needs."""

    pe: int
    where: str
    call: str

    def fields(self) -> dict[str, Any]:
        return {"pe": self.pe, "where": self.where, "call": self.call}


def signal_dtypes() -> dict[torch.dtype, tuple[int, bool]]:
    """What a signal can be: dtype -> bits, and whether it is signed."""
    import torch

    return {
        torch.int32: (32, True),
        torch.int64: (64, True),
        torch.uint32: (32, False),
        torch.uint64: (64, False),
    }


def shape_of(shape: Sequence[int] | int, call: Call) -> tuple[int, ...]:
    """A shape as a tuple of whole numbers, 0 or more."""
    try:
        sizes = (operator.index(shape),) if not isinstance(shape, Sequence) else tuple(map(operator.index, shape))
    except TypeError:
        raise BadAllocation(**call.fields(), detail=f"{shape!r} is no shape (whole numbers)") from None
    if any(n < 0 for n in sizes):
        raise BadAllocation(**call.fields(), detail=f"the shape {sizes} has a negative size")
    return sizes


def dtype_of(dtype: Any, call: Call) -> torch.dtype:
    import torch

    if not isinstance(dtype, torch.dtype):
        raise BadAllocation(**call.fields(), detail=f"{dtype!r} is no torch dtype (torch.float32, for one)")
    if str(dtype).startswith(("torch.q", "torch.bits")):
        raise BadAllocation(**call.fields(), detail=f"{dtype} has no plain elements")
    return dtype


def check_pe(pe: Any, n_pes: int, call: Call) -> int:
    try:
        number = operator.index(pe)
    except TypeError:
        number = -1
    if not 0 <= number < n_pes:
        raise PeOutOfRange(**call.fields(), got=pe, last=n_pes - 1)
    return number


def check_equal(dest: torch.Tensor, source: torch.Tensor, call: Call) -> None:
    if dest.shape != source.shape or dest.dtype != source.dtype:
        raise UnequalTensors(**call.fields(), dest=brief(dest), source=brief(source))


def brief(tensor: torch.Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def check_signal_dtype(dtype: torch.dtype, call: Call) -> tuple[int, bool]:
    """Bits of a signal's word, and whether it is signed."""
    kinds = signal_dtypes()
    if dtype not in kinds:
        valid = ", ".join(str(d).removeprefix("torch.") for d in kinds)
        raise BadSignal(
            **call.fields(), detail=f"a signal cannot be {str(dtype).removeprefix('torch.')}; valid: {valid}"
        )
    return kinds[dtype]


def check_signal(signal: torch.Tensor, call: Call) -> tuple[int, bool]:
    """The same for a tensor, which must be one element: `signals[3]`."""
    kind = check_signal_dtype(signal.dtype, call)
    if signal.numel() != 1:
        raise BadSignal(
            **call.fields(),
            detail=f"a signal is one element, but this tensor is {brief(signal)}; pick one, as in signals[0]",
        )
    return kind


def check_value(value: Any, bits: int, signed: bool, call: Call) -> int:
    """A value that fits a signal, as the signed number with the same bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise BadSignal(**call.fields(), detail=f"the value {value!r} is no whole number") from None
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= number <= high:
        raise BadSignal(**call.fields(), detail=f"the value {number} does not fit {bits} bits ({low} to {high})")
    return to_signed(number, bits)


def check_choice(name: str, got: Any, valid: Sequence[str], call: Call) -> str:
    if got not in valid:
        raise BadSignal(**call.fields(), detail=f"{name} = {got!r} is unknown; valid: {', '.join(valid)}")
    return got


def to_signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >= 1 << bits - 1 else value


def to_unsigned(value: int, bits: int) -> int:
    return value & (1 << bits) - 1
