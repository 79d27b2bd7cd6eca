# SPDX-License-Identifier: MIT
"""Which operations of a kernel not all threads of the program reach together, with the same operands.

A Triton program is one thread of control, unless it asks which thread it is (`language_extra.tid`, inline asm that
reads a thread's register). What depends on that is written thread by thread, as in CUDA; the rest is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from triton_dist.backends.cuda.templates import THREAD_REGISTERS


class Divergence:
    """The divergent values and operations of one function."""

    def __init__(self, function: Operation, operations: Sequence[Operation]) -> None:
        """Of `function` and all that is in it."""
        self._function = function
        self._operations = operations
        self._values: set[SSAValue] = set()
        self._everywhere = False
        if any(_asks_for_thread(op) for op in operations):
            while self._spread():
                pass

    def reaches(self, op: Operation) -> bool:
        """Whether `op` stands under a condition that differs between threads, or takes an operand that does."""
        if self._everywhere or any(value in self._values for value in op.operands):
            return True
        parent = op.parent_op()
        while parent is not None and parent is not self._function:
            if self._controls(parent):
                return True
            parent = parent.parent_op()
        return False

    def _spread(self) -> bool:
        """One round; whether it found anything new."""
        before = len(self._values), self._everywhere
        for op in self._operations:
            if _asks_for_thread(op) or any(value in self._values for value in op.operands):
                self._mark(op)
        return before != (len(self._values), self._everywhere)

    def _mark(self, op: Operation) -> None:
        self._values.update(op.results)
        if op.name in ("cf.cond_br", "cf.switch"):
            # Early returns of a kernel: which blocks meet again is not worth knowing.
            self._everywhere = True
        parent = op.parent_op()
        if op.name in ("scf.yield", "scf.condition") and parent is not None:
            self._values.update(parent.results)
            self._mark_arguments(parent)
        elif op.regions:
            self._mark_arguments(op)

    def _mark_arguments(self, op: Operation) -> None:
        for block in _blocks(op):
            self._values.update(block.args)

    def _controls(self, op: Operation) -> bool:
        """Whether threads may go different ways in `op`."""
        if op.name == "scf.while":
            return any(value in self._values for value in _condition_of(op))
        # Bounds and conditions are the first operands; loop-carried values do not decide anything.
        deciding = {"scf.for": 3, "scf.if": 1}.get(op.name, 0)
        return any(value in self._values for value in op.operands[:deciding])


def _asks_for_thread(op: Operation) -> bool:
    if op.name != "tt.elementwise_inline_asm":
        return False
    text = op.properties.get("asm_string")
    return isinstance(text, StringAttr) and any(register in text.data for register in THREAD_REGISTERS)


def _blocks(op: Operation) -> Iterable[Block]:
    for region in op.regions:
        yield from region.blocks


def _condition_of(loop: Operation) -> Iterable[SSAValue]:
    for block in loop.regions[0].blocks:
        last = block.last_op
        if last is not None and last.name == "scf.condition":
            yield last.operands[0]
