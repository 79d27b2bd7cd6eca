# SPDX-License-Identifier: MIT
"""Distributed ops under TRITON_INTERPRET=1, so that a kernel can be stepped through in a debugger.

The interpreter runs the programs of a grid one after another in the calling thread, on numpy values. This builder
computes what a carrier would make the device do. PEs that are processes work too, since each sees its peers'
heaps; a wait then polls.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import TensorHandle

from triton_dist import backends, knobs
from triton_dist.backends.cpu import state
from triton_dist.errors import BadCountInKernel, InterpretedLimit, InterpretedWait, NullPointerInKernel
from triton_dist.language.builder import COMM_SCOPES, SIGNAL_OPS, DistributedOpBuilder

_PACKAGES = tuple(str(Path(str(module)).parent) for module in (triton.__file__, Path(__file__).parent))


class InterpretedOpBuilder(DistributedOpBuilder):
    """The same interface; operands and results are the interpreter's TensorHandles."""

    def create_distributed_wait(self, ptr: Any, count: Any, value: Any, scope: int, semantic: int) -> Any:
        step = backends.active().limits.wait_stride_bytes or element_bytes(ptr)
        wanted = integer(value)
        if (number := integer(count)) < 0:
            place = {"program": tuple(self.builder.grid_idx), "where": kernel_line()}
            raise BadCountInKernel(pe=state.current().my_pe, **place, got=number)
        for i in range(number):
            address = integer(ptr) + i * step
            self.spin(address, lambda a=address: read(a, value.data.dtype), lambda seen: seen == wanted, wanted)
        return i32(0)

    def create_distributed_consume_token(self, value: Any, token: Any) -> Any:
        return value

    def create_distributed_get_rank(self, axis: int) -> Any:
        return i32(state.current().my_pe)

    def create_distributed_get_num_ranks(self, axis: int) -> Any:
        return i32(state.current().n_pes)

    def create_distributed_symm_at(self, ptr: Any, rank: Any) -> Any:
        address = peer_address("dl.symm_at", integer(ptr), integer(rank))
        return TensorHandle(np.array([address], dtype=np.uint64), ptr.dtype)

    def create_distributed_notify(
        self, ptr: Any, signal: Any, rank: Any, sig_op: int, comm_scope: int, pointee: tl.dtype
    ) -> Any:
        address, pe = integer(ptr), integer(rank)
        # Scope "gpu" takes the pointer as given, as the vendors do.
        target = address if comm_scope == COMM_SCOPES["gpu"] else peer_address("dl.notify", address, pe)
        self.update(target, integer(signal), sig_op == SIGNAL_OPS["add"], pointee)
        return i32(0)

    def create_distributed_extern_call(
        self, libname: str, libpath: str, symbol: str, operands: Sequence[Any], result: tl.dtype | None, pure: bool
    ) -> Any:
        from triton_dist.language.extra.cpu import interpreted

        return interpreted.call(self, symbol, operands, result)

    def update(self, address: int, value: int, add: bool, pointee: tl.dtype) -> int:
        """Set or add to a signal with release order; return the value before."""
        self._check_address(address)
        dtype = np.dtype(f"{'u' if pointee.is_int_unsigned() else ''}int{pointee.primitive_bitwidth}")
        bits = value & ((1 << pointee.primitive_bitwidth) - 1)
        wrapped = np.array([bits], dtype=f"u{dtype.itemsize}").view(dtype)
        operands = (
            TensorHandle(np.array([address], dtype=np.uint64), tl.pointer_type(pointee)),
            TensorHandle(wrapped, pointee),
            TensorHandle(np.array([True]), tl.int1),
        )
        kind = ir.ATOMIC_OP.ADD if add else ir.ATOMIC_OP.XCHG
        order, scope = ir.MEM_SEMANTIC.ACQUIRE_RELEASE, ir.MEM_SYNC_SCOPE.SYSTEM
        return integer(self.builder.create_atomic_rmw(kind, *operands, order, scope))

    def spin(
        self, address: int, look: Callable[[], int], done: Callable[[int], bool], wanted: object, op: str = "dl.wait"
    ) -> int:
        """Poll until `done(look())`; raise at once where nobody is left who could change the value."""
        self._check_address(address)
        start, deadline = time.monotonic(), knobs.wait_timeout
        alone = _alone()
        while not done(seen := look()):
            waited = time.monotonic() - start
            if alone or (deadline and waited > deadline):
                raise InterpretedWait(
                    pe=state.current().my_pe,
                    program=tuple(self.builder.grid_idx),
                    where=kernel_line(),
                    op=op,
                    slot=address,
                    expected=wanted,
                    seen=seen,
                    why="nothing else runs that could change it"
                    if alone
                    else f"it did not change in {waited:.1f} s (TRITON_DIST_WAIT_TIMEOUT)",
                )
            time.sleep(1e-4)
        return seen

    def _check_address(self, address: int) -> None:
        if not address:
            place = {"program": tuple(self.builder.grid_idx), "where": kernel_line()}
            raise NullPointerInKernel(pe=state.current().my_pe, **place)


def _alone() -> bool:
    """Whether no other PE and no other thread could write. A debugger's threads are daemons: not counted."""
    others = [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]
    return state.current().n_pes == 1 and not others


def peer_address(op: str, address: int, pe: int) -> int:
    """The address in this process of what `address` is on PE `pe`."""
    here = state.current()
    if not 0 <= pe < here.n_pes:
        raise InterpretedLimit(op=op, detail=f"PE {pe} does not exist, the world has {here.n_pes}")
    if pe == here.my_pe:
        return address
    offset = address - here.heap_base
    if not 0 <= offset < here.heap_size:
        raise InterpretedLimit(op=op, detail=f"{address:#x} does not lie in the symmetric heap")
    return (ctypes.c_uint64 * here.n_pes).from_address(here.peer_base)[pe] + offset


def read(address: int, dtype: np.dtype) -> int:
    """The integer at an address."""
    return int(np.frombuffer(ctypes.string_at(address, dtype.itemsize), dtype=dtype)[0])


def integer(handle: Any) -> int:
    """The value of a scalar."""
    return int(np.asarray(handle.data).reshape(-1)[0])


def i32(value: int) -> Any:
    return TensorHandle(np.array([value], dtype=np.int32), tl.int32)


def element_bytes(ptr: Any) -> int:
    return ptr.dtype.element_ty.primitive_bitwidth // 8


def kernel_line() -> str:
    """file:line of the innermost frame that is neither Triton's nor ours."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGES):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown line"
