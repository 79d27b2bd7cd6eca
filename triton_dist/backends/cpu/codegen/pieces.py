# SPDX-License-Identifier: MIT
"""Functions of fp32 in eight pieces, each with a polynomial of its own.

Eight numbers fill a machine vector of AVX2, and one instruction looks up the number of each lane's piece in it: that
costs no more than to fetch a constant.
"""

from __future__ import annotations

import llvmlite.ir as ir

from .build import Builder, Value, full, in_pieces, like
from .ltypes import F32, I32

STEP = 0.53155517578125
"""Distance of the pieces' middles. Chosen so that erf(k * STEP) lies next to an fp32 number for each k (its error
enters the result whole), and with few bits, so that k * STEP is exact.
"""
TOP = 3.98
"""From 3.92 on, erf is 1 in fp32."""
MAGIC = 12582912.0
"""1.5 * 2^23: what is added to it is rounded to an integer, and that is in the lowest bits of the sum."""

# Of erf(k * STEP + t) in t, lowest power first; a column is a piece. Made from Chebyshev nodes; the first piece from
# erf(t) / t - 1 in t^2, so that its error is a relative one.
_ERF = (
    (0.0, 0.5477881, 0.86728084, 0.9758791,
     0.997361, 0.9998292, 0.9999935, 0.9999999),
    (0.12837917, 0.850638, 0.36442977, 0.088728346,
     0.012276944, 0.0009653784, 4.3140408e-05, 1.0955946e-06),
    (0.0, -0.4521602, -0.38742956, -0.14149211,
     -0.026103372, -0.0025657592, -0.00013759753, -4.077754e-06),
    (-0.37612593, -0.12331386, 0.15310988, 0.12084566,
     0.032908853, 0.004224338, 0.00027816687, 9.747766e-06),
    (0.0, 0.18343699, 0.047790762, -0.04918376,
     -0.026293118, -0.0047584465, -0.00039711726, -1.6692819e-05),
    (0.11280599, -0.0020048607, -0.06623429, -0.0048862705,
     0.012483827, 0.0037922505, 0.00042376763, 2.199952e-05),
    (0.0, -0.04726936, 0.009960582, 0.015567713,
     -0.0016439914, -0.0020900297, -0.0003581975, -2.4719138e-05),
    (-0.0261396, 0.0074936296, 0.012353187, -0.0057850145,
     -0.0018956318, 0.00066595926, 0.00021680568, 2.0047913e-05),
)  # fmt: skip


def erf(b: Builder, x: Value) -> Value:
    """The error function, 1 ulp; its sign is x's. `x` has a multiple of `b.lookup` lanes."""
    return in_pieces(b, b.lookup, [x], lambda pieces: _erf(b, pieces[0]))


def _erf(b: Builder, x: Value) -> Value:
    t, wide = x.type, like(x, I32)
    bits = b.bitcast(x, wide)
    sign = b.and_(bits, full(wide, -(2**31)))
    a = b.bitcast(b.xor(bits, sign), t)
    a = b.select(b.fcmp_ordered("<", full(t, TOP), a), full(t, TOP), a)
    shifted = b.math("fma", a, full(t, 1 / STEP), full(t, MAGIC))
    k = b.fsub(shifted, full(t, MAGIC))
    near = b.math("fma", k, full(t, -STEP), a)
    rows = [_lookup(b, row, b.bitcast(shifted, wide)) for row in _ERF]
    slope = rows[-1]
    for row in rows[-2:0:-1]:
        slope = b.math("fma", slope, near, row)
    start = b.select(b.fcmp_ordered("==", k, full(t, 0.0)), near, rows[0])
    result = b.math("fma", slope, near, start)
    return b.bitcast(b.or_(b.bitcast(result, wide), sign), t)


def _lookup(b: Builder, row: tuple[float, ...], index: Value) -> Value:
    """The number of each lane's piece, by the lowest bits of `index`."""
    name = "avx2.permps" if b.lookup == 8 else "avx512.permvar.sf.512"
    table = ir.VectorType(F32, b.lookup)
    values = ir.Constant(table, [ir.Constant(F32, v) for v in row] * (b.lookup // len(row)))
    return b.call_intrinsic(f"llvm.x86.{name}", table, [values, index])
