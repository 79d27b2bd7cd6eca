# SPDX-License-Identifier: MIT
"""Arrays of signals, portably.

Back ends differ in how far apart two signals lie: on the host and on ascend each has 64 bytes (a cache line) to
itself, on GPUs they are neighbours. And `dl.wait` on several barriers steps by one element everywhere but on
ascend, where it steps by 64 bytes. A portable program never says a distance: the host allocates with
`shmem.create_signals(n)`, which uses `signal_stride_bytes`, and a kernel uses `dl.signal_slot` and `dl.wait_slots`.
"""

from __future__ import annotations

from typing import Any, cast

import triton.language as tl
from triton.runtime.jit import JITFunction

from triton_dist import backends
from triton_dist.language import checks
from triton_dist.language.builder import SCOPES, SEMANTICS
from triton_dist.language.builtin import builtin, is_interpreted
from triton_dist.language.distributed_ops import wait


def signal_stride_bytes(itemsize: int = 8) -> int:
    """Bytes from one signal of an array to the next, on the active back end; `itemsize` bytes is a signal's own
    size.

    The host API allocates signals with it; it is a multiple of `itemsize`.
    """
    return backends.active().limits.slot_bytes or itemsize


def _elements(pointer: checks.Tensor) -> int:
    itemsize = checks.pointee(pointer).primitive_bitwidth // 8
    return signal_stride_bytes(itemsize) // itemsize


@builtin
def signal_stride(ptr: Any, _semantic: Any = None) -> Any:
    """Elements from one signal of an array to the next: a constexpr.

    Args:
        ptr: scalar pointer to any signal of the array.

    Per back end, for 64-bit signals: 8 on the host and on ascend, 1 on cuda, hip and maca.

    Example:
        dl.notify(signals + i * dl.signal_stride(signals), peer)
    """
    op = "dl.signal_stride"
    pointer = checks.scalar_pointer(op, "ptr", ptr)
    checks.signal_type(op, "ptr", pointer, backends.active().limits.wait_dtypes)
    elements = _elements(pointer)
    return elements if is_interpreted(_semantic) else tl.constexpr(elements)


@builtin
def signal_slot(signals: Any, index: Any, _semantic: Any = None) -> checks.Tensor:
    """The pointer to signal number `index` of an array of signals.

    Args:
        signals: scalar pointer to the first signal.
        index: an integer scalar.

    Example:
        dl.notify(dl.signal_slot(signals, dl.rank()), peer)
    """
    op = "dl.signal_slot"
    pointer = checks.scalar_pointer(op, "signals", signals)
    checks.signal_type(op, "signals", pointer, backends.active().limits.wait_dtypes)
    if not checks.is_int(checks.unwrap(index)):
        checks.integer(op, "index", index)
    offset = _semantic.mul(_semantic.to_tensor(index), _semantic.to_tensor(_elements(pointer)), True)
    return _semantic.add(pointer, offset, True)


@builtin
def wait_slots(
    signals: Any,
    count: Any,
    scope: Any,
    semantic: Any,
    waitValue: Any = 1,
    _semantic: Any = None,
    _generator: Any = None,
) -> checks.Tensor:
    """`dl.wait` on `count` consecutive signals of an array, whatever distance they have; return a token.

    Arguments, result and memory order are those of `dl.wait`. Where the distance is what `dl.wait` steps by, it is
    one wait; elsewhere a loop of them.

    Example:
        token = dl.wait_slots(dl.signal_slot(signals, first), count, "sys", "acquire")
    """
    op = "dl.wait_slots"
    limits = backends.active().limits
    pointer = checks.scalar_pointer(op, "signals", signals)
    type_ = checks.signal_type(op, "signals", pointer, limits.wait_dtypes)
    number = checks.count(op, "count", count, tl.int32, _semantic)
    checks.choice(op, "scope", scope, SCOPES)
    checks.choice(op, "semantic", semantic, SEMANTICS)
    value = checks.fits(op, "waitValue", waitValue, type_, type_, _semantic)
    if limits.wait_stride_bytes == limits.slot_bytes:
        return wait(pointer, number, scope, semantic, value, _semantic=_semantic)
    stride, each = _elements(pointer), cast(Any, _wait_each)
    if is_interpreted(_semantic):
        # Not int(number): Triton 3.6's conversion fails with numpy from 2.4 on.
        return each(pointer, number.handle.data.item(), scope, semantic, value, stride)
    options = [tl.constexpr(checks.unwrap(x)) for x in (scope, semantic)]
    return _generator.call_JitFunction(JITFunction(each), [pointer, number, *options, value, tl.constexpr(stride)], {})


def _wait_each(signals, count, scope: tl.constexpr, semantic: tl.constexpr, value, stride: tl.constexpr):
    # Triton's language, compiled; with the interpreter, plain Python.
    token = tl.full((), 0, tl.int32)
    for i in range(count):
        token = token | wait(signals + i * stride, 1, scope, semantic, value)
    return token
