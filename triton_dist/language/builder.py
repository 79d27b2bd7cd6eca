# SPDX-License-Identifier: MIT
"""Distributed ops on Triton's stock builder: each becomes a carrier.

A carrier is a `tt.extern_elementwise` with the library name "distributed", the op as its symbol, and the op's
attributes as MLIR text in `libpath`. Triton's C++ passes see a pure carrier as movable and an impure one as a
memory effect, which is all they need to know; the pass `raise-distributed-carriers` makes the op of it. An op
without a result has a dummy i32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton.language as tl

LIBRARY = "distributed"

# The numbers of Triton's MemSyncScope and MemSemantic, and of our SignalOp and CommScope.
SCOPES = {"gpu": 1, "cta": 2, "sys": 3}
SEMANTICS = {"relaxed": 1, "acquire": 2, "release": 3, "acq_rel": 4}
SIGNAL_OPS = {"set": 1, "add": 2}
COMM_SCOPES = {"gpu": 1, "intra_node": 2, "inter_node": 3}


class DistributedOpBuilder:
    """Makes the seven ops with a stock Triton builder. Operands and results are its values (`tensor.handle`)."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def create_distributed_wait(self, ptr: Any, count: Any, value: Any, scope: int, semantic: int) -> Any:
        # Never pure: an unconsumed wait must survive, and no pass may run one more often than written.
        attributes = f"{{scope = {scope} : i32, semantic = {semantic} : i32}}"
        return self._carrier("wait", [ptr, count, value], self._i32(), attributes=attributes)

    def create_distributed_consume_token(self, value: Any, token: Any) -> Any:
        return self._carrier("consume_token", [value, token], value.get_type(), pure=True)

    def create_distributed_get_rank(self, axis: int) -> Any:
        return self._carrier("get_rank", [self.builder.get_int32(axis)], self._i32(), pure=True)

    def create_distributed_get_num_ranks(self, axis: int) -> Any:
        return self._carrier("get_num_ranks", [self.builder.get_int32(axis)], self._i32(), pure=True)

    def create_distributed_symm_at(self, ptr: Any, rank: Any) -> Any:
        return self._carrier("symm_at", [ptr, rank], ptr.get_type(), pure=True)

    def create_distributed_notify(
        self, ptr: Any, signal: Any, rank: Any, sig_op: int, comm_scope: int, pointee: tl.dtype
    ) -> Any:
        # Triton's integer types have no sign, but a vendor's symbol may.
        unsigned = ", sigUnsigned" if pointee.is_int_unsigned() else ""
        attributes = f"{{sigOp = {sig_op} : i32, commScope = {comm_scope} : i32{unsigned}}}"
        return self._carrier("notify", [ptr, signal, rank], self._i32(), attributes=attributes)

    def create_distributed_extern_call(
        self, libname: str, libpath: str, symbol: str, operands: Sequence[Any], result: tl.dtype | None, pure: bool
    ) -> Any:
        """`result`: the type of the result, or None if the function has none."""
        # `void` says that the carrier's i32 is no result of the function.
        void = ", void" if result is None else ""
        attributes = (
            f"{{libname = {_quote(libname)}, libpath = {_quote(libpath)}, "
            f"pure = {str(pure).lower()}, symbol = {_quote(symbol)}{void}}}"
        )
        type_ = self._i32() if result is None else result.to_ir(self.builder)
        return self._carrier("extern_call", operands, type_, pure=pure, attributes=attributes)

    def _i32(self) -> Any:
        return self.builder.get_int32_ty()

    def _carrier(
        self, op: str, operands: Sequence[Any], result: Any, *, pure: bool = False, attributes: str = ""
    ) -> Any:
        return self.builder.create_extern_elementwise(
            LIBRARY, attributes, f"distributed.{op}", list(operands), result, pure
        )


def _quote(text: str) -> str:
    """`text` as an MLIR string literal, where every byte but plain ASCII is a \\XX escape."""
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())
    return '"' + "".join(plain) + '"'
