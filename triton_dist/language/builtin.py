# SPDX-License-Identifier: MIT
"""What makes a Python function callable in a kernel, compiled or interpreted, on every supported Triton."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import triton.language as tl
from triton._C.libtriton import ir

from triton_dist.errors import OutsideKernel
from triton_dist.language.builder import DistributedOpBuilder

if TYPE_CHECKING:
    from triton.language.semantic import TritonSemantic

F = TypeVar("F", bound=Callable[..., Any])


def builtin(fn: F) -> F:
    """Mark `fn` as a function of kernels. It takes `_semantic`, which Triton's code generator passes.

    Triton's own decorator does not serve its interpreter: that one replaces the functions of `triton.language`,
    and of no other package, by ones that pass `_semantic`. So a call without it is looked into here.
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if (builder := kwargs.pop("_builder", None)) is not None:  # Triton before 3.4
            from triton_dist.language.legacy import LegacySemantic

            kwargs["_semantic"] = LegacySemantic(builder)
        if kwargs.get("_semantic") is None:
            kwargs["_semantic"] = _interpreter_semantic(fn)
        return fn(*args, **kwargs)

    setattr(wrapper, tl.core.TRITON_BUILTIN, True)
    # The code generator of 3.9 reads this instead of inspecting the function at each call.
    setattr(wrapper, "signature", inspect.signature(fn))  # noqa: B010
    return wrapper  # type: ignore[return-value]


def is_interpreted(semantic: Any) -> bool:
    """Whether the kernel that passes this `_semantic` is interpreted, not compiled."""
    return not isinstance(semantic.builder, ir.builder)


def _interpreter_semantic(fn: Callable[..., Any]) -> TritonSemantic[Any]:
    # Inside an interpreted kernel, `triton.language` holds the interpreter's functions, which are no builtins.
    if tl.core.is_builtin(tl.program_id) and tl.core.is_builtin(tl.core.program_id):
        raise OutsideKernel(op=qualified_name(fn))
    from triton.runtime.interpreter import interpreter_semantic

    return interpreter_semantic


def qualified_name(fn: Callable[..., Any]) -> str:
    """The name a kernel calls it by: dl.wait, libshmem_device.putmem."""
    module = fn.__module__.rsplit(".", 1)[-1]
    ours = fn.__module__.startswith("triton_dist.language.") and ".extra." not in fn.__module__
    return f"{'dl' if ours else module}.{fn.__name__}"


def op_builder(semantic: TritonSemantic[Any]) -> DistributedOpBuilder:
    """The builder of distributed ops: of carriers, or of results where the kernel is interpreted."""
    if is_interpreted(semantic):
        from triton_dist.language.interpreter import InterpretedOpBuilder

        return InterpretedOpBuilder(semantic.builder)
    return DistributedOpBuilder(semantic.builder)
