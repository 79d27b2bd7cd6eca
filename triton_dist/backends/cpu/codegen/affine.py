# SPDX-License-Identifier: MIT
"""Closed forms of integer and pointer tensors, and what they say of an access: contiguous, full, disjoint."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

from .build import Builder, Value, const, i64, known
from .ltypes import I1, I64, Elem
from .tensor import Affine, AffineNode, Buffer, Map, Node, Splat, Table, Term

if TYPE_CHECKING:
    from .kernel import Kernel


def combine(b: Builder, x: Affine, y: Affine, sign: int = 1) -> Affine | None:
    """x + y or x - y; None when a table would have to be added to a term."""
    add = b.iadd if sign > 0 else b.isub
    terms: list[Term] = []
    for s, t in zip(x.terms, y.terms, strict=True):
        if t is None:
            terms.append(s)
        elif isinstance(t, Table) or isinstance(s, Table):
            return None
        else:
            terms.append(add(const(t.type, 0) if s is None else s, t))
    return Affine(add(x.base, y.base), tuple(terms))


def scale(b: Builder, x: Affine, factor: Value) -> Affine | None:
    if not x.linear:
        return None
    return Affine(b.imul(x.base, factor), tuple(None if t is None else b.imul(t, factor) for t in x.terms))


def extend(b: Builder, x: Affine, type_: Any) -> Affine | None:
    if not x.linear:
        return None
    return Affine(b.resize(x.base, type_), tuple(None if t is None else b.resize(t, type_) for t in x.terms))


def of_op(b: Builder, name: str, nodes: Sequence[Node], out: Elem) -> Affine | None:
    """The closed form of an arith op's result, if its operands have one."""
    forms = [n.affine for n in nodes]
    if any(f is None for f in forms):
        return None
    x, y = forms[0], forms[-1]
    assert x is not None
    assert y is not None
    if name in ("arith.addi", "arith.subi"):
        return combine(b, x, y, 1 if name == "arith.addi" else -1)
    if name == "arith.muli":
        if y.constant_over_tile:
            return scale(b, x, y.base)
        return scale(b, y, x.base) if x.constant_over_tile else None
    if name == "arith.shli" and y.constant_over_tile and (n := known(y.base)) is not None and 0 <= n < out.bits:
        return scale(b, x, const(out.reg, 1 << n))
    if name in ("arith.extsi", "arith.index_cast"):
        return extend(b, x, out.reg)
    return None


EXACT = frozenset({"arith.addi", "arith.subi", "arith.muli", "arith.shli"})
"""These are exact modulo 2^n, so their closed form may be evaluated; a sign extension's may only be used for
addresses.
"""


def exact(node: Node) -> bool:
    return isinstance(node, AffineNode | Splat)


def integer_node(b: Builder, name: str, nodes: Sequence[Node], out: Elem, fallback: Map) -> Node:
    """The result of an integer op: in closed form where that is exact, else lane by lane with the form as a hint."""
    form = of_op(b, name, nodes, out)
    if form is None:
        return fallback
    if name in EXACT and all(exact(n) for n in nodes):
        return AffineNode(fallback.shape, out, form)
    fallback.affine = form
    return fallback


# Pointers


def addptr(k: Kernel, pointer: Node, offset: Node, elem: Elem) -> Node:
    """Pointer plus offset in elements of the pointee."""
    b, size = k.b, elem.pointee.size if elem.pointee else 1
    if pointer.affine is not None:
        parts = separate(b, offset)
        if parts is not None and (offset.affine is not None or _worth_tables(offset, parts)):
            form = _add_parts(k, pointer, parts, size)
            if form is not None:
                return AffineNode(pointer.shape, elem, form)
    return Map(pointer.shape, elem, (pointer, offset), lambda bb, a: _advance(bb, a[0], a[1], size))


def _advance(b: Builder, pointer: Value, offset: Value, size: int) -> Value:
    from .build import full

    if offset.type != pointer.type:
        offset = b.sext(offset, pointer.type)
    return b.add(pointer, b.mul(offset, full(pointer.type, size)))


Parts = tuple[Affine, dict[int, list[Node]]]


def separate(b: Builder, node: Node) -> Parts | None:
    """Split an offset into a closed form plus, for each dimension, nodes that vary along that dimension only."""
    if node.affine is not None:
        return (node.affine, {}) if node.affine.linear else None
    op = node.op
    if op in ("arith.addi", "arith.extsi"):
        split = [separate(b, s) for s in node.sources]
        if all(s is not None for s in split):
            return _merge(b, node, split)
    if len(node.varies) == 1:
        zero = Affine(const(node.elem.reg, 0), (None,) * len(node.shape))
        return zero, {next(iter(node.varies)): [node]}
    return None


def _merge(b: Builder, node: Node, split: Sequence[Parts | None]) -> Parts | None:
    form: Affine | None = None
    tables: dict[int, list[Node]] = {}
    for parts in split:
        assert parts is not None
        mine = extend(b, parts[0], node.elem.reg)
        form = mine if form is None or mine is None else combine(b, form, mine)
        if form is None:
            return None
        for d, nodes in parts[1].items():
            tables.setdefault(d, []).extend(nodes)
    assert form is not None
    return form, tables


def _worth_tables(offset: Node, parts: Parts) -> bool:
    """A table pays where another dimension stays in closed form, now or after a broadcast: not in a plain vector."""
    return len(offset.shape) > len(parts[1]) > 0


def _add_parts(k: Kernel, pointer: Node, parts: Parts, size: int) -> Affine | None:
    b, (form, tables) = k.b, parts
    assert pointer.affine is not None
    wide = extend(b, form, I64)
    scaled = None if wide is None else scale(b, wide, i64(size))
    if scaled is None:
        return None
    terms: list[Term] = []
    base = b.iadd(pointer.affine.base, scaled.base)
    for d, (have, add) in enumerate(zip(pointer.affine.terms, scaled.terms, strict=True)):
        if d in tables or isinstance(have, Table):
            if isinstance(have, Table) and d not in tables and add is None:
                terms.append(have)
                continue
            terms.append(k.table(pointer.shape[d], d, len(pointer.shape), have, add, tables.get(d, []), size))
        elif have is None or add is None:
            terms.append(have if add is None else add)
        else:
            terms.append(b.iadd(have, add))
    return Affine(base, tuple(terms))


# Questions


def lane_stride(term: Term) -> int | None:
    """Bytes between neighbours along a dimension, if known at compile time."""
    if term is None:
        return 0
    return None if isinstance(term, Table) else known(term)


def bounds(b: Builder, form: Affine, shape: Sequence[int], signed: bool = True) -> tuple[Value, Value] | None:
    """Lowest and highest value over the tile, as i64; None with tables."""
    low = high = b.resize(form.base, I64, signed)
    for term, n in zip(form.terms, shape, strict=True):
        if term is None or n == 1:
            continue
        if isinstance(term, Table):
            return None
        reach = b.imul(b.resize(term, I64), i64(n - 1))
        number = known(reach)
        if number is not None:
            low, high = (b.iadd(low, i64(min(number, 0))), b.iadd(high, i64(max(number, 0))))
            continue
        negative = b.icmp_signed("<", reach, i64(0))
        low = b.add(low, b.select(negative, reach, i64(0)))
        high = b.add(high, b.select(negative, i64(0), reach))
    return low, high


DEEPEST = 64
"""Of masks combined with `&` one by one, so many are looked at."""


def always(b: Builder, mask: Node) -> Value | None:
    """An i1 that is true only if the mask holds over its whole tile; None if that cannot be told."""
    return _always(b, mask, {}, DEEPEST)


def _always(b: Builder, mask: Node, have: dict[Node, Value | None], depth: int) -> Value | None:
    if mask not in have:
        have[mask] = _holds(b, mask, have, depth - 1) if depth else None
    return have[mask]


def _holds(b: Builder, mask: Node, have: dict[Node, Value | None], depth: int) -> Value | None:
    if isinstance(mask, Splat):
        return mask.scalar
    if isinstance(mask, Buffer):
        return None if mask.origin is None else _always(b, mask.origin, have, depth)
    if mask.op == "view":
        return _always(b, mask.sources[0], have, depth)
    if mask.op == "arith.andi":
        both = [_always(b, s, have, depth) for s in mask.sources]
        return None if both[0] is None or both[1] is None else b.and_(both[0], both[1])
    if mask.op == "arith.cmpi":
        return _compare_always(b, mask)
    return None


def _compare_always(b: Builder, mask: Node) -> Value | None:
    predicate = mask.predicate
    x, y = mask.sources
    if predicate not in ("slt", "sle", "sgt", "sge") or x.affine is None or y.affine is None:
        return None
    left, right = bounds(b, x.affine, x.shape), bounds(b, y.affine, y.shape)
    if left is None or right is None:
        return None
    if predicate in ("slt", "sle"):
        return b.icmp_signed("<" if predicate == "slt" else "<=", left[1], right[0])
    return b.icmp_signed(">" if predicate == "sgt" else ">=", left[0], right[1])


MOST_ORDERED = 3
"""Dimensions of strides that are known at run time only, of which every order is tried."""


def disjoint_or_same(b: Builder, load: Node, load_size: int, store: Node, store_size: int) -> Value | None:
    """An i1: the tile of `load` does not meet that of `store`, or each element is the same address in both."""
    if load.affine is None or store.affine is None:
        return None
    mine, theirs = bounds(b, load.affine, load.shape), bounds(b, store.affine, store.shape)
    if mine is None or theirs is None:
        return None
    before = b.icmp_signed("<=", b.iadd(mine[1], i64(load_size)), theirs[0])
    after = b.icmp_signed("<=", b.iadd(theirs[1], i64(store_size)), mine[0])
    apart = b.or_(before, after)
    if load_size != store_size or load.shape != store.shape:
        return apart
    same = b.icmp_signed("==", load.affine.base, store.affine.base)
    for s, t in zip(load.affine.terms, store.affine.terms, strict=True):
        same = b.and_(same, _equal_terms(b, s, t))
    return b.or_(apart, b.and_(same, _apart_within(b, store.affine, store.shape, store_size)))


def _apart_within(b: Builder, form: Affine, shape: Sequence[int], size: int) -> Value:
    """An i1: no two elements of a tile of addresses meet (if it is false they may). In some order of the dimensions,
    each step is longer than all that the dimensions before it reach.
    """
    zero: list[Term] = [i64(0) if t is None else t for t in form.terms]
    steps = [(t, n) for t, n in zip(zero, shape, strict=True) if n > 1 and not isinstance(t, Table)]
    first = sorted((abs(number), n) for t, n in steps if (number := known(t)) is not None)
    rest = [(_magnitude(b, t), n) for t, n in steps if known(t) is None]
    found: Value = const(I1, 0)
    for order in permutations(rest) if len(rest) <= MOST_ORDERED else [rest]:
        reach, good = i64(size), const(I1, 1)
        for step, n in [*((i64(t), n) for t, n in first), *order]:
            good = _and(b, good, _at_least(b, step, reach))
            reach = b.iadd(reach, b.imul(step, i64(n - 1)))
        found = good if known(found) == 0 else b.or_(found, good)
    return found


def _magnitude(b: Builder, value: Value) -> Value:
    wide = b.resize(value, I64)
    return b.select(b.icmp_signed("<", wide, i64(0)), b.neg(wide), wide)


def _at_least(b: Builder, x: Value, y: Value) -> Value:
    if (kx := known(x)) is not None and (ky := known(y)) is not None:
        return const(I1, int(kx >= ky))
    return b.icmp_signed(">=", x, y)


def _and(b: Builder, x: Value, y: Value) -> Value:
    if known(x) is not None:
        return y if known(x) else x
    return x if known(y) is not None and known(y) else b.and_(x, y)


def _equal_terms(b: Builder, s: Term, t: Term) -> Value:
    if isinstance(s, Table) or isinstance(t, Table):
        return const(I1, 0)
    zero = i64(0)
    return b.icmp_signed("==", zero if s is None else s, zero if t is None else t)
