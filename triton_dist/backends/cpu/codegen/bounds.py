# SPDX-License-Identifier: MIT
"""The bounds-checked mode: every address goes through the runtime before it is read or written.

An address outside the tensors passed and the symmetric heap is recorded, and replaced by a harmless one; the program
leaves the kernel after the operation. Masked-off lanes are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import llvmlite.ir as ir

from .build import Builder, Value, const, lanes_of
from .ltypes import I1, I32, I64, PTR


@dataclass(frozen=True)
class Guard:
    """What a check reports with: the launch, the program, and the line of the access."""

    launch: Value
    program: Value
    site: Value

    def check(self, b: Builder, address: Value, mask: Value | None, size: int, write: bool) -> Value:
        """The address (or vector of them), or where it is bad, one that may be touched."""
        width = lanes_of(address)
        if width is None:
            return self._one(b, address, mask, size, write)
        result: Value = address
        for lane in range(width):
            at = const(I32, lane)
            bit = None if mask is None else b.extract_element(mask, at)
            result = b.insert_element(result, self._one(b, b.extract_element(address, at), bit, size, write), at)
        return result

    def _one(self, b: Builder, address: Value, bit: Value | None, size: int, write: bool) -> Value:
        function = b.module.globals.get("td_bounds")
        if function is None:
            types = [PTR, I32, I32, I64, I64, I1, I1]
            function = ir.Function(b.module, ir.FunctionType(I64, types), "td_bounds")
        active = const(I1, 1) if bit is None else bit
        args = [self.launch, self.program, self.site, address, const(I64, size), active, const(I1, int(write))]
        return b.call(function, args)
