# SPDX-License-Identifier: MIT
"""Operations without control flow: constants, elementwise, shape changes, loads and stores, atomics."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir

from . import ahead, dot, floats, reduce
from .affine import addptr, integer_node
from .attrs import enum, get, integer, integers
from .build import Value, const, i64
from .domain import Chunk, Loop, plan
from .elementwise import CMPI, COST, OPS, Ctx
from .kernel import Kernel, handles
from .ltypes import I1, I32, Elem, elem_of, shape_of, tensor_shape
from .masks import Compare
from .memory import Load, _load_one, materialise, run, store
from .tensor import (
    Affine,
    AffineNode,
    Lanes,
    Map,
    Node,
    Splat,
    broadcast,
    buffer_node,
    expand_dims,
    pointer_of,
    reshape,
    row_major,
    to_memory,
    transpose,
)

HINTED = ("arith.addi", "arith.subi", "arith.muli", "arith.shli", "arith.extsi", "arith.index_cast")


def elementwise(k: Kernel, op: Any) -> None:
    """Any operation of the elementwise table, on scalars or tensors."""
    result = op.results[0]
    out, shape = elem_of(result.type), shape_of(result.type)
    ctx = Ctx(k.b, op, [elem_of(v.type) for v in op.operands], out, k.contract)
    handler = OPS[op.name]
    if shape is None:
        k.bind(result, handler(ctx, [k.scalar(v) for v in op.operands]))
        return
    sources = [_as_node(k, v, shape) for v in op.operands]
    if op.name == "arith.cmpi":
        predicate = enum(op, "predicate", CMPI)
        k.bind(result, Compare(shape, out, sources, lambda b, a: handler(ctx, a), predicate))
        return
    node = Map(shape, out, sources, lambda b, a: handler(ctx, a), COST[op.name])
    node.op = op.name
    k.bind(result, integer_node(k.b, op.name, sources, out, node) if op.name in HINTED else node)


def _as_node(k: Kernel, value: Any, shape: tuple[int, ...]) -> Node:
    found = k.env[value]
    return found if isinstance(found, Node) else Splat(shape, elem_of(value.type), found)


# Constants and indices


def _number(elem: Elem, value: float) -> ir.Constant:
    if elem.is_float:
        return floats.constant(elem, float(value))
    value = int(value)
    return const(elem.reg, value if elem.bits > 1 else value & 1)


def scalar_constant(op: Any) -> Value:
    from ....ir import dense_splat

    return _number(elem_of(op.results[0].type), dense_splat(get(op, "value")) or 0)


@handles("arith.constant")
def constant(k: Kernel, op: Any) -> None:
    from ....ir import dense_splat

    result = op.results[0]
    elem, shape = elem_of(result.type), shape_of(result.type)
    number = dense_splat(get(op, "value"))
    if shape is None:
        k.bind(result, _number(elem, number or 0))
    elif number is not None:
        k.bind(result, Splat(shape, elem, _number(elem, number)))
    else:
        k.bind(result, _constant_array(k, op, elem, shape))


def _constant_array(k: Kernel, op: Any, elem: Elem, shape: tuple[int, ...]) -> Node:
    from ....ir import dense_values

    values = dense_values(get(op, "value")).reshape(-1)
    data = ir.Constant(
        ir.ArrayType(elem.mem, len(values)), [ir.Constant(elem.mem, _number(elem, v.item()).constant) for v in values]
    )
    return buffer_node(shape, elem, k.global_constant(data, "dense"), row_major(shape))


@handles("tt.get_program_id")
def program_id(k: Kernel, op: Any) -> None:
    k.bind(op.results[0], k.pid["xyz".index(enum(op, "axis", "xyz"))])


@handles("tt.get_num_programs")
def num_programs(k: Kernel, op: Any) -> None:
    from ..native.abi import offset

    axis = enum(op, "axis", "xyz")
    at = k.b.gep(k.launch, [i64(offset(f"grid_{axis}"))], source_etype=ir.IntType(8))
    k.bind(op.results[0], k.b.load(at, typ=I32, align=4))


@handles("tt.make_range")
def make_range(k: Kernel, op: Any) -> None:
    start, result = integer(op, "start"), op.results[0]
    k.bind(
        result, AffineNode(tensor_shape(result.type), elem_of(result.type), Affine(const(I32, start), (const(I32, 1),)))
    )


# Shapes


@handles("tt.splat")
def splat(k: Kernel, op: Any) -> None:
    result = op.results[0]
    if shape_of(op.operands[0].type) is not None:
        raise k.unsupported(op, "a splat of a tensor")
    k.bind(result, Splat(tensor_shape(result.type), elem_of(result.type), k.scalar(op.operands[0])))


@handles("tt.unsplat")
def unsplat(k: Kernel, op: Any) -> None:
    node = k.node(op.operands[0])
    loop = Loop(k.b)
    loop.hoists = [k.b.block]
    from .domain import ZERO

    k.bind(op.results[0], loop.scalar(node, loop.chunk([ZERO] * len(node.shape), 1)))


def _viewed(new: Node, old: Node) -> Node:
    """Remember that a mask is the same one under other indices."""
    if new is not old and not new.op:
        new.op = "view"
    return new


@handles("tt.broadcast")
def broadcast_op(k: Kernel, op: Any) -> None:
    node = k.node(op.operands[0])
    k.bind(op.results[0], _viewed(broadcast(node, tensor_shape(op.results[0].type)), node))


@handles("tt.expand_dims")
def expand_dims_op(k: Kernel, op: Any) -> None:
    node = k.node(op.operands[0])
    k.bind(op.results[0], _viewed(expand_dims(node, k.axis(op, 1)), node))


@handles("tt.trans")
def trans(k: Kernel, op: Any) -> None:
    node = k.node(op.operands[0])
    k.bind(op.results[0], _viewed(transpose(node, integers(op, "order")), node))


@handles("tt.reshape")
def reshape_op(k: Kernel, op: Any) -> None:
    k.bind(op.results[0], reshape(k.node(op.operands[0]), tensor_shape(op.results[0].type)))


@handles("tt.addptr")
def addptr_op(k: Kernel, op: Any) -> None:
    result = op.results[0]
    elem, shape = elem_of(result.type), shape_of(result.type)
    if shape is not None:
        k.bind(result, addptr(k, k.node(op.operands[0]), k.node(op.operands[1]), elem))
        return
    size = elem.pointee.size if elem.pointee else 1
    step = k.b.resize(k.scalar(op.operands[1]), elem.reg)
    k.bind(result, k.b.iadd(k.scalar(op.operands[0]), k.b.imul(step, i64(size))))


# Memory


@handles("tt.load")
def load(k: Kernel, op: Any) -> None:
    result = op.results[0]
    elem, shape = elem_of(result.type), shape_of(result.type)
    pointer, mask, other = k.env[op.operands[0]], k.optional(op, 1), k.optional(op, 2)
    volatile = _flag(op, "isVolatile")
    if shape is None:
        guard = k.guard(op)
        if guard is not None:
            pointer = guard.check(k.b, pointer, mask, elem.size, write=False)
        k.bind(result, _scalar_load(k, pointer, mask, other, elem, volatile))
        return
    node = Load(pointer, mask, other, elem, k.guard(op))
    k.bind(result, materialise(k, node) if volatile else node)


def _flag(op: Any, name: str) -> bool:
    attr = get(op, name)
    return attr is not None and bool(getattr(getattr(attr, "value", attr), "data", True))


def _scalar_load(
    k: Kernel, pointer: Value, mask: Value | None, other: Value | None, elem: Elem, volatile: bool
) -> Value:
    from .tensor import from_memory

    b = k.b
    if volatile and mask is None and not elem.is_float:
        k.blocking = True
        raw = b.load_atomic(pointer_of(b, pointer), "monotonic", elem.size, typ=elem.mem)
        return from_memory(b, raw, elem)
    lane = None if mask is None else Lanes(mask, True)
    rest = const(elem.mem, 0) if other is None else to_memory(b, other, elem)
    return from_memory(b, _load_one(b, pointer, lane, rest, elem), elem)


@handles("tt.store")
def store_op(k: Kernel, op: Any) -> None:
    pointer, value, mask = k.env[op.operands[0]], k.env[op.operands[1]], k.optional(op, 2)
    if isinstance(pointer, Node):
        nodes = [pointer, *([mask] if isinstance(mask, Node) else []), *([value] if isinstance(value, Node) else [])]
        store(k, pointer, value, mask, k.guard(op), ahead.of_store(k, op, nodes))
        return
    elem = elem_of(op.operands[1].type)
    data = to_memory(k.b, value, elem)
    guard = k.guard(op)
    if guard is not None:
        pointer = guard.check(k.b, pointer, mask, elem.size, write=True)
    if mask is None:
        k.b.store(data, pointer_of(k.b, pointer), align=elem.size)
        return
    with k.b.if_then(mask):
        k.b.store(data, pointer_of(k.b, pointer), align=elem.size)


# Atomics

RMW = ("", "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch")
SEM = ("", "relaxed", "acquire", "release", "acq_rel")
_LLVM_RMW = {"exch": "xchg"}
_LLVM_ORDER = {"relaxed": "monotonic"}


def _order(op: Any) -> str:
    sem = enum(op, "sem", SEM)
    return _LLVM_ORDER.get(sem, sem)


@handles("tt.atomic_rmw")
def atomic_rmw(k: Kernel, op: Any) -> None:
    kind = enum(op, "atomic_rmw_op", RMW)
    elem = elem_of(op.operands[1].type)
    order = _order(op)
    if kind != "exch" and elem.is_float != (kind == "fadd"):
        raise k.unsupported(op, f"{kind} of {elem.name}")

    def one(address: Value, value: Value) -> Value:
        pointer = pointer_of(k.b, address)
        if kind == "fadd" and elem.name == "bf16":
            return _rmw_loop(k, pointer, value, elem, order)
        return k.b.atomic_rmw(_LLVM_RMW.get(kind, kind), pointer, value, order)

    _atomic(k, op, [op.operands[0], op.operands[1]], k.optional(op, 2), elem, one)


@handles("tt.atomic_cas")
def atomic_cas(k: Kernel, op: Any) -> None:
    elem = elem_of(op.operands[1].type)
    order = _order(op)
    failure = {"release": "monotonic", "acq_rel": "acquire"}.get(order, order)
    number = ir.IntType(elem.bits)

    def one(address: Value, expected: Value, value: Value) -> Value:
        b, pointer = k.b, pointer_of(k.b, address)
        if elem.reg != number:
            expected, value = b.bitcast(expected, number), b.bitcast(value, number)
        old = b.extract_value(b.cmpxchg(pointer, expected, value, order, failure), 0)
        return old if elem.reg == number else b.bitcast(old, elem.reg)

    _atomic(k, op, list(op.operands), None, elem, one)


def _atomic(k: Kernel, op: Any, operands: list[Any], mask: Any, elem: Elem, one: Any, other: Any = None) -> None:
    """A scalar atomic, or one a lane for tensors, masked lanes left out; `elem` is of what it gives."""
    k.blocking = True
    one = _checked(k, op, one)
    result, shape = op.results[0], shape_of(op.results[0].type)
    if shape is None:
        k.bind(result, _guarded(k, mask, elem, lambda: one(*[k.scalar(v) for v in operands]), other))
        return
    nodes = [k.node(v) for v in operands]
    old = k.allocate(shape, elem)
    nodes = [materialise(k, n) if n.reads else n for n in nodes]

    def body(loop: Loop, chunk: Chunk) -> None:
        values = [loop.scalar(n, chunk) for n in nodes]
        bit = None if mask is None else loop.scalar(mask, chunk)
        rest = None if other is None else loop.scalar(other, chunk)
        old.store(loop, chunk, _guarded(k, bit, elem, lambda: one(*values), rest))

    run(k, plan(shape, 1), body)
    k.bind(result, old)


READS = frozenset({"tt.atomic_load", "tt.atomic_poll"})


def _checked(k: Kernel, op: Any, one: Any) -> Any:
    """The same atomic, its address (the first operand) looked at first in the bounds-checked mode."""
    pointee = elem_of(op.operands[0].type).pointee
    if pointee is None or pointee.bits < 8:
        raise k.unsupported(op, f"an atomic of {'nothing' if pointee is None else pointee.name}")
    guard = k.guard(op)
    if guard is None:
        return one
    write = op.name not in READS
    return lambda address, *rest: one(guard.check(k.b, address, None, pointee.size, write), *rest)


def _guarded(k: Kernel, bit: Value | None, elem: Elem, do: Any, other: Value | None = None) -> Value:
    if bit is None:
        return do()
    cell = k.local(elem.reg, "old")
    k.b.store(const(elem.reg, 0) if other is None else other, cell)
    with k.b.if_then(bit):
        k.b.store(do(), cell)
    return k.b.load(cell, typ=elem.reg)


def _rmw_loop(k: Kernel, pointer: Value, value: Value, elem: Elem, order: str) -> Value:
    """Compare-and-swap until the sum is in."""
    b = k.b
    cell = k.local(elem.reg, "seen")
    b.store(b.load_atomic(pointer, "monotonic", elem.size, typ=elem.mem), cell)
    again, done = b.append_basic_block("cas"), b.append_basic_block("cas.end")
    b.branch(again)
    b.position_at_end(again)
    seen = b.load(cell, typ=elem.reg)
    total = floats.narrow(b, b.fadd(floats.widen(b, seen, elem), floats.widen(b, value, elem)), elem)
    pair = b.cmpxchg(pointer, seen, total, order, "monotonic")
    b.store(b.extract_value(pair, 0), cell)
    b.cbranch(b.extract_value(pair, 1), done, again)
    b.position_at_end(done)
    return b.load(cell, typ=elem.reg)


@handles("tt.atomic_load")
def atomic_load(k: Kernel, op: Any) -> None:
    elem, order = elem_of(op.results[0].type), _order(op)
    order = {"release": "monotonic", "acq_rel": "acquire"}.get(order, order)
    number = ir.IntType(elem.size * 8)

    def one(address: Value) -> Value:
        raw = k.b.load_atomic(pointer_of(k.b, address), order, elem.size, typ=number)
        return raw if elem.reg == number else k.b.bitcast(raw, elem.reg)

    _atomic(k, op, [op.operands[0]], k.optional(op, 1), elem, one, k.optional(op, 2))


@handles("tt.atomic_store")
def atomic_store(k: Kernel, op: Any) -> None:
    elem, order = elem_of(op.operands[1].type), _order(op)
    order = {"acquire": "monotonic", "acq_rel": "release"}.get(order, order)
    number = ir.IntType(elem.size * 8)

    def one(address: Value, value: Value) -> None:
        raw = value if elem.reg == number else k.b.bitcast(value, number)
        k.b.store_ordered(raw, pointer_of(k.b, address), order, elem.size)

    _each(k, op, list(op.operands)[:2], k.optional(op, 2), one)


def _each(k: Kernel, op: Any, operands: list[Any], mask: Any, one: Any) -> None:
    """Something done for a scalar, or for each unmasked lane of tensors."""
    k.blocking = True
    one = _checked(k, op, one)
    values = [k.env[v] for v in operands]
    if not isinstance(values[0], Node):
        with _only_if(k, mask):
            one(*values)
        return
    nodes = [materialise(k, n) if n.reads else n for n in values]

    def body(loop: Loop, chunk: Chunk) -> None:
        with _only_if(k, None if mask is None else loop.scalar(mask, chunk)):
            one(*[loop.scalar(n, chunk) for n in nodes])

    run(k, plan(nodes[0].shape, 1), body)


def _only_if(k: Kernel, bit: Value | None) -> Any:
    from contextlib import nullcontext

    return nullcontext() if bit is None else k.b.if_then(bit)


@handles("tt.atomic_poll")
def atomic_poll(k: Kernel, op: Any) -> None:
    """Wait until the value is there (or for `timeout` nanoseconds); true if it came."""
    from .extern import call

    k.blocking = True
    elem = elem_of(op.operands[1].type)
    number = ir.IntType(elem.bits)
    timeout = k.scalar(op.operands[2]) if len(op.operands) > 2 else i64(-1)
    result = op.results[0]

    def one(address: Value, expected: Value) -> Value:
        raw = expected if elem.reg == number else k.b.bitcast(expected, number)
        got = call(k, op, f"host_poll_i{elem.bits}", I32, [address, raw, timeout])
        k.check_abort()
        return k.b.trunc(got, I1)

    _atomic(k, op, list(op.operands)[:2], None, elem_of(result.type), one)


@handles("tt.reduce")
def reduce_op(k: Kernel, op: Any) -> None:
    k.axis(op)
    reduce.emit(k, op)


@handles("tt.dot")
def dot_op(k: Kernel, op: Any) -> None:
    left, right, out = (elem_of(v.type) for v in op.operands[:3])
    if {left.is_float, right.is_float} != {out.is_float} or (not out.is_float and max(left.bits, right.bits) > 16):
        raise k.unsupported(op, f"a product of {left.name} and {right.name} in {out.name}")
    dot.emit(k, op)


@handles("ub.poison")
def poison(k: Kernel, op: Any) -> None:
    """A value that nothing may depend on: zero."""
    result = op.results[0]
    elem, shape = elem_of(result.type), shape_of(result.type)
    zero = _number(elem, 0)
    k.bind(result, zero if shape is None else Splat(shape, elem, zero))


@handles("ub.unreachable")
def unreachable(k: Kernel, op: Any) -> None:
    del op
    k.b.unreachable()


@handles(
    "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return", "llvm.intr.assume", "ttg.barrier", "gpu.barrier",
    "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents",
)  # fmt: skip
def nothing(k: Kernel, op: Any) -> None:
    """The end of a region; a hint; a barrier among the threads of a program, which is one thread here; the end of the
    kernel before, which has come.
    """
    del k, op
