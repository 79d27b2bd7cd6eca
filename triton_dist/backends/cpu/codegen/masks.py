# SPDX-License-Identifier: MIT
"""Comparisons that say how many lanes of a chunk are inside: `offsets < n` over consecutive offsets.

AVX-512 keeps masks as bits, so such a mask is one number with so many low bits set, made without a vector comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ir

from .affine import exact
from .build import Builder, Value, const, i64, known
from .domain import Chunk, Lanes, Loop
from .ltypes import I1, I64, Elem
from .tensor import Emit, Map, Node, Table, scalar_index


class Compare(Map):
    """An integer comparison of tensors."""

    def __init__(self, shape: Sequence[int], elem: Elem, sources: Sequence[Node], emit: Emit, predicate: str) -> None:
        super().__init__(shape, elem, sources, emit)
        self.op, self.predicate = "arith.cmpi", predicate

    def lanes(self, loop: Loop, chunk: Chunk) -> Lanes:
        """The general comparison, unless counting does."""
        if loop.b.avx512_lanes and chunk.width in (8, 16, 32, 64):
            offsets, limit = self.sources if self.predicate == "slt" else reversed(self.sources)
            if self.predicate in ("slt", "sgt"):
                first = _consecutive(loop, offsets, chunk)
                if first is not None and limit.affine is not None and limit.affine.constant_over_tile:
                    return Lanes(_first_lanes(loop.b, first, limit.affine.base, chunk.width), False)
        return super().lanes(loop, chunk)


def _consecutive(loop: Loop, node: Node, chunk: Chunk) -> Value | None:
    """The value in the first lane, if each lane's is one more than the one before."""
    form = node.affine
    if form is None or not exact(node):
        return None
    total, found = form.base, False
    for d, term in enumerate(form.terms):
        index = chunk.dims[d]
        if term is None or node.shape[d] == 1:
            continue
        if isinstance(term, Table) or index.dynamic is not None:
            return None
        if index.lanes is not None:
            if known(term) != 1 or index.lanes != tuple(range(chunk.width)):
                return None
            found = True
        total = loop.b.iadd(total, loop.b.imul(term, scalar_index(loop.b, index, node.elem.reg)))
    return total if found else None


def _first_lanes(b: Builder, first: Value, limit: Value, width: int) -> Value:
    """A mask of the lanes i with first + i < limit."""
    inside = b.sub(b.resize(limit, I64), b.resize(first, I64))
    inside = b.select(b.icmp_signed(">", inside, i64(0)), inside, i64(0))
    inside = b.select(b.icmp_signed("<", inside, i64(64)), inside, i64(64))
    bits = b.call_intrinsic("llvm.x86.bmi.bzhi.64", I64, [const(I64, -1), inside])
    narrow = bits if width == 64 else b.trunc(bits, ir.IntType(width))
    return b.bitcast(narrow, ir.VectorType(I1, width))
