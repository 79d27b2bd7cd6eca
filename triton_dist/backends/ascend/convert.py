# SPDX-License-Identifier: MIT
"""`convert-triton-distributed-to-hivm`: `distributed` ops become `hivm.hir.custom`, calls of the template library.

Everything else in the module stays for the single-device compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, StringAttr, TensorType, UnitAttr, i32, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.traits import get_effects

from triton_dist import knobs
from triton_dist.backends.ascend import symbols
from triton_dist.errors import UnsupportedOpError
from triton_dist.ir.dialects import distributed as d
from triton_dist.ir.dialects._syntax import int_attr, keyword_of
from triton_dist.ir.dialects.annotation import WRITES, MarkOp
from triton_dist.ir.dialects.arith import ConstantOp, TruncIOp
from triton_dist.ir.dialects.hivm import (
    CustomOp,
    GetSubBlockIdxOp,
    GetSubBlockNumOp,
    PipeAttr,
    TCoreTypeAttr,
    VFModeAttr,
    index_array,
)
from triton_dist.ir.dialects.tensor import EmptyOp
from triton_dist.ir.dialects.tt import FuncOp, PointerType
from triton_dist.ir.locations import location

DOTS = frozenset({"tt.dot", "tt.dot_scaled"})
_WITHOUT_OPERANDS = frozenset({"aclshmem_my_pe", "aclshmem_n_pes"})

_NATIVE = {op.name: op for op in (GetSubBlockIdxOp, GetSubBlockNumOp)}
"""Symbols that stand for an operation of the compiler's own."""

DotFree = Literal["vector", "both", "table"]


@dataclass(frozen=True)
class ConvertTritonDistributedToHivm(ModulePass):
    """Valid TTIR with `distributed` ops in, valid TTIR with custom ops out; what the library lacks is an error.

    An unconsumed wait stays, though it only reads: the driver erases nothing.
    """

    name = "convert-triton-distributed-to-hivm"

    dot_free_cores: DotFree | None = None
    """The cores in a kernel without a dot; None: what TRITON_DIST_DOT_FREE_CORES says, whose default is "vector".
    "vector": all operations on the vector core. "both": all on both. "table": barrier_all on both, the others on the
    vector core, as the table of prefixes says; the compiler of ascendnpu-ir 1.2.0 crashes on that when an operation of
    the kernel has a result."""
    pattern_benefit_prioritize_over_llvm_conversions: int = 10
    """Taken for the sake of those who pass it; with one set of patterns there is nothing to prefer."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        exist_dot = any(inner.name in DOTS for inner in op.walk())
        cores = Cores(exist_dot, self.dot_free_cores or cast(DotFree, knobs.dot_free_cores))
        # Without the driver's dead code elimination, which takes a wait that nobody consumes for dead.
        patterns = GreedyRewritePatternApplier([pattern(cores) for pattern in PATTERNS], dce_enabled=False)
        PatternRewriteWalker(patterns, apply_recursively=False).rewrite_module(op)


@dataclass(frozen=True)
class Cores:
    """On which cores the operations of one module run."""

    exist_dot: bool
    dot_free: DotFree = "vector"

    def of(self, symbol: str) -> str:
        if not self.exist_dot and self.dot_free != "table":
            return "VECTOR" if self.dot_free == "vector" else "CUBE_AND_VECTOR"
        listed = symbols.listed_cores(symbol)
        return listed or ("CUBE_AND_VECTOR" if self.exist_dot else "VECTOR")


# One call


def unsupported(op: Operation, detail: str) -> UnsupportedOpError:
    return UnsupportedOpError(where=location(op) or "unknown location", backend="ascend", op=op.name, detail=detail)


def type_name(op: Operation, type: Attribute | None) -> str:
    """The library's name of a type, or an error with the user's line."""
    found = symbols.TYPE_NAMES.get(str(type))
    if found is None:
        known = ", ".join(symbols.TYPE_NAMES)
        raise unsupported(op, f"the library has no functions of type {type}; it has {known}")
    return found


def _is_gm_argument(value: SSAValue) -> bool:
    """A scalar pointer that is an argument of the kernel itself."""
    if not (isinstance(value.type, PointerType) and isinstance(value, BlockArgument)):
        return False
    function = value.block.parent_op()
    return isinstance(function, FuncOp) and value.block is function.body.blocks.first


def _attributes(old: Operation, symbol: str, operands: Sequence[SSAValue], cores: Cores) -> dict[str, Attribute]:
    """What the old op carried, and what every distributed call says."""
    positions = [i for i, value in enumerate(operands) if _is_gm_argument(value)]
    return {
        **old.attributes,
        **old.properties,
        "gm_addr_args_indices": index_array(positions),
        "hivm.is_distributed": UnitAttr(),
        "hivm.pipe": PipeAttr(symbols.pipe(symbol)),
        "hivm.tcore_type": TCoreTypeAttr(cores.of(symbol)),
        "hivm.vf_mode": VFModeAttr("SIMD"),
        "symbol": StringAttr(symbol),
    }


def _call(
    old: Operation, symbol: str, operands: Sequence[SSAValue], results: Sequence[Attribute], cores: Cores
) -> list[Operation]:
    """A destination for each result that is a tensor, and the call."""
    empties = [
        EmptyOp.create(result_types=(type,), location=old.location) for type in results if isinstance(type, TensorType)
    ]
    outs = [empty.tensor for empty in empties]
    properties: dict[str, Attribute] = {
        "name": StringAttr(symbols.NAME_PREFIX + symbol),
        "operandSegmentSizes": index_array([len(operands), len(outs), 0]),
    }
    if get_effects(old) == set():
        properties["no_side_effect"] = UnitAttr()
    call = CustomOp.create(
        operands=(*operands, *outs),
        result_types=results,
        properties=properties,
        attributes=_attributes(old, symbol, (*operands, *outs), cores),
        location=old.location,
    )
    return [*empties, call]


def _mark(call: Operation) -> MarkOp:
    return MarkOp.create(
        operands=call.results,
        properties={"effects": WRITES},
        attributes={"ContinuousMemAccess": UnitAttr()},
        location=call.location,
    )


def _check_token(op: Operation, type: Attribute) -> None:
    if type != i32:
        raise unsupported(op, f"the library's tokens are i32, not {type}")


def _constant(old: Operation, value: int) -> ConstantOp:
    return ConstantOp.create(properties={"value": int_attr(value)}, result_types=(i32,), location=old.location)


# The patterns


class Convert(RewritePattern):
    """Rewrites one `distributed` op; `cores` decides where it runs."""

    def __init__(self, cores: Cores) -> None:
        super().__init__()
        self.cores = cores

    def replace(self, rewriter: PatternRewriter, old: Any, symbol: str, operands: Sequence[SSAValue]) -> None:
        """One call with the results of the old op."""
        new = _call(old, symbol, operands, [result.type for result in old.results], self.cores)
        rewriter.replace_op(old, new, new[-1].results)


class ConvertGetRank(Convert):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: d.GetRankOp, rewriter: PatternRewriter) -> None:
        self.replace(rewriter, op, "aclshmem_my_pe", ())


class ConvertGetNumRanks(Convert):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: d.GetNumRanksOp, rewriter: PatternRewriter) -> None:
        self.replace(rewriter, op, "aclshmem_n_pes", ())


class ConvertSymmAt(Convert):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: d.SymmAtOp, rewriter: PatternRewriter) -> None:
        name = type_name(op, d.pointee(op.symmAddr.type))
        self.replace(rewriter, op, f"aclshmem_ptr_{name}", op.operands)


class ConvertWait(Convert):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: d.WaitOp, rewriter: PatternRewriter) -> None:
        if not d.is_pointer(op.barrierPtr.type) or op.numBarriers.type != i32:
            raise unsupported(op, "barrierPtr must be a scalar pointer and numBarriers an i32")
        _check_token(op, op.result_types[0])
        name = type_name(op, d.pointee(op.barrierPtr.type))
        if name not in symbols.WAIT_TYPES:
            raise unsupported(op, f"the library waits for {', '.join(symbols.WAIT_TYPES)}, not {name}")
        self.replace(rewriter, op, f"aclshmem_wait_{name}", op.operands)


class ConvertConsumeToken(Convert):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: d.ConsumeTokenOp, rewriter: PatternRewriter) -> None:
        type = op.input.type
        _check_token(op, op.token.type)
        new = _call(op, self._symbol(op, type), op.operands, [type], self.cores)
        call = new[-1]
        if isinstance(type, TensorType):
            # What newer Triton-Ascend reads: result 0 has the addresses of operand 0.
            call.attributes["SrcPtrIndex"] = index_array([0])
            new.append(_mark(call))
        rewriter.replace_op(op, new, call.results)

    def _symbol(self, op: d.ConsumeTokenOp, type: Attribute) -> str:
        pointee = d.pointee(type)
        rank = len(type.get_shape()) if isinstance(type, TensorType) else 0
        if pointee is None and rank:
            detail = "a tensor of values has no token in the library; consume the pointer it is loaded from"
            raise unsupported(op, detail)
        if rank > symbols.MOST_DIMENSIONS:
            raise unsupported(op, f"a tensor of pointers has at most {symbols.MOST_DIMENSIONS} dimensions, not {rank}")
        name = type_name(op, type if pointee is None else pointee)
        suffix = "" if pointee is None else f"_ptr_{max(rank, 1)}d"
        return f"aclshmem_consume_token_{name}{suffix}"


class ConvertNotify(Convert):
    """The signal's width chooses the function, and its sign, which MLIR's types do not have."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: d.NotifyOp, rewriter: PatternRewriter) -> None:
        pointee = d.pointee(op.sigAddr.type)
        action = keyword_of(d.SIGNAL_OPS, op.sigOp)
        if pointee == i32:
            narrow = TruncIOp.create(operands=(op.signalVal,), result_types=(i32,), location=op.location)
            number = _constant(op, symbols.SIGNAL_ADD if action == "ADD" else symbols.SIGNAL_SET)
            operands = (op.sigAddr, narrow.results[0], number.results[0], op.rank)
            before: list[Operation] = [narrow, number]
            symbol = "aclshmemx_signal_op"
        elif pointee == IntegerType(64) and action == "SET":
            before, operands = [], (op.sigAddr, op.signalVal, op.rank)
            symbol = "aclshmem_uint64_p" if op.sigUnsigned is not None else "aclshmem_int64_p"
        else:
            raise unsupported(op, f"{action} of a signal of type {pointee}; i32 has SET and ADD, i64 has SET")
        rewriter.replace_op(op, [*before, *_call(op, symbol, operands, (), self.cores)], ())


class ConvertExternCall(Convert):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: d.ExternCallOp, rewriter: PatternRewriter) -> None:
        symbol = op.symbol.data or op.name.partition(".")[2]
        operands: Sequence[SSAValue] = op.operands
        if symbol == "aclshmem_ptr":
            if not operands or not d.is_pointer(operands[0].type):
                raise unsupported(op, "aclshmem_ptr takes a pointer, whose type completes its name, and a PE")
            symbol = f"aclshmem_ptr_{type_name(op, d.pointee(operands[0].type))}"
        elif (native := _NATIVE.get(symbol)) is not None:
            if op.operands or list(op.result_types) != [i64]:
                raise unsupported(op, f"{symbol} takes nothing and gives an i64")
            rewriter.replace_op(op, native.create(result_types=(i64,), location=op.location))
            return
        elif symbol in _WITHOUT_OPERANDS:
            operands = ()
        self.replace(rewriter, op, symbol, operands)


PATTERNS: tuple[type[Convert], ...] = (
    ConvertWait,
    ConvertConsumeToken,
    ConvertGetRank,
    ConvertGetNumRanks,
    ConvertSymmAt,
    ConvertNotify,
    ConvertExternCall,
)
