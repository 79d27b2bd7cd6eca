# SPDX-License-Identifier: MIT
"""NVSHMEM's device functions: those of `libshmem_device`, checked and typed.

Who calls: a function "of a thread" is called by one thread of the program, one "of a warp" by one warp, one "of a
block" by all; around it the program's order holds. Code that chooses its threads itself (by `language_extra.tid`, as
in CUDA) is left as it is: there each thread that comes to a call makes it.
"""

from __future__ import annotations

import re
from typing import Any

import triton.language as tl

from triton_dist.backends.cuda import symbols
from triton_dist.errors import WrongPointee
from triton_dist.language import checks
from triton_dist.language.builtin import op_builder
from triton_dist.language.extra.declare import declare
from triton_dist.language.extra.operands import Call
from triton_dist.language.extra.records import Record

BACKEND = "cuda"

_COMPARE_CODES = {"equals": 0, "greater_than": 2}
_TYPED_WAIT = re.compile(r"u?int\d+_wait_until_(\w+)")


def _function(record: Record, symbol: str) -> Any:
    def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        call = Call(record, _semantic)
        operands = call.operands(args, kwargs)
        # NVSHMEM chooses its queue pairs itself.
        operands.pop("qp_id", None)
        if wait := _TYPED_WAIT.fullmatch(record.name):
            code = _semantic.scalar_constant(_COMPARE_CODES[wait[1]], tl.int32)
            operands = {"addr": operands["addr"], "cmp": code, "val": operands["val"]}
        result = call.result()
        handle = op_builder(_semantic).create_distributed_extern_call(
            symbols.VENDOR, "", _typed(call, symbol), [x.handle for x in operands.values()], result, record.pure
        )
        return tl.tensor(handle, tl.void if result is None else result)

    return function


def _typed(call: Call, symbol: str) -> str:
    """The symbol for the element type, which both pointers of the call have."""
    symbol = symbols.available(symbol)
    if "<T>" not in symbol:
        return symbol
    pointee = checks.pointee(call.made["dest"])
    name = symbols.TYPES.get(str(pointee))
    if name is None:
        known = ", ".join(symbols.TYPES)
        raise WrongPointee(op=call.op, argument="dest", expected=f"one of {known}", got=pointee)
    return symbol.replace("<T>", name)


declare(BACKEND, globals(), _function)
