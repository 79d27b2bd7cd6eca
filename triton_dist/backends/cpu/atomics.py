# SPDX-License-Identifier: MIT
"""Atomic reads and writes of signal words from Python.

ctypes gives plain accesses only: no atomic add, and no ordering on machines that reorder stores. So the host uses the
same LLVM atomics as a kernel, in a few functions compiled once a process (about 10 ms).
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from ctypes import c_int32, c_int64, c_void_p
from dataclasses import dataclass

from triton_dist.forks import ATOMICS, guarded

_TEMPLATE = """
define i{n} @load_i{n}(ptr %p) {{
  %v = load atomic i{n}, ptr %p acquire, align {bytes}
  ret i{n} %v
}}
define void @store_i{n}(ptr %p, i{n} %v) {{
  store atomic i{n} %v, ptr %p release, align {bytes}
  ret void
}}
define i{n} @add_i{n}(ptr %p, i{n} %v) {{
  %old = atomicrmw add ptr %p, i{n} %v acq_rel, align {bytes}
  ret i{n} %old
}}
define i{n} @spin_i{n}(ptr %p, i{n} %old, i32 %rounds) {{
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %again ]
  %v = load atomic i{n}, ptr %p acquire, align {bytes}
  %changed = icmp ne i{n} %v, %old
  br i1 %changed, label %done, label %again
again:
  %next = add i32 %i, 1
  %end = icmp uge i32 %next, %rounds
  br i1 %end, label %done, label %loop
done:
  ret i{n} %v
}}
"""


@dataclass(frozen=True)
class Word:
    """Operations on an aligned integer of one width, at an address. Values are signed."""

    load: Callable[[int], int]
    """Acquire."""
    store: Callable[[int, int], None]
    """Release."""
    add: Callable[[int, int], int]
    """Acquire and release; returns the value before."""
    spin: Callable[[int, int, int], int]
    """`spin(address, old, rounds)`: read until the value is not `old`, at most `rounds` times, without the GIL."""


class _Compiled:
    """The machine code; one object a process, never released."""

    def __init__(self) -> None:
        from llvmlite import binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)
        self._jit = llvm.create_lljit_compiler(machine)
        text = "".join(_TEMPLATE.format(n=bits, bytes=bits // 8) for bits in (32, 64))
        builder = llvm.JITLibraryBuilder().add_ir(text)
        for bits in (32, 64):
            for name in ("load", "store", "add", "spin"):
                builder.export_symbol(f"{name}_i{bits}")
        self._library = builder.link(self._jit, "triton_dist_host_atomics")

    def word(self, bits: int) -> Word:
        c_word = {32: c_int32, 64: c_int64}[bits]

        def function(name: str, result: type | None, *arguments: type, keep_gil: bool = True):
            prototype = ctypes.PYFUNCTYPE if keep_gil else ctypes.CFUNCTYPE
            return prototype(result, *arguments)(self._library[f"{name}_i{bits}"])

        return Word(
            load=function("load", c_word, c_void_p),
            store=function("store", None, c_void_p, c_word),
            add=function("add", c_word, c_void_p, c_word),
            spin=function("spin", c_word, c_void_p, c_word, c_int32, keep_gil=False),
        )


_compiling = guarded(ATOMICS, threading.Lock())


@functools.cache
def _compiled() -> _Compiled:
    return _Compiled()


@functools.cache
def word(bits: int) -> Word:
    """The operations on words of 32 or 64 bits."""
    # Threads that come together would each compile, and the code of all but one would be freed under its callers.
    with _compiling:
        return _compiled().word(bits)


def yield_core() -> None:
    """Let another thread run on this core, and others take the GIL."""
    _sched_yield()


_sched_yield = ctypes.CDLL(None).sched_yield
