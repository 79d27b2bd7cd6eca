# SPDX-License-Identifier: MIT
"""`convert-triton-distributed-to-nvshmem`: `distributed` ops become what Triton's NVIDIA back end compiles.

Calls of NVSHMEM's functions, inline PTX (`templates.py`) and plain TTIR, for Triton 3.6 to 3.9. Four rules, each of
which decides between a right and a wrong, or a fast and a slow kernel:

- Pointers cross a call as i64; otherwise the call is never inlined. Only our own wrappers take them as they are.
- What depends on a wait depends on its token through an addition of zero whose divisibility is known, so that loads
  stay behind the wait and stay 128 bits wide.
- A wait is never pure. Inside a loop it stands in an `scf.if` with a condition that no pass can see through: the
  software pipeliner of Triton 3.6 to 3.8 can predicate that, and nothing else.
- A function for one thread, a warp or a block is called by just that, through a wrapper (`symbols.py`), unless the
  kernel itself chooses among its threads (`divergence.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, ModuleOp, TensorType, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from triton_dist.backends.cuda import symbols, templates
from triton_dist.backends.cuda.divergence import Divergence
from triton_dist.backends.cuda.templates import Asm
from triton_dist.errors import UnsupportedOpError
from triton_dist.ir.dialects import arith, scf, tt
from triton_dist.ir.dialects import distributed as d
from triton_dist.ir.dialects._syntax import int_attr, keyword_of, string_attr
from triton_dist.ir.dialects.gpu import BarrierOp
from triton_dist.ir.locations import location
from triton_dist.ir.seen import made

ZERO_HINT = 1 << 30
_I1 = IntegerType(1)
_NE = 1
_GLOBAL = int_attr(1)
"""The address space of a plain pointer."""


@dataclass(frozen=True)
class ConvertTritonDistributedToNvshmem(ModulePass):
    """Valid TTIR with `distributed` ops in, valid TTIR without any out."""

    name = "convert-triton-distributed-to-nvshmem"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in _functions(op):
            _Function(function).convert()


def _functions(op: Operation) -> Iterator[tt.FuncOp]:
    """The functions of a module, or of modules in it; not looked for in functions."""
    for inner in [inner for region in op.regions for block in region.blocks for inner in block.ops]:
        if isinstance(inner, tt.FuncOp):
            yield inner
        else:
            yield from _functions(inner)


class _Function:
    """The conversion of one function."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.operations = list(function.walk())
        self.divergence = Divergence(function, self.operations)
        self._true: SSAValue | None = None

    def convert(self) -> None:
        # No greedy driver: it erases what it finds unused, and an unconsumed wait only reads.
        for op in self.operations:
            if (make := _CONVERSIONS.get(type(op))) is not None:
                place = _Place(self, op)
                values = make(place, op)
                Rewriter.replace_op(op, place.ops, list(values))

    def opaque_true(self) -> SSAValue:
        """A condition that is true, made once at the top of the function."""
        if self._true is None:
            block = self.function.regions[0].blocks[0]
            first = block.first_op
            assert first is not None
            top = _Place(self, self.function)
            one = top.asm(templates.ONE, (), i32)
            self._true = top.op(arith.CmpiOp, (one, top.constant(0)), _I1, properties={"predicate": int_attr(_NE, 64)})
            block.insert_ops_before(top.ops, first)
        return self._true


class _Place:
    """Collects the new ops that take the place of an old one."""

    def __init__(self, function: _Function, old: Operation) -> None:
        self.function, self.old = function, old
        self.ops: list[Operation] = []

    # Emitting

    def op(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: dict[str, Attribute] | None = None,
        attributes: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        op = made(kind, operands, (result,), properties or {}, attributes or {}, self.old.location)
        self.ops.append(op)
        return op.results[0]

    def constant(self, value: int, type: IntegerType = i32) -> SSAValue:
        return self.op(arith.ConstantOp, (), type, {"value": int_attr(value, type.width.data)})

    def asm(self, asm: Asm, operands: Sequence[SSAValue], result: Attribute, divisibility: int = 0) -> SSAValue:
        properties: dict[str, Attribute] = {
            "asm_string": string_attr(asm.text),
            "constraints": string_attr(asm.constraints),
            "pure": int_attr(int(asm.pure), 1),
            "packed_element": int_attr(1),
        }
        return self.op(tt.ElementwiseInlineAsmOp, operands, result, properties, _hint(divisibility))

    def call(
        self,
        symbol: str,
        operands: Sequence[SSAValue],
        result: Attribute,
        pure: bool,
        library: tuple[str, str] = (symbols.VENDOR, ""),
        divisibility: int = 0,
    ) -> SSAValue:
        properties: dict[str, Attribute] = {
            "libname": string_attr(library[0]),
            "libpath": string_attr(library[1]),
            "symbol": string_attr(symbol),
            "pure": int_attr(int(pure), 1),
        }
        return self.op(tt.ExternElementwiseOp, operands, result, properties, _hint(divisibility))

    def barrier(self) -> None:
        self.ops.append(BarrierOp.create(location=self.old.location))

    def address(self, pointer: SSAValue) -> SSAValue:
        """A pointer as i64; anything else as it is."""
        if not isinstance(pointer.type, tt.PointerType):
            return pointer
        return self.op(tt.PtrToIntOp, (pointer,), i64)

    def for_wrapper(self, pointer: SSAValue) -> SSAValue:
        """A pointer as our own wrappers take it: as it is, if it is into global memory."""
        type = pointer.type
        plain = isinstance(type, tt.PointerType) and type.address_space == _GLOBAL
        return pointer if plain else self.address(pointer)

    def guarded(self, result: Attribute, body: Callable[[_Place], SSAValue]) -> SSAValue:
        """`body`, in a form that the software pipeliner can predicate if it stands in a loop."""
        if not self.in_loop():
            return body(self)
        inner, other = _Place(self.function, self.old), _Place(self.function, self.old)
        inner.close(body(inner))
        other.close(other.zero(result))
        regions = [Region(Block(place.ops)) for place in (inner, other)]
        chosen = scf.IfOp.create(
            operands=(self.function.opaque_true(),),
            result_types=(result,),
            regions=regions,
            location=self.old.location,
        )
        self.ops.append(chosen)
        return chosen.results[0]

    def close(self, value: SSAValue) -> None:
        self.ops.append(scf.YieldOp.create(operands=(value,), location=self.old.location))

    def zero(self, type: Attribute) -> SSAValue:
        if isinstance(type, IntegerType):
            return self.constant(0, type)
        return self.op(arith.ConstantOp, (), type, {"value": FloatAttr(0.0, type)})  # pyright: ignore

    # Looking around

    def in_loop(self) -> bool:
        parent = self.old.parent_op()
        while parent is not None and parent is not self.function.function:
            if parent.name == "scf.for":
                return True
            parent = parent.parent_op()
        return False

    def invariant_loop(self, values: Sequence[SSAValue]) -> Operation | None:
        """The outermost loop around the op in which none of the values is made."""
        found, parent = None, self.old.parent_op()
        while parent is not None and parent is not self.function.function:
            if any(_is_made_in(parent, value) for value in values):
                break
            if parent.name in ("scf.for", "scf.while"):
                found = parent
            parent = parent.parent_op()
        return found

    def divergent(self) -> bool:
        return self.function.divergence.reaches(self.old)

    def unsupported(self, detail: str) -> UnsupportedOpError:
        where = location(self.old) or "unknown location"
        return UnsupportedOpError(where=where, backend="cuda", op=self.old.name, detail=detail)

    def width(self, type: Attribute | None) -> int:
        """Of a signal that GPUs can poll and update."""
        if isinstance(type, IntegerType) and type.width.data in templates.WIDTHS:
            return type.width.data
        raise self.unsupported(f"the signal is of type {type}; it can be i32, i64")


def _hint(divisibility: int) -> dict[str, Attribute]:
    return {"tt.divisibility": int_attr(divisibility)} if divisibility else {}


def _is_made_in(outer: Operation, value: SSAValue) -> bool:
    owner = value.owner
    inside = owner.parent_op() if isinstance(owner, Block) else owner
    while inside is not None and inside is not outer:
        inside = inside.parent_op()
    return inside is not None


# The seven ops. Each returns what takes the place of the op's results.


def _get_rank(at: _Place, op: d.GetRankOp) -> Sequence[SSAValue]:
    return (at.call("nvshmem_my_pe", (), i32, pure=True),)


def _get_num_ranks(at: _Place, op: d.GetNumRanksOp) -> Sequence[SSAValue]:
    return (at.call("nvshmem_n_pes", (), i32, pure=True),)


def _symm_at(at: _Place, op: d.SymmAtOp) -> Sequence[SSAValue]:
    return (_counterpart(at, op.symmAddr, "nvshmem_ptr", (op.symmAddr, op.rank)),)


def _counterpart(at: _Place, pointer: SSAValue, symbol: str, operands: Sequence[SSAValue]) -> SSAValue:
    """Another address of the same symmetric memory: the pointer plus what lies between them.

    Heaps are aligned alike, so the distance is a multiple of a page. Said so, Triton's own analysis knows of the
    result what it knows of the pointer. Null stays null.
    """
    size = _size_of(d.pointee(pointer.type))
    asked = symbols.WrapperName(symbols.BETWEEN[size], symbol).text
    handed = [at.for_wrapper(value) if value is pointer else value for value in operands]
    elements = at.call(asked, handed, i64, True, (symbols.WRAPPERS, ""), divisibility=templates.PAGE // size)
    return at.op(tt.AddPtrOp, (pointer, elements), pointer.type)


def _size_of(type: Attribute | None) -> int:
    """Bytes of an element in memory."""
    if isinstance(type, tt.PointerType):
        return 8
    bits = getattr(type, "bitwidth", None) or getattr(getattr(type, "width", None), "data", None)
    if bits is None:
        # The 8-bit floats of MLIR are parameterless types.
        bits = 8
    return max(1, int(bits) // 8)


def _wait(at: _Place, op: d.WaitOp) -> Sequence[SSAValue]:
    if isinstance(op.barrierPtr.type, TensorType) or isinstance(op.numBarriers.type, TensorType):
        raise at.unsupported("it takes a scalar pointer and a number of barriers, not tensors")
    width = at.width(d.pointee(op.barrierPtr.type))
    scope = keyword_of(tt.MEM_SYNC_SCOPES, op.scope) or "sys"
    # PTX loads are relaxed or acquire; release means nothing for a load, so acq_rel is acquire.
    semantic = "relaxed" if keyword_of(tt.MEM_SEMANTICS, op.semantic) == "relaxed" else "acquire"
    if _is_one(op.numBarriers):
        asm = templates.wait_one(width, scope, semantic)
    else:
        asm = templates.wait(width, scope, semantic, warp=not at.divergent())
    operands = (at.address(op.barrierPtr), op.numBarriers, op.waitValue)
    return (at.guarded(i32, lambda inside: inside.asm(asm, operands, i32, ZERO_HINT)),)


def _is_one(value: SSAValue) -> bool:
    """Whether it is the constant 1: the most usual wait, and the one that a round trip is made of."""
    constant = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(constant, IntegerAttr) and constant.value.data == 1


def _consume_token(at: _Place, op: d.ConsumeTokenOp) -> Sequence[SSAValue]:
    """Pointers and integers: plus a zero that depends on the token. Other values stand where they are loaded."""
    type = op.input.type
    element = type.get_element_type() if isinstance(type, TensorType) else type
    pointer = isinstance(element, tt.PointerType)
    if not pointer and not (isinstance(type, IntegerType) and type.width.data >= 8):
        return (op.input,)
    asm = templates.PROXY_FENCE if _is_descriptor_offset(op) else templates.ZERO_OF
    if asm.pure:
        zero = at.asm(asm, (op.token,), i32, ZERO_HINT)
    else:
        zero = at.guarded(i32, lambda inside: inside.asm(asm, (op.token,), i32, ZERO_HINT))
    if isinstance(type, IntegerType):
        return (at.op(arith.AddiOp, (op.input, _resized(at, zero, type)), type),)
    if isinstance(type, TensorType):
        zero = at.op(tt.SplatOp, (zero,), TensorType(i32, type.get_shape(), type.encoding))
    return (at.op(tt.AddPtrOp, (op.input, zero), type),)


def _is_descriptor_offset(op: d.ConsumeTokenOp) -> bool:
    """The front end puts the token of a tensor descriptor into an offset of its loads."""
    return any(use.operation.name in ("tt.descriptor_load", "tt.descriptor_gather") for use in op.result.uses)


def _resized(at: _Place, value: SSAValue, type: IntegerType) -> SSAValue:
    if type == i32:
        return value
    return at.op(arith.ExtSIOp if type.width.data > 32 else arith.TruncIOp, (value,), type)


def _notify(at: _Place, op: d.NotifyOp) -> Sequence[SSAValue]:
    width = at.width(d.pointee(op.sigAddr.type))
    action = (keyword_of(d.SIGNAL_OPS, op.sigOp) or "set").lower()
    scope = keyword_of(d.COMM_SCOPES, op.commScope)
    if scope == "INTER_NODE" and width == 64:
        _notify_anywhere(at, op, action)
        return ()
    value = op.signalVal if width == 64 else _resized(at, op.signalVal, i32)
    address = at.address(op.sigAddr) if scope == "GPU" else _peer_signal(at, op)
    guard = "each" if at.divergent() else "barrier" if at.in_loop() else "thread0"
    if guard == "thread0":
        at.barrier()
    asm = templates.notify(width, "gpu" if scope == "GPU" else "sys", action, guard)
    at.guarded(i32, lambda inside: inside.asm(asm, (address, value), i32))
    return ()


def _peer_signal(at: _Place, op: d.NotifyOp) -> SSAValue:
    """The signal's address on the peer; looked up before the loop if it is always the same.

    The lookup reads memory, and a wait empties the L1 cache: in a loop of waits it would cost a trip to the L2. Triton
    moves calls out of loops, but not out of an `if` in a loop: there they may never be reached, with a rank that is
    none. So that one is brought into range.
    """
    loop = at.invariant_loop((op.sigAddr, op.rank))
    if loop is None:
        return at.call("nvshmem_ptr", (at.address(op.sigAddr), op.rank), i64, pure=True)
    before = _Place(at.function, op)
    pes = before.call("nvshmem_n_pes", (), i32, pure=True)
    last = before.op(arith.SubiOp, (pes, before.constant(1)), i32)
    rank = before.op(arith.MinUIOp, (op.rank, last), i32)
    address = before.call("nvshmem_ptr", (before.address(op.sigAddr), rank), i64, pure=True)
    block = loop.parent_block()
    assert block is not None
    block.insert_ops_before(before.ops, loop)
    return address


def _notify_anywhere(at: _Place, op: d.NotifyOp, action: str) -> None:
    """Through a wrapper that stores to a peer it can reach, and asks NVSHMEM to signal any other."""
    mode = "each" if at.divergent() else "one"
    if at.invariant_loop((op.sigAddr, op.rank)) is None:
        wrapper = symbols.WrapperName(mode, symbols.NOTIFY[action])
        operands = (at.for_wrapper(op.sigAddr), op.signalVal, op.rank)
    else:
        wrapper = symbols.WrapperName(mode, symbols.NOTIFY_THERE[action])
        operands = (at.address(op.sigAddr), _peer_signal(at, op), op.signalVal, op.rank)
    at.guarded(i32, lambda inside: inside.call(wrapper.text, operands, i32, False, (symbols.WRAPPERS, "")))


def _extern_call(at: _Place, op: d.ExternCallOp) -> Sequence[SSAValue]:
    if len(op.results) > 1:
        raise at.unsupported(f"{op.symbol.data} has {len(op.results)} results; one at most")
    symbol, library = op.symbol.data, (op.libname.data, op.libpath.data)
    pure = bool(op.pure.value.data)
    result = op.results[0].type if op.results else i32
    if library[0] == symbols.VENDOR:
        if symbol in symbols.POINTERS and isinstance(result, tt.PointerType):
            return (_pointer_call(at, op, symbol),)
        if symbol not in symbols.DIRECT:
            wrapper = symbols.WrapperName(symbols.mode_of(symbol, at.divergent()), symbol)
            symbol, library = wrapper.text, (symbols.WRAPPERS, "")
    value = _any_call(at, op, symbol, library, result, pure)
    return (value,) if op.results else ()


def _pointer_call(at: _Place, op: d.ExternCallOp, symbol: str) -> SSAValue:
    pointer = next(value for value in op.srcs if isinstance(value.type, tt.PointerType))
    return _counterpart(at, pointer, symbol, op.srcs)


def _any_call(
    at: _Place, op: d.ExternCallOp, symbol: str, library: tuple[str, str], result: Attribute, pure: bool
) -> SSAValue:
    operands = [at.address(value) for value in op.srcs]
    pointer = isinstance(result, tt.PointerType)
    returned: Attribute = i64 if pointer else result

    def make(inside: _Place) -> SSAValue:
        return inside.call(symbol, operands, returned, pure, library)

    can_guard = not pure and not isinstance(returned, TensorType)
    value = at.guarded(returned, make) if can_guard else make(at)
    return at.op(tt.IntToPtrOp, (value,), result) if pointer else value


_CONVERSIONS: dict[type[Operation], Callable[..., Sequence[SSAValue]]] = {
    d.GetRankOp: _get_rank,
    d.GetNumRanksOp: _get_num_ranks,
    d.SymmAtOp: _symm_at,
    d.WaitOp: _wait,
    d.NotifyOp: _notify,
    d.ConsumeTokenOp: _consume_token,
    d.ExternCallOp: _extern_call,
}
