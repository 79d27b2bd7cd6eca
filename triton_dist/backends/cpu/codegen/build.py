# SPDX-License-Identifier: MIT
"""Thin helpers over llvmlite's builder: folding of index arithmetic, splats, loops, intrinsics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import llvmlite.ir as ir
from llvmlite.ir import instructions

from .ltypes import I32, I64

if TYPE_CHECKING:
    # llvmlite has no types; what a checker infers of its decorated methods is wrong.
    Value = Any
    IRBuilder = Any
else:
    Value = ir.Value
    IRBuilder = ir.IRBuilder


def const(type_: ir.Type, value: float) -> ir.Constant:
    return ir.Constant(type_, value)


def i64(value: int) -> ir.Constant:
    return ir.Constant(I64, value)


def known(value: Value) -> int | None:
    """The number behind an integer constant, or None."""
    if isinstance(value, ir.Constant) and isinstance(value.type, ir.IntType) and isinstance(value.constant, int):
        return value.constant
    return None


def lanes_of(value: Value) -> int | None:
    return value.type.count if isinstance(value.type, ir.VectorType) else None


def scalar_type(type_: ir.Type) -> ir.Type:
    return type_.element if isinstance(type_, ir.VectorType) else type_


def like(value: Value, scalar: ir.Type) -> ir.Type:
    """`scalar`, as wide as `value`."""
    count = lanes_of(value)
    return scalar if count is None else ir.VectorType(scalar, count)


def full(type_: ir.Type, number: float) -> ir.Constant:
    """A constant of a scalar or vector type with `number` in every lane."""
    if isinstance(type_, ir.VectorType):
        return _vector(type_.element, type_.count, repr(number), (number,))
    return ir.Constant(type_, number)


class _Constants(dict[Any, ir.Constant]):
    """Vector constants by what they hold: making one, and writing it as text, takes as long as its lanes are many."""

    def keep(self, key: Any, make: Callable[[], ir.Constant]) -> ir.Constant:
        found = self.get(key)
        if found is None:
            if len(self) >= 4096:
                self.clear()
            found = self[key] = make()
        return found


_constants = _Constants()


def _vector(element: ir.Type, count: int, key: str, numbers: Sequence[float]) -> ir.Constant:
    """A vector constant, of one number (all lanes) or as many as lanes. `key` is its text: -0.0 is not 0.0."""

    def make() -> ir.Constant:
        lanes = [ir.Constant(element, n) for n in numbers]
        return ir.Constant(ir.VectorType(element, count), lanes if len(lanes) == count else lanes * count)

    return _constants.keep((str(element), count, key), make)


def undefined(type_: ir.Type) -> ir.Constant:
    """A vector of which nothing is said."""
    return _constants.keep((str(type_), ir.Undefined), lambda: ir.Constant(type_, ir.Undefined))


def _wrap(value: int, type_: Any) -> int:
    bits = type_.width
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


class Builder(IRBuilder):
    """llvmlite's builder with the few idioms that this engine repeats."""

    avx512_lanes = 0
    """fp32 lanes of the machine vectors in use where the machine has AVX-512; else 0."""
    lookup = 0
    """fp32 numbers in a machine vector in which an instruction looks up one for each lane (AVX2 and up); else 0."""

    def iadd(self, a: Value, b: Value) -> Value:
        ka, kb = known(a), known(b)
        if ka is not None and kb is not None:
            return const(a.type, _wrap(ka + kb, a.type))
        if ka == 0:
            return b
        return a if kb == 0 else self.add(a, b)

    def isub(self, a: Value, b: Value) -> Value:
        ka, kb = known(a), known(b)
        if ka is not None and kb is not None:
            return const(a.type, _wrap(ka - kb, a.type))
        return a if kb == 0 else self.sub(a, b)

    def imul(self, a: Value, b: Value) -> Value:
        ka, kb = known(a), known(b)
        if ka is not None and kb is not None:
            return const(a.type, _wrap(ka * kb, a.type))
        if ka == 0 or kb == 0:
            return const(a.type, 0)
        if ka == 1:
            return b
        return a if kb == 1 else self.mul(a, b)

    def resize(self, value: Value, type_: Any, signed: bool = True) -> Value:
        """Truncate or extend a scalar integer."""
        have, want = value.type.width, type_.width
        if have == want:
            return value
        number = known(value)
        if number is not None and signed:
            return const(type_, _wrap(number, type_))
        if have > want:
            return self.trunc(value, type_)
        return self.sext(value, type_) if signed else self.zext(value, type_)

    def splat(self, value: Value, count: int) -> Value:
        """A vector of `count` copies of a scalar."""
        vector = ir.VectorType(value.type, count)
        if (
            isinstance(value, ir.Constant)
            and not isinstance(value.constant, ir.Value)
            and value.constant is not ir.Undefined
        ):
            key = (str(value.type), count, value.get_reference())
            return _constants.keep(key, lambda: ir.Constant(vector, [value] * count))
        one = self.insert_element(undefined(vector), value, const(I32, 0))
        return self.shuffle_vector(one, undefined(vector), full(ir.VectorType(I32, count), 0))

    def lane_constant(self, type_: ir.Type, lanes: Sequence[int]) -> Value:
        return _vector(type_, len(lanes), str(lanes), lanes)

    def shuffle(self, value: Value, lanes: Sequence[int]) -> Value:
        return self.shuffle_vector(value, undefined(value.type), self.lane_constant(I32, lanes))

    def store_ordered(self, value: Value, pointer: Value, ordering: str, align: int) -> None:
        """An atomic store (llvmlite's own wants a typed pointer)."""
        self._insert(instructions.StoreAtomicInstr(self.block, value, pointer, ordering, align))

    def concat(self, low: Value, high: Value) -> Value:
        """Two vectors of one type, end to end."""
        return self.shuffle_pair(low, high, range(2 * low.type.count))

    def shuffle_pair(self, x: Value, y: Value, lanes: Sequence[int]) -> Value:
        """Lanes of two vectors, y's numbered after x's."""
        return self.shuffle_vector(x, y, self.lane_constant(I32, lanes))

    def call_intrinsic(self, name: str, result: ir.Type, args: Sequence[Value]) -> Value:
        """Call an LLVM intrinsic (or any external function) by its full name."""
        function = self.module.globals.get(name)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(result, [a.type for a in args]), name)
        return self.call(function, args)

    def math(self, name: str, *args: Value) -> Value:
        """`llvm.<name>.<type>` over floats of the arguments' type."""
        return self.call_intrinsic(f"llvm.{name}.{suffix(args[0].type)}", args[0].type, args)

    def counted(self, start: Value, stop: Value, step: int, body: Callable[[Value], None], name: str) -> None:
        """A loop whose body runs at least once: for (i = start; ; i += step) { body; } while (i + step < stop)."""
        before = self.block
        head = self.append_basic_block(name)
        self.branch(head)
        self.position_at_end(head)
        index = self.phi(start.type, name)
        index.add_incoming(start, before)
        body(index)
        following = self.add(index, const(start.type, step), flags=("nsw",))
        index.add_incoming(following, self.block)
        done = self.append_basic_block(name + ".end")
        self.cbranch(self.icmp_signed("<", following, stop), head, done)
        self.position_at_end(done)

    @contextmanager
    def at_end_of(self, block: ir.Block) -> Iterator[None]:
        """Emit before the terminator of an earlier block (hoisting)."""
        here, anchor = self._block, self._anchor
        if block.is_terminated:
            self.position_before(block.terminator)
        else:
            self.position_at_end(block)
        yield
        if here is not block:
            # Not its end: hoisting may nest, and then the block we came from has its terminator already.
            self._block, self._anchor = here, anchor


def in_pieces(b: Builder, lanes: int, values: Sequence[Value], emit: Callable[[list[Value]], Value]) -> Value:
    """What `emit` makes of vectors, `lanes` lanes at a time."""
    parts = []
    for at in range(0, values[0].type.count, lanes):
        parts.append(emit([v if v.type.count == lanes else b.shuffle(v, range(at, at + lanes)) for v in values]))
    while len(parts) > 1:
        parts = [b.concat(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def narrow_vectors(function: Any, bits: int) -> None:
    """Let LLVM use vectors of at most `bits` in this function. (llvmlite's own `add` knows no such attributes.)"""
    set.update(function.attributes, [f'"min-legal-vector-width"="{bits}"', f'"prefer-vector-width"="{bits}"'])


def widths(function: Any) -> list[str]:
    """The attributes that `narrow_vectors` gave to a function."""
    return [a for a in function.attributes if "vector-width" in a]


def suffix(type_: ir.Type) -> str:
    """The type's spelling in an intrinsic's name: f32, v16f32, i64, p0."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{suffix(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    if isinstance(type_, ir.PointerType):
        return "p0"
    return {"half": "f16", "float": "f32", "double": "f64"}[str(type_)]
