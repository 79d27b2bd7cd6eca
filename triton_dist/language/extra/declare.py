# SPDX-License-Identifier: MIT
"""Making the functions of a back end's device module from the records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton.language as tl

from triton_dist import backends
from triton_dist.language.builtin import builtin, op_builder
from triton_dist.language.extra.operands import Call
from triton_dist.language.extra.records import Record, records


def host_function(record: Record, symbol: str) -> Any:
    """A function that calls `symbol` of the host's template library, all operands checked."""

    def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        call = Call(record, _semantic)
        operands = call.operands(args, kwargs)
        # Queue pairs belong to one vendor's network; the host has nothing that they could choose.
        operands.pop("qp_id", None)
        result = call.result()
        handle = op_builder(_semantic).create_distributed_extern_call(
            "host_shmem", "", symbol, [x.handle for x in operands.values()], result, record.pure
        )
        return tl.tensor(handle, tl.void if result is None else result)

    return function


def pending_function(record: Record, backend: str, symbol: str) -> Any:
    """A function that the back end's library has and this version cannot call yet: an error where a kernel calls
    it."""

    def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        raise backends.get(backend).not_yet(f"libshmem_device.{record.name} ({symbol})")

    return function


def declare(backend: str, namespace: dict[str, Any], make: Callable[[Record, str], Any]) -> None:
    """Fill a device module: one builtin for each function that the back end's library has."""
    for record in records().values():
        if symbol := record.symbol(backend):
            function = make(record, symbol)
            function.__name__ = function.__qualname__ = record.name
            function.__module__ = namespace["__name__"]
            function.__doc__ = f"{record.signature}: {record.meaning}."
            namespace[record.name] = builtin(function)


def declare_pending(backend: str, namespace: dict[str, Any]) -> None:
    """Fill the device module of a back end whose calls are not lowered yet."""
    declare(backend, namespace, lambda record, symbol: pending_function(record, backend, symbol))
