# SPDX-License-Identifier: MIT
"""From a TTIR module to LLVM IR: one pass over the operations in program order.

Scalars become LLVM values at once. Tensors stay lazy (`tensor.Node`) until an operation that needs them in memory or
writes them out. Before anything with a side effect, loads that later operations still need are carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import llvmlite.ir as ir

from ....errors import CompilerFault, TritonDistError, UnsupportedOpError
from ..native.abi import offset
from ..native.target import Target
from . import uses
from .attrs import integer
from .bounds import Guard
from .build import Builder, Value, const, i64, lanes_of, narrow_vectors
from .domain import Index, Loop, nest, plan
from .elementwise import OPS, Ctx
from .ltypes import I1, I32, I64, PTR, Elem, elem_of, named, shape_of
from .memory import materialise
from .tensor import Buffer, Node, Table, Term, buffer_node, row_major

ALIGN = 64
DEEPEST = 100
"""A lazy tensor is evaluated by recursion: one that is deeper is computed into memory."""
Handler = Callable[["Kernel", Any], None]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register the emitter of operations."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


PLAIN = frozenset({"arith.constant", "tt.reduce.return", "tt.scan.return"})
"""Beside the elementwise operations, what a combine region may hold to be applied to vectors."""


@dataclass
class Flow:
    """The function whose blocks are being emitted: LLVM blocks and argument cells of its blocks, and where it
    returns to.
    """

    blocks: dict[Any, ir.Block]
    cells: dict[Any, list[Any]]
    ret: Any


@dataclass
class Code:
    """A kernel as LLVM IR text, and what the launcher must know of it."""

    llvm_ir: str
    arena_size: int
    blocking: bool
    """Some program may wait for another one (or another PE)."""
    sites: list[str] = field(default_factory=list)
    roots: list[int | None] = field(default_factory=list)
    """The argument of the kernel that the access at each site goes by."""
    distributed: bool = False
    """It asks which PE it runs on, or reaches others."""
    weight: int | None = None
    """Elements of a program's tensors, all operations together; None if that is not known beforehand."""


class Kernel:
    """Emits one kernel function."""

    def __init__(
        self, function: Any, target: Target, functions: dict[str, Any], contract: bool = True, checked: bool = False
    ) -> None:
        self.target, self.functions, self.checked = target, functions, checked
        self.contract = ("contract",) if contract else ()
        self.module = ir.Module("kernel")
        self.module.triple = target.triple
        self.env: dict[Any, Node | Value] = {}
        self.left: dict[Any, int] = {}
        self.pending: dict[Any, Node] = {}
        self.sites: list[str] = []
        self.roots: list[int | None] = []
        """For each site, the kernel's argument that its access goes by, if that is known."""
        self.blocking = self.distributed = False
        self.carried: dict[Any, Buffer] = {}
        """Loop-carried tensors: block argument -> the buffer it lives in."""
        self.flow: Flow | None = None
        self.block: Any = None
        """The block whose operations are being emitted."""
        self.early: set[Any] = set()
        self.read_before: set[Node] = set()
        """Loads that a loop has carried out, and that may be carried out again."""
        self.rounds: dict[Any, list[tuple[Value, Callable[[], Value | None]]]] = {}
        """For the body of a loop, and for the kernel: what changes by addition from round to round (or from program to
        program), and what it is in the next.
        """
        self._arena_at = self._arena_peak = 0
        self.uses = uses.Uses(function)
        self.function = function
        signature = ir.FunctionType(I32, [PTR, I32, I32, I32, PTR, PTR, I32])
        self.fn = ir.Function(self.module, signature, "kernel")
        self.fn.attributes.add("nounwind")
        self._start()

    def _start(self) -> None:
        self.entry = self.fn.append_basic_block("entry")
        self.exit = self.fn.append_basic_block("abort")
        self.b = Builder(self.entry)
        self.streams = uses.streams(self.function, self.uses.cost)
        self.b.lookup = 8 if self.target.vector_bits >= 256 else 0
        if self.target.vector_bits == 512:
            # What memory decides is faster in halves (measured: vector add 13 %, a sum of rows 9 %).
            light = uses.light(self.function, self.uses.cost)
            self.b.avx512_lanes = self.b.lookup = 8 if light else 16
            if light:
                narrow_vectors(self.fn, 256)
        self.args_ptr, x, y, z, self.launch, self.arena, count = self.fn.args
        for arg in (self.args_ptr, self.launch, self.arena):
            arg.add_attribute("noalias")
        self.b.position_at_end(self.exit)
        self.b.ret(const(I32, 1))
        self.pid = [self._programs(x, count), y, z]

    def _programs(self, first: Value, count: Value) -> Value:
        """Begin the loop over the programs asked for; returns the x of the one that runs."""
        b, body = self.b, self.fn.append_basic_block("body")
        self.following, done = self.fn.append_basic_block("following"), self.fn.append_basic_block("done")
        b.position_at_end(self.entry)
        end = b.add(first, count)
        b.branch(body)
        b.position_at_end(body)
        x = b.phi(I32, "x")
        b.position_at_end(self.following)
        after = b.add(x, const(I32, 1))
        b.cbranch(b.icmp_signed("==", after, end), done, body)
        x.add_incoming(first, self.entry)
        x.add_incoming(after, self.following)
        b.position_at_end(done)
        b.ret(const(I32, 0))
        b.position_at_end(body)
        return x

    # What operations become

    def bind(self, result: Any, value: Node | Value) -> None:
        """Give an SSA value its meaning; materialise it now if the analysis says so."""
        if isinstance(value, Node):
            if not isinstance(value, Buffer) and value.affine is None and self._computed_now(result, value):
                value = materialise(self, value)
            if value.reads:
                self.pending[result] = value
        self.env[result] = value

    def _computed_now(self, result: Any, value: Node) -> bool:
        return (result in self.uses.once and not self.uses.rides(result)) or value.depth > DEEPEST

    def node(self, value: Any) -> Node:
        found = self.env[value]
        assert isinstance(found, Node), f"{value} is a scalar"
        return found

    def scalar(self, value: Any) -> Value:
        found = self.env[value]
        assert not isinstance(found, Node), f"{value} is a tensor"
        return found

    def optional(self, op: Any, index: int) -> Any:
        return self.env[op.operands[index]] if index < len(op.operands) else None

    def axis(self, op: Any, more: int = 0) -> int:
        """The axis of the op's first operand that it works along; `more`: places that are added."""
        found, rank = integer(op, "axis"), len(shape_of(op.operands[0].type) or ()) + more
        if not 0 <= found < rank:
            raise self.unsupported(op, f"axis {found} of {rank} dimensions")
        return found

    def unsupported(self, op: Any, detail: str) -> UnsupportedOpError:
        return UnsupportedOpError(where=self.where(op), backend="cpu", op=op.name, detail=detail)

    def where(self, op: Any) -> str:
        from ....ir import location

        found = location(op)
        return str(found) if found else "<unknown location>"

    def site(self, op: Any, root: int | None = None) -> ir.Constant:
        """The index of the op's source line (and of the argument `root`) in the kernel's table."""
        return self.site_of(self.where(op), root)

    def site_of(self, where: str, root: int | None = None) -> ir.Constant:
        known = list(zip(self.sites, self.roots, strict=True))
        if (where, root) in known:
            return const(I32, known.index((where, root)))
        self.sites.append(where)
        self.roots.append(root)
        return const(I32, len(known))

    def guard(self, op: Any) -> Guard | None:
        """In the bounds-checked mode, what checks the addresses of a memory operation."""
        if not self.checked:
            return None
        from .extern import program
        from .origins import argument_of

        root = argument_of(op.operands[0], self.function, self.functions)
        return Guard(self.launch, program(self), self.site(op, root))

    # Memory of a program

    def global_constant(self, value: ir.Constant, name: str) -> Value:
        """Read-only data of the module; returns its address."""
        found: Any = ir.GlobalVariable(self.module, value.type, self.module.get_unique_name(name))
        found.initializer, found.global_constant, found.linkage = value, True, "private"
        return found

    def local(self, type_: ir.Type, name: str) -> Value:
        """A stack cell; LLVM promotes it to a register."""
        with self.b.at_end_of(self.entry):
            return self.b.alloca(type_, name=name)

    def allocate(
        self, shape: Sequence[int], elem: Elem, order: Sequence[int] | None = None, padded: bool = False
    ) -> Buffer:
        """A tensor in the arena; `order` lists its dimensions from slowest to fastest.

        `padded` lengthens long rows by a cache line: rows a power of two apart would share a few sets of the cache.
        """
        order = range(len(shape)) if order is None else order
        extents = [shape[d] for d in order]
        if padded and len(shape) > 1 and extents[-1] * elem.size >= 4 * ALIGN:
            extents[-1] += ALIGN // elem.size
        steps = dict(zip(order, row_major(extents), strict=True))
        count = 1
        for n in extents:
            count *= n
        return buffer_node(shape, elem, self._bump(count * elem.size), [steps[d] for d in range(len(shape))])

    def _bump(self, size: int) -> Value:
        start = self._arena_at
        self._arena_at = (start + size + ALIGN - 1) // ALIGN * ALIGN
        self._arena_peak = max(self._arena_peak, self._arena_at)
        with self.b.at_end_of(self.entry):
            return self.b.gep(self.arena, [i64(start)], source_etype=ir.IntType(8))

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Memory allocated inside is free again afterwards."""
        mark = self._arena_at
        yield
        self._arena_at = mark

    def table(
        self, extent: int, axis: int, rank: int, have: Term, add: Value | None, nodes: Sequence[Node], size: int
    ) -> Table:
        """Byte offsets along one dimension of a pointer tensor, computed once."""
        b = self.b
        buffer = self.allocate((extent,), named("i64"))
        walk = plan((extent,), 8)
        loop = Loop(b)
        loop.hoists = [b.block]

        def body(chunk: Any) -> None:
            index = chunk.dims[0]
            total = self._table_entry(loop, index, extent, axis, rank, have, add, nodes, size, chunk.width)
            buffer.store(loop, chunk, total)

        nest(loop, walk, body)
        return Table(buffer, self._unit_step(buffer, extent, size), b.load(buffer.at(b, i64(0)), typ=I64))

    def _table_entry(
        self,
        loop: Loop,
        index: Index,
        extent: int,
        axis: int,
        rank: int,
        have: Term,
        add: Value | None,
        nodes: Sequence[Node],
        size: int,
        width: int,
    ) -> Value:
        from .domain import ZERO
        from .tensor import Affine, AffineNode

        b = loop.b
        where = loop.chunk([index if d == axis else ZERO for d in range(rank)], width)
        flat = loop.chunk((index,), width)
        wide = I64 if width == 1 else ir.VectorType(I64, width)
        total: Value = ir.Constant(wide, 0) if width == 1 else b.splat(i64(0), width)
        for node in nodes:
            value = loop.vector(node, where)
            value = value if value.type == wide else b.sext(value, wide)
            scale = i64(size) if width == 1 else b.splat(i64(size), width)
            total = b.add(total, b.mul(value, scale))
        if isinstance(have, Table):
            total = b.add(total, loop.vector(have.buffer, flat))
        linear = [t for t in (None if isinstance(have, Table) else have, add) if t is not None]
        for term in linear:
            node = AffineNode((extent,), named("i64"), Affine(i64(0), (term,)))
            total = b.add(total, loop.vector(node, flat))
        return total

    def _unit_step(self, buffer: Buffer, extent: int, size: int) -> Value:
        """Whether each entry is `size` bytes after the one before."""
        b = self.b
        cell = self.local(I1, "contiguous")
        b.store(const(I1, 1), cell)
        if extent == 1:
            return const(I1, 1)

        def check(iv: Value) -> None:
            this = b.load(buffer.at(b, iv), typ=I64)
            last = b.load(buffer.at(b, b.sub(iv, i64(1))), typ=I64)
            good = b.icmp_signed("==", b.sub(this, last), i64(size))
            b.store(b.and_(b.load(cell, typ=I1), good), cell)

        b.counted(i64(1), i64(extent), 1, check, "contiguous")
        return b.load(cell, typ=I1)

    # Regions of scalar operations (reduce, scan)

    def region(self, block: Any, values: Sequence[Value], elems: Sequence[Elem]) -> list[Value]:
        """Apply a combine region to scalars or vectors."""
        if any(op.name not in OPS and op.name not in PLAIN for op in block.ops):
            return self._lane_by_lane(block, values)
        env: dict[Any, Value] = dict(zip(block.args, values, strict=True))
        width = lanes_of(values[0])
        for op in block.ops:
            if op.name.endswith(".return"):
                return [self._lane(env, v, width) for v in op.operands]
            if op.name == "arith.constant":
                env[op.results[0]] = self.constant_scalar(op)
                continue
            ctx = Ctx(self.b, op, [elem_of(v.type) for v in op.operands], elem_of(op.results[0].type), self.contract)
            env[op.results[0]] = OPS[op.name](ctx, [self._lane(env, v, width) for v in op.operands])
        raise AssertionError("a region without terminator")

    def _lane(self, env: dict[Any, Value], value: Any, width: int | None) -> Value:
        found = env[value] if value in env else self.scalar(value)
        if width is not None and not isinstance(found.type, ir.VectorType):
            return self.b.splat(found, width)
        return found

    def _lane_by_lane(self, block: Any, values: Sequence[Value]) -> list[Value]:
        """A combine region with control flow or calls of its own: a loop over the lanes."""
        from .control import run_region

        b, width, region = self.b, lanes_of(values[0]), block.parent_region()
        if width is None:
            return run_region(self, region, values)
        cells = [self.local(value.type, "lanes") for value in values[: len(values) // 2]]

        def one(iv: Value) -> None:
            at = b.trunc(iv, I32)
            found = run_region(self, region, [b.extract_element(value, at) for value in values])
            for cell, value in zip(cells, found, strict=True):
                b.store(b.insert_element(b.load(cell, typ=cell.allocated_type), value, at), cell)

        b.counted(i64(0), i64(width), 1, one, "lane")
        return [b.load(cell, typ=cell.allocated_type) for cell in cells]

    def constant_scalar(self, op: Any) -> Value:
        from .simple import scalar_constant

        return scalar_constant(op)

    # Program order

    def flush(self, op: Any) -> None:
        """Carry out pending loads that are needed after this side effect (or inside its regions)."""
        del op
        for value in [v for v in self.pending if self.remaining(v) > 0]:
            self.env[value] = materialise(self, self.pending.pop(value))

    def remaining(self, value: Any) -> int:
        """Uses of a value by operations that have not been emitted yet."""
        left = self.left.get(value)
        return len(list(value.uses)) if left is None else left

    def block_ops(self, block: Any) -> None:
        """Emit a block's operations in order."""
        outer, self.block = self.block, block
        for op in block.ops:
            # A function that is called twice is emitted twice.
            for result in op.results:
                self.env.pop(result, None)
        for op in block.ops:
            if op in self.early:
                self.early.remove(op)
            else:
                self.op(op)
        self.block = outer

    def emit_early(self, ops: Sequence[Any]) -> None:
        """Emit operations of the current block before their turn."""
        for op in ops:
            self.op(op)
            self.early.add(op)

    def op(self, op: Any) -> None:
        handler = HANDLERS.get(op.name)
        if handler is None and op.name in OPS:
            from .simple import elementwise as handler
        if handler is None:
            raise self.unsupported(op, "the host engine does not know this operation yet")
        self.consume(op)
        if uses.has_effect(op):
            self.flush(op)
        self._emit(handler, op)
        if self.checked and op.name in TOUCHES:
            self.check_abort()

    def _emit(self, handler: Handler, op: Any) -> None:
        try:
            handler(self, op)
        except TritonDistError:
            raise
        except Exception as error:
            raise _fault(self.where(op), op.name, error) from error

    def consume(self, op: Any) -> None:
        """Count down the uses of what an op reads; values nobody reads any more need not be kept."""
        for value in op.operands:
            self.left[value] = self.remaining(value) - 1

    def check_abort(self) -> None:
        """Leave the kernel if the runtime has ended this launch."""
        b = self.b
        status = b.load(b.gep(self.launch, [i64(offset("status"))], source_etype=ir.IntType(8)), typ=I32, align=4)
        go = self.fn.append_basic_block("go")
        b.cbranch(b.icmp_signed("!=", status, const(I32, 0)), self.exit, go)
        b.position_at_end(go)

    def finish(self) -> Code:
        weight = None if self.blocking else uses.weight(self.function)
        return Code(str(self.module), self._arena_peak, self.blocking, self.sites, self.roots, self.distributed, weight)

    def accumulator(self, addend: Any, c: Node, compute: Elem) -> Buffer:
        """Where a dot accumulates: the loop-carried buffer its third operand comes from if nobody else reads
        that, else new memory.
        """
        from .dot import initialise

        reusable = self.reusable(addend, c)
        if reusable is not None and reusable.elem.name == compute.name:
            initialise(self, reusable, c)
            return reusable
        target = self.allocate(c.shape, compute, padded=True)
        initialise(self, target, c)
        return target

    def reusable(self, value: Any, node: Node) -> Buffer | None:
        """The loop-carried buffer under a chain of single-use elementwise operations."""
        chain = value
        while True:
            if len(list(chain.uses)) != 1:
                return None
            found = self.env.get(chain)
            if chain in self.carried:
                return self.carried[chain] if isinstance(found, Buffer) else None
            owner = chain.owner
            if getattr(owner, "name", "") not in CHAIN:
                return None
            below = [v for v in owner.operands if self._leads_to_carried(v)]
            if len(below) != 1:
                return None
            chain = below[0]

    def _leads_to_carried(self, value: Any) -> bool:
        stack, seen = [value], set[Any]()
        while stack:
            value = stack.pop()
            if value in self.carried:
                return True
            if value not in seen and getattr(value.owner, "name", "") in CHAIN:
                stack.extend(value.owner.operands)
            seen.add(value)
        return False


CHAIN = frozenset({"arith.mulf", "arith.addf", "arith.divf", "arith.subf"})
"""What may stand between a loop-carried accumulator and the dot that adds to it."""
TOUCHES = frozenset({
    "tt.load", "tt.store", "tt.reduce", "tt.scan", "tt.dot", "tt.dot_scaled", "tt.gather", "tt.histogram", "tt.print",
    "tt.map_elementwise", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "tt.atomic_poll",
})  # fmt: skip
"""Operations after which a checked kernel looks whether an address was bad."""


def _fault(where: str, what: str, error: Exception) -> CompilerFault:
    cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return CompilerFault(where=where, what=what, cause=cause)


def compile_module(module: Any, target: Target, contract: bool = True, checked: bool = False) -> Code:
    """LLVM IR for the module's public function; `checked`: with every address looked at (see `bounds`)."""
    try:
        return _compile(module, target, contract, checked)
    except TritonDistError:
        raise
    except Exception as error:
        raise _fault("a kernel", "its module", error) from error


def _compile(module: Any, target: Target, contract: bool, checked: bool) -> Code:
    from . import control, extern, report, scaled, shapes, simple

    del control, extern, report, scaled, shapes, simple
    _import_emitters_of_the_simulated_back_end()
    functions = {op.sym_name.data: op for op in module.walk() if op.name == "tt.func"}
    public = [f for f in functions.values() if _visibility(f) != "private"]
    kernel = Kernel(public[0], target, functions, contract, checked)
    from .control import function_body

    for i, arg in enumerate(public[0].body.blocks[0].args):
        kernel.env[arg] = _argument(kernel, i, elem_of(arg.type), shape_of(arg.type))
    x = kernel.pid[0]
    kernel.rounds[public[0].body.blocks[0]] = [(x, lambda: kernel.b.add(x, const(I32, 1)))]
    function_body(kernel, public[0], None)
    return kernel.finish()


def _import_emitters_of_the_simulated_back_end() -> None:
    """Its host library may name a module with handlers of the ops that its conversion makes."""
    from ..native.library import simulated

    if emitters := getattr(simulated(), "EMITTERS", None):
        import_module(emitters)


def _visibility(function: Any) -> str:
    attr = function.properties.get("sym_visibility") or function.attributes.get("sym_visibility")
    return attr.data if attr is not None else "public"


def _argument(k: Kernel, index: int, elem: Elem, shape: tuple[int, ...] | None) -> Value:
    assert shape is None, "a kernel's arguments are scalars"
    with k.b.at_end_of(k.entry):
        slot = k.b.gep(k.args_ptr, [i64(8 * index)], source_etype=ir.IntType(8))
        value = k.b.load(slot, typ=elem.mem, align=8)
        return k.b.trunc(value, elem.reg) if elem.bits == 1 else value
