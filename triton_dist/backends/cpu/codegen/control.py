# SPDX-License-Identifier: MIT
"""Loops, branches, calls, returns. Scalars carried around a loop live in stack cells, tensors in buffers.

A loop-carried pointer tensor that only moves by a scalar a round (`ptrs += BLOCK * stride`) carries just its base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llvmlite.ir as ir

from . import spins, uses
from .ahead import early
from .attrs import get
from .build import Value, const
from .kernel import Flow, Kernel, handles
from .ltypes import Elem, elem_of, shape_of
from .memory import materialise, materialise_together
from .tensor import Affine, AffineNode, Buffer, Node, Splat


@dataclass
class Cell:
    """Where one carried value lives."""

    elem: Elem
    shape: tuple[int, ...] | None
    slot: Value | None = None
    buffer: Buffer | None = None
    terms: tuple[Any, ...] | None = None

    def read(self, k: Kernel) -> Node | Value:
        if self.buffer is not None:
            return self.buffer
        base = k.b.load(self.slot, typ=self.elem.reg)
        if self.shape is None:
            return base
        return AffineNode(self.shape, self.elem, Affine(base, self.terms or ()))

    def moves(self) -> bool:
        """A tensor of which only the base changes."""
        return self.terms is not None


def _scalar_cell(k: Kernel, elem: Elem) -> Cell:
    return Cell(elem, None, slot=k.local(elem.reg, "carried"))


def _tensor_cell(k: Kernel, elem: Elem, shape: tuple[int, ...]) -> Cell:
    return Cell(elem, shape, buffer=k.allocate(shape, elem, padded=True))


def _cell_for(k: Kernel, type_: Any) -> Cell:
    elem, shape = elem_of(type_), shape_of(type_)
    return _scalar_cell(k, elem) if shape is None else _tensor_cell(k, elem, shape)


# What a carried tensor does in a round


def _is_uniform(value: Any) -> bool:
    """The same in every element, whatever it is."""
    op = value.owner
    name = getattr(op, "name", "")
    if name == "tt.splat":
        return True
    if name == "arith.constant":
        from ....ir import dense_splat

        return dense_splat(get(op, "value")) is not None
    if name in ("tt.broadcast", "tt.expand_dims", "arith.muli", "arith.addi", "arith.extsi"):
        return all(_is_uniform(v) for v in op.operands)
    return False


def _moves_uniformly(value: Any, arg: Any) -> bool:
    """`value` is `arg` plus something that is the same in every element."""
    while value is not arg:
        op = value.owner
        name = getattr(op, "name", "")
        if name not in ("tt.addptr", "arith.addi") or not _is_uniform(op.operands[1]):
            return False
        value = op.operands[0]
    return True


def _carry(k: Kernel, init: Any, arg: Any, yielded: Any) -> Cell:
    """Make the cell of a loop-carried value and put the initial one in."""
    elem, shape = elem_of(arg.type), shape_of(arg.type)
    value = k.env[init]
    if shape is None:
        cell = _scalar_cell(k, elem)
        k.b.store(value, cell.slot)
        return cell
    assert isinstance(value, Node)
    if isinstance(value, AffineNode | Splat) and value.affine is not None and _moves_uniformly(yielded, arg):
        cell = Cell(elem, shape, slot=k.local(elem.reg, "base"), terms=value.affine.terms)
        k.b.store(value.affine.base, cell.slot)
        return cell
    cell = _tensor_cell(k, elem, shape)
    assert cell.buffer is not None
    materialise(k, value, cell.buffer)
    return cell


# Writing what a round yields


def _write(k: Kernel, cells: Sequence[Cell], values: Sequence[Node | Value]) -> None:
    """Store new carried values; all are computed from the old ones."""
    tensors: list[tuple[Node, Buffer]] = []
    stores: list[tuple[Value, Value]] = []
    for cell, value in zip(cells, values, strict=True):
        if cell.buffer is not None:
            assert isinstance(value, Node)
            if value is not cell.buffer:
                tensors.append((value, cell.buffer))
        elif isinstance(value, Node):
            assert value.affine is not None
            stores.append((value.affine.base, cell.slot))
        else:
            stores.append((value, cell.slot))
    _write_tensors(k, tensors)
    for value, slot in stores:
        k.b.store(value, slot)


def _write_tensors(k: Kernel, pairs: list[tuple[Node, Buffer]]) -> None:
    """In place where each element depends on its own old element only; by way of a copy otherwise."""
    groups: dict[tuple[int, ...], list[tuple[Node, Buffer]]] = {}
    for node, buffer in pairs:
        groups.setdefault(buffer.shape, []).append((node, buffer))
    waiting = list(groups.values())
    while waiting:
        ready = next((g for g in waiting if _harmless(g, waiting)), None)
        if ready is None:
            waiting = [_through_copies(k, [p for g in waiting for p in g])]
            materialise_groups(k, waiting[0])
            return
        materialise_together(k, ready)
        waiting.remove(ready)


def materialise_groups(k: Kernel, pairs: Sequence[tuple[Node, Buffer]]) -> None:
    for node, buffer in pairs:
        materialise(k, node, buffer)


def _through_copies(k: Kernel, pairs: Sequence[tuple[Node, Buffer]]) -> list[tuple[Node, Buffer]]:
    copies = []
    for node, buffer in pairs:
        fresh = k.allocate(node.shape, node.elem)
        materialise(k, node, fresh)
        copies.append((fresh, buffer))
    return copies


def _harmless(group: Sequence[tuple[Node, Buffer]], waiting: Sequence[Sequence[tuple[Node, Buffer]]]) -> bool:
    """Writing the group in place disturbs nobody: no other group reads its buffers, and it reads them index by
    index.
    """
    mine = {buffer for _, buffer in group}
    for other in waiting:
        for node, _ in other:
            reads = _reads_of(node, mine, other is not group)
            if reads:
                return False
    return True


def _reads_of(node: Node, buffers: set[Buffer], any_read: bool) -> bool:
    """Whether the tree reads one of `buffers`: at all, or (any_read False) under changed indices."""
    stack: list[tuple[Node, bool]] = [(node, any_read)]
    seen: set[tuple[Node, bool]] = set()
    while stack:
        here, moved = stack.pop()
        if (here, moved) in seen:
            continue
        seen.add((here, moved))
        shared = isinstance(here, Buffer) and any(here.pointer is b.pointer for b in buffers)
        if shared and (moved or here not in buffers):
            return True
        if here.affine is not None and not here.affine.linear:
            continue
        stack.extend((s, moved or here.moves) for s in here.sources)
    return False


# scf.for


@handles("scf.for")
def for_loop(k: Kernel, op: Any) -> None:
    body = op.regions[0].blocks[0]
    lower, upper, step = (k.scalar(v) for v in op.operands[:3])
    inits, args = list(op.operands)[3:], list(body.args)[1:]
    yielded = list(body.last_op.operands)
    _settle(k, op)
    cells = [_carry(k, i, a, y) for i, a, y in zip(inits, args, yielded, strict=True)]
    _counted(k, op, lower, upper, step, body, args, cells)
    for result, cell in zip(op.results, cells, strict=True):
        k.bind(result, cell.read(k))


def _settle(k: Kernel, op: Any) -> None:
    """Values that a loop reads every round and that are not cheap are computed before it."""
    inside = {v for inner in op.walk() if inner is not op for v in inner.operands}
    for value in inside:
        found = k.env.get(value)
        if isinstance(found, Node) and (found.reads or found.cost >= uses.EXPENSIVE) and found.affine is None:
            k.env[value] = materialise(k, found)
            k.pending.pop(value, None)


def _counted(
    k: Kernel, op: Any, lower: Value, upper: Value, step: Value, body: Any, args: Sequence[Any], cells: Sequence[Cell]
) -> None:
    b = k.b
    before = b.block
    head, inner, done = (k.fn.append_basic_block(n) for n in ("for", "for.body", "for.end"))
    b.branch(head)
    b.position_at_end(head)
    index = b.phi(lower.type, "iv")
    index.add_incoming(lower, before)
    compare = b.icmp_unsigned if get(op, "unsignedCmp") is not None else b.icmp_signed
    b.cbranch(compare("<", index, upper), inner, done)
    b.position_at_end(inner)
    k.bind(body.args[0], index)
    k.rounds[body] = [(index, lambda: b.add(index, step))]
    with k.scratch():
        _round(k, body, args, cells)
    index.add_incoming(b.add(index, step), b.block)
    b.branch(head)
    b.position_at_end(done)


def _round(k: Kernel, body: Any, args: Sequence[Any], cells: Sequence[Cell]) -> None:
    for arg, cell in zip(args, cells, strict=True):
        value = cell.read(k)
        k.bind(arg, value)
        if isinstance(value, Buffer):
            k.carried[arg] = value
    last = body.last_op
    for arg, cell, following in zip(args, cells, last.operands, strict=True):
        if cell.moves():
            _note_move(k, body, arg, following)
    k.block_ops(body)
    _write(k, cells, [k.env[v] for v in last.operands])


def _note_move(k: Kernel, body: Any, arg: Any, following: Any) -> None:
    """Let it be known how the base of a carried tensor changes in a round."""
    steps: list[Any] = []
    while following is not arg:
        following, by = following.owner.operands[:2]
        steps.append(by)
    have = k.node(arg)
    assert have.affine is not None
    base, unit = have.affine.base, have.elem.pointee.size if have.elem.pointee else 1

    def moved() -> Value | None:
        total = base
        for step in steps:
            node = early(k, step)
            if not isinstance(node, Node) or node.affine is None:
                return None
            total = k.b.iadd(total, k.b.imul(k.b.resize(node.affine.base, base.type), const(base.type, unit)))
        return total

    k.rounds.setdefault(body, []).append((base, moved))


@handles("scf.yield", "scf.condition")
def terminator(k: Kernel, op: Any) -> None:
    """Read by the op around it."""
    del k, op


# scf.if


@handles("scf.if")
def if_else(k: Kernel, op: Any) -> None:
    cells = [_cell_for(k, r.type) for r in op.results]
    branches = [r for r in op.regions if r.blocks]
    condition = k.scalar(op.operands[0])
    if len(branches) == 1:
        with k.b.if_then(condition), k.scratch():
            _branch(k, branches[0], cells)
    else:
        with k.b.if_else(condition) as (then, otherwise):
            with then, k.scratch():
                _branch(k, branches[0], cells)
            with otherwise, k.scratch():
                _branch(k, branches[1], cells)
    for result, cell in zip(op.results, cells, strict=True):
        k.bind(result, cell.read(k))


def _branch(k: Kernel, region: Any, cells: Sequence[Cell]) -> None:
    outside = dict(k.pending)
    k.block_ops(region.blocks[0])
    _write(k, cells, [k.env[v] for v in region.blocks[0].last_op.operands])
    k.pending = {v: n for v, n in k.pending.items() if v in outside}


# scf.while


@handles("scf.while")
def while_loop(k: Kernel, op: Any) -> None:
    before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
    _settle(k, op)
    entering = [_cell_for(k, a.type) for a in before.args]
    passing = [_cell_for(k, a.type) for a in after.args]
    _write(k, entering, [k.env[v] for v in op.operands])
    head, body, done = (k.fn.append_basic_block(n) for n in ("while", "while.body", "while.end"))
    wait = spins.wait_of(k, op)
    k.b.branch(head)
    k.b.position_at_end(head)
    with k.scratch():
        _enter(k, before, entering)
        test = before.last_op
        _write(k, passing, [k.env[v] for v in list(test.operands)[1:]])
        k.b.cbranch(k.scalar(test.operands[0]), body, done)
    k.b.position_at_end(body)
    if wait is not None:
        # Only if the loop goes on: what it sees now is what it waits to see changed.
        wait.relax(k)
    with k.scratch():
        _enter(k, after, passing)
        _write(k, entering, [k.env[v] for v in after.last_op.operands])
    k.b.branch(head)
    k.b.position_at_end(done)
    for result, cell in zip(op.results, passing, strict=True):
        k.bind(result, cell.read(k))


def _enter(k: Kernel, block: Any, cells: Sequence[Cell]) -> None:
    for arg, cell in zip(block.args, cells, strict=True):
        k.bind(arg, cell.read(k))
    k.block_ops(block)


# Functions


@dataclass
class Return:
    """Where a call's results go, and where it continues."""

    cells: list[Cell]
    done: ir.Block


def function_body(k: Kernel, function: Any, ret: Return | None) -> None:
    """Emit a function's blocks. Without `ret` it is the kernel itself."""
    blocks = list(function.body.blocks)
    targets = {block: k.fn.append_basic_block("bb") for block in blocks[1:]}
    cells = {block: [_cell_for(k, a.type) for a in block.args] for block in blocks[1:]}
    outer, k.flow = k.flow, Flow(targets, cells, ret)
    for i, block in enumerate(blocks):
        if i:
            k.b.position_at_end(targets[block])
            for arg, cell in zip(block.args, cells[block], strict=True):
                k.bind(arg, cell.read(k))
        k.block_ops(block)
    k.flow = outer


def run_region(k: Kernel, region: Any, arguments: Sequence[Value]) -> list[Value]:
    """Emit a region of scalar operations, with what control flow it has; returns what it ends with."""
    block = region.blocks[0]
    for op in region.walk():
        for value in op.results:
            k.left.pop(value, None)
    for arg, value in zip(block.args, arguments, strict=True):
        k.bind(arg, value)
    k.block_ops(block)
    return [k.scalar(v) for v in block.last_op.operands]


@handles("tt.return")
def return_op(k: Kernel, op: Any) -> None:
    assert k.flow is not None
    ret: Return | None = k.flow.ret
    if ret is None:
        k.b.branch(k.following)
        return
    _write(k, ret.cells, [k.env[v] for v in op.operands])
    k.b.branch(ret.done)


@handles("tt.call")
def call_op(k: Kernel, op: Any) -> None:
    """A call of a function that Triton did not inline: its body, emitted here."""
    callee = k.functions[get(op, "callee").root_reference.data]
    ret = Return([_cell_for(k, r.type) for r in op.results], k.fn.append_basic_block("call.end"))
    for inner in callee.walk():
        for value in inner.results:
            k.left.pop(value, None)
        for block in (b for region in inner.regions for b in region.blocks):
            for value in block.args:
                k.left.pop(value, None)
    k.uses.once |= uses.Uses(callee).once
    for arg, operand in zip(callee.body.blocks[0].args, op.operands, strict=True):
        k.bind(arg, k.env[operand])
    function_body(k, callee, ret)
    k.b.position_at_end(ret.done)
    for result, cell in zip(op.results, ret.cells, strict=True):
        k.bind(result, cell.read(k))


@handles("cf.br")
def branch(k: Kernel, op: Any) -> None:
    _flush_all(k)
    _jump(k, op.successors[0], list(op.operands))


@handles("cf.cond_br")
def cond_branch(k: Kernel, op: Any) -> None:
    _flush_all(k)
    condition = k.scalar(op.operands[0])
    sizes = [len(s.args) for s in op.successors]
    rest = list(op.operands)[1:]
    then, otherwise = k.fn.append_basic_block("then"), k.fn.append_basic_block("else")
    k.b.cbranch(condition, then, otherwise)
    k.b.position_at_end(then)
    _jump(k, op.successors[0], rest[: sizes[0]])
    k.b.position_at_end(otherwise)
    _jump(k, op.successors[1], rest[sizes[0] :])


def _jump(k: Kernel, block: Any, values: Sequence[Any]) -> None:
    assert k.flow is not None
    _write(k, k.flow.cells[block], [k.env[v] for v in values])
    k.b.branch(k.flow.blocks[block])


def _flush_all(k: Kernel) -> None:
    for value in [v for v in k.pending if k.remaining(v) > 0]:
        k.env[value] = materialise(k, k.pending.pop(value))
