# SPDX-License-Identifier: MIT
"""Checks of arguments that a PE makes on its own, before a call becomes collective."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from triton_dist.errors import BadAllocation, BadSignal, NotSymmetric, PeOutOfRange, UnequalTensors
from triton_dist.shmem.callsite import call_site

if TYPE_CHECKING:
    import torch

    from triton_dist.backends.base import Backend

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "gt", "le", "lt", "ge")
}
STREAM_COMPARISONS = ("ge", "eq")
"""What every back end's streams can wait for."""
SIGNAL_OPS = ("set", "add")


@dataclass(frozen=True)
class Call:
    """Who calls what from where: the fields that every message needs."""

    pe: int
    call: str

    @property
    def where(self) -> str:
        # Looked up late, while the call still runs: only errors and creations need it.
        return call_site()

    def fields(self) -> dict[str, Any]:
        return {"pe": self.pe, "where": self.where, "call": self.call}


@dataclass(frozen=True)
class SignalKind:
    """The word that a signal is. Memory is read and written as signed numbers."""

    bits: int
    signed: bool

    def read(self, raw: int) -> int:
        """The value of a word that was read."""
        return raw if self.signed else raw & (1 << self.bits) - 1

    def check(self, value: Any, call: Call) -> int:
        """`value` as the word to write; raises if it does not fit."""
        try:
            number = operator.index(value)
        except TypeError:
            raise BadSignal(**call.fields(), detail=f"the value {value!r} is no whole number") from None
        low = -(1 << self.bits - 1) if self.signed else 0
        high = low + (1 << self.bits) - 1
        if not low <= number <= high:
            detail = f"the value {number} does not fit {self.bits} bits ({low} to {high})"
            raise BadSignal(**call.fields(), detail=detail)
        return number - (1 << self.bits) if number >= 1 << self.bits - 1 else number


@functools.cache
def signal_kinds() -> dict[torch.dtype, SignalKind]:
    """What a signal can be; of these a back end has those that its `Limits` name."""
    import torch

    return {
        torch.int32: SignalKind(32, True),
        torch.int64: SignalKind(64, True),
        torch.uint64: SignalKind(64, False),
    }


def require_tensor(value: Any, argument: str, call: Call) -> None:
    import torch

    if not isinstance(value, torch.Tensor):
        raise NotSymmetric(**call.fields(), argument=argument, got=f"a {type(value).__name__}, not a tensor")
    if not _is_dense(value):
        layout = "nested" if value.is_nested else value.layout
        raise NotSymmetric(**call.fields(), argument=argument, got=f"a tensor that is {layout}, not dense")


def require_symmetric(value: Any, symmetric: bool, argument: str, call: Call) -> None:
    require_tensor(value, argument, call)
    if not symmetric:
        raise NotSymmetric(**call.fields(), argument=argument, got=f"{brief(value)}, freed or of somebody else")


def is_dense_tensor(value: Any) -> bool:
    """Whether it can be in a heap at all."""
    import torch

    return isinstance(value, torch.Tensor) and _is_dense(value)


def _is_dense(tensor: torch.Tensor) -> bool:
    import torch

    return tensor.layout is torch.strided and not tensor.is_nested


def address_of(tensor: torch.Tensor) -> int:
    if tensor.numel():
        return tensor.data_ptr()
    # data_ptr() is 0 for a tensor without elements.
    return tensor.untyped_storage().data_ptr() + int(tensor.storage_offset()) * tensor.element_size()


def place_of(tensor: torch.Tensor) -> int:
    """An address in the memory that it is of: one without elements may begin where that ends."""
    return address_of(tensor) if tensor.numel() else tensor.untyped_storage().data_ptr()


def shape_of(shape: Sequence[int] | int, call: Call) -> tuple[int, ...]:
    """A shape as a tuple of whole numbers, 0 or more."""
    try:
        sizes = _sizes(shape)
    except TypeError:
        raise BadAllocation(**call.fields(), detail=f"{shape!r} is no shape (whole numbers)") from None
    if any(n < 0 for n in sizes):
        raise BadAllocation(**call.fields(), detail=f"the shape {sizes} has a negative size")
    return sizes


def count_of(n: Any, call: Call) -> int:
    """A number of signals."""
    try:
        count = operator.index(n)
    except TypeError:
        raise BadAllocation(**call.fields(), detail=f"{n!r} is no number of signals (a whole number)") from None
    if count < 0:
        raise BadAllocation(**call.fields(), detail=f"{count} is no number of signals: it is negative")
    return count


def shown_shape(shape: Any) -> str:
    """A shape as PEs compare it: of plain numbers, a tuple, whatever each of them gave."""
    try:
        return repr(_sizes(shape))
    except TypeError:
        return repr(shape)


def shown_count(n: Any) -> str:
    try:
        return repr(operator.index(n))
    except TypeError:
        return repr(n)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, shape)) if isinstance(shape, Sequence) else (operator.index(shape),)


def seconds_of(timeout: Any, default: float, call: Call) -> float:
    """The deadline of a wait, 0 for none."""
    if timeout is None:
        return default
    # Not a number is neither less than 0 nor more: it would never be over.
    seconds = float(timeout) if isinstance(timeout, Real) else math.nan
    if not seconds >= 0:
        detail = f"timeout = {timeout!r} is no number of seconds (0 or more; 0: no deadline)"
        raise BadSignal(**call.fields(), detail=detail)
    return seconds


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


def check_equal(dest: torch.Tensor, source: torch.Tensor, other: str, call: Call) -> None:
    """Raise unless both are tensors of one shape and dtype; `other` names the one that need not be symmetric."""
    require_tensor(source if other == "source" else dest, other, call)
    if dest.shape != source.shape or dest.dtype != source.dtype:
        raise UnequalTensors(**call.fields(), dest=brief(dest), source=brief(source))


def brief(tensor: torch.Tensor) -> str:
    return f"{tuple(tensor.shape)} {_name(tensor.dtype)}"


def check_signal_dtype(dtype: torch.dtype, call: Call, backend: Backend) -> SignalKind:
    """The kind of signal that a dtype makes, if kernels of the back end can notify such signals."""
    valid = [each for each in signal_kinds() if _name(each) in backend.limits.signal_ops]
    if dtype not in valid:
        detail = f"a signal of the {backend.name} back end cannot be {_name(dtype)}; valid: {_listed(valid)}"
        raise BadSignal(**call.fields(), detail=detail)
    return signal_kinds()[dtype]


def check_signal(signal: torch.Tensor, call: Call, backend: Backend) -> SignalKind:
    """The same for a tensor, which must be one element: `signals[3]`."""
    kind = check_signal_dtype(signal.dtype, call, backend)
    if signal.numel() != 1:
        detail = f"a signal is one element, but this tensor is {brief(signal)}; pick one, as in signals[0]"
        raise BadSignal(**call.fields(), detail=detail)
    return kind


def check_signal_op(op: str, signal: torch.Tensor, call: Call, backend: Backend) -> None:
    """Raise unless the back end can do this to a signal of this type, which it has."""
    check_choice("op", op, SIGNAL_OPS, call)
    ops = backend.limits.signal_ops
    if op not in ops[_name(signal.dtype)]:
        valid = _listed(each for each in signal_kinds() if op in ops.get(_name(each), ()))
        done = f"{op} to" if op == "add" else op
        cannot = f"the {backend.name} back end cannot {done} a signal of type {_name(signal.dtype)}"
        raise BadSignal(**call.fields(), detail=f"{cannot}; {op!r} is for: {valid}")


def check_choice(name: str, got: Any, valid: Sequence[str], call: Call) -> str:
    if got not in valid:
        raise BadSignal(**call.fields(), detail=f"{name} = {got!r} is unknown; valid: {', '.join(valid)}")
    return got


def _listed(dtypes: Iterable[torch.dtype]) -> str:
    return ", ".join(map(_name, dtypes)) or "none"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
