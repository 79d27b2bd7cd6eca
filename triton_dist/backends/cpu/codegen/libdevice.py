# SPDX-License-Identifier: MIT
"""`tl.extra.libdevice`: every `__nv_*` function that Triton's module calls, over scalars or vectors.

fp32 functions are computed in fp64 and rounded (`wide`), fp64 ones are the C library's; what it lacks is written here.
Where CUDA leaves a result open (NaN to an integer) it is 0, as in the engine's other conversions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import llvmlite.ir as ir

from . import mathlib, rounding, special, wide
from .build import Builder, Value, full, like, scalar_type, suffix
from .ltypes import F32, F64, I1, I32, I64
from .outline import libm

Emit = Callable[[Builder, Sequence[Value]], Value]
FUNCTIONS: dict[str, Emit] = {}


def defines(*names: str) -> Callable[[Emit], Emit]:
    """Register the emitter of `__nv_<name>`s."""

    def register(emit: Emit) -> Emit:
        for name in names:
            FUNCTIONS["__nv_" + name] = emit
        return emit

    return register


def _both(name: str, emit: Emit) -> None:
    """The fp32 function (with an f behind its name) and the fp64 one."""
    defines(name + "f", name)(emit)


def _single(x: Value) -> bool:
    return scalar_type(x.type) == F32


# Integers


def _bit_count(intrinsic: str, flags: bool) -> Emit:
    def emit(b: Builder, a: Sequence[Value]) -> Value:
        args = [a[0], ir.Constant(I1, 0)] if flags else [a[0]]
        got = b.call_intrinsic(f"llvm.{intrinsic}.{suffix(a[0].type)}", a[0].type, args)
        if intrinsic == "bitreverse" or rounding.width(a[0].type) == 32:
            return got
        return b.trunc(got, like(a[0], I32))

    return emit


defines("clz", "clzll")(_bit_count("ctlz", True))
defines("popc", "popcll")(_bit_count("ctpop", False))
defines("brev", "brevll")(_bit_count("bitreverse", False))


@defines("ffs", "ffsll")
def _ffs(b: Builder, a: Sequence[Value]) -> Value:
    """One plus the lowest set bit's number; 0 for 0."""
    zeros = _bit_count("cttz", True)(b, a)
    empty = b.icmp_signed("==", a[0], full(a[0].type, 0))
    return b.select(empty, full(zeros.type, 0), b.add(zeros, full(zeros.type, 1)))


def _high(bits: int, signed: bool) -> Emit:
    def emit(b: Builder, a: Sequence[Value]) -> Value:
        wide_type = like(a[0], ir.IntType(2 * bits))
        extend = b.sext if signed else b.zext
        product = b.mul(extend(a[0], wide_type), extend(a[1], wide_type))
        return b.trunc(b.lshr(product, full(wide_type, bits)), a[0].type)

    return emit


for _name, _bits, _sign in (("mulhi", 32, True), ("umulhi", 32, False), ("mul64hi", 64, True), ("umul64hi", 64, False)):
    defines(_name)(_high(_bits, _sign))


@defines("mul24")
def _mul24(b: Builder, a: Sequence[Value]) -> Value:
    low = [b.ashr(b.shl(x, full(x.type, 8)), full(x.type, 8)) for x in a]
    return b.mul(*low)


@defines("umul24")
def _umul24(b: Builder, a: Sequence[Value]) -> Value:
    return b.mul(*[b.and_(x, full(x.type, 0xFFFFFF)) for x in a])


@defines("sad")
def _sad(b: Builder, a: Sequence[Value]) -> Value:
    larger = b.icmp_signed(">", a[0], a[1])
    return b.add(a[2], b.select(larger, b.sub(a[0], a[1]), b.sub(a[1], a[0])))


@defines("usad")
def _usad(b: Builder, a: Sequence[Value]) -> Value:
    larger = b.icmp_unsigned(">", a[0], a[1])
    return b.add(a[2], b.select(larger, b.sub(a[0], a[1]), b.sub(a[1], a[0])))


def _mean(signed: bool, up: int) -> Emit:
    """(x + y + up) >> 1, without losing the carry."""

    def emit(b: Builder, a: Sequence[Value]) -> Value:
        t = like(a[0], I64)
        x, y = ((b.sext if signed else b.zext)(v, t) for v in a)
        total = b.add(b.add(x, y), full(t, up))
        return b.trunc(b.ashr(total, full(t, 1)), a[0].type)

    return emit


for _name, _sign, _up in (("hadd", True, 0), ("uhadd", False, 0), ("rhadd", True, 1), ("urhadd", False, 1)):
    defines(_name)(_mean(_sign, _up))


@defines("byte_perm")
def _byte_perm(b: Builder, a: Sequence[Value]) -> Value:
    """Four bytes picked from the eight of y:x by the low three bits of the selector's nibbles."""
    t = like(a[0], I64)
    pool = b.or_(b.zext(a[0], t), b.shl(b.zext(a[1], t), full(t, 32)))
    selector, result = b.zext(a[2], t), full(t, 0)
    for n in range(4):
        place = b.shl(b.and_(b.lshr(selector, full(t, 4 * n)), full(t, 7)), full(t, 3))
        byte = b.and_(b.lshr(pool, place), full(t, 0xFF))
        result = b.or_(result, b.shl(byte, full(t, 8 * n)))
    return b.trunc(result, a[0].type)


@defines("abs", "llabs")
def _iabs(b: Builder, a: Sequence[Value]) -> Value:
    zero = full(a[0].type, 0)
    return b.select(b.icmp_signed("<", a[0], zero), b.sub(zero, a[0]), a[0])


# Bits


def _reinterpret(target: ir.Type) -> Emit:
    return lambda b, a: b.bitcast(a[0], like(a[0], target))


for _name, _target in (
    ("int_as_float", F32), ("uint_as_float", F32), ("float_as_int", I32), ("float_as_uint", I32),
    ("longlong_as_double", F64), ("double_as_longlong", I64),
):  # fmt: skip
    defines(_name)(_reinterpret(_target))


@defines("hiloint2double")
def _hilo(b: Builder, a: Sequence[Value]) -> Value:
    t = like(a[0], I64)
    return b.bitcast(b.or_(b.shl(b.zext(a[0], t), full(t, 32)), b.zext(a[1], t)), like(a[0], F64))


def _half_of_double(high: bool) -> Emit:
    def emit(b: Builder, a: Sequence[Value]) -> Value:
        raw = b.bitcast(a[0], like(a[0], I64))
        return b.trunc(b.lshr(raw, full(raw.type, 32)) if high else raw, like(a[0], I32))

    return emit


defines("double2loint")(_half_of_double(False))
defines("double2hiint")(_half_of_double(True))


def _truth(b: Builder, bit: Value) -> Value:
    return b.zext(bit, like(bit, I32))


@defines("isnanf", "isnand")
def _isnan(b: Builder, a: Sequence[Value]) -> Value:
    return _truth(b, b.fcmp_unordered("uno", a[0], a[0]))


@defines("isinff", "isinfd")
def _isinf(b: Builder, a: Sequence[Value]) -> Value:
    return _truth(b, b.fcmp_ordered("==", b.math("fabs", a[0]), full(a[0].type, math.inf)))


@defines("finitef", "isfinited")
def _finite(b: Builder, a: Sequence[Value]) -> Value:
    return _truth(b, b.fcmp_ordered("<", b.math("fabs", a[0]), full(a[0].type, math.inf)))


@defines("signbitf", "signbitd")
def _signbit(b: Builder, a: Sequence[Value]) -> Value:
    t = like(a[0], I32 if _single(a[0]) else I64)
    return _truth(b, b.icmp_signed("<", b.bitcast(a[0], t), full(t, 0)))


# LLVM's own


def _intrinsic(name: str) -> Emit:
    return lambda b, a: b.math(name, *a)


for _name, _intrinsic_name in (
    ("fabs", "fabs"), ("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("rint", "rint"), ("nearbyint", "rint"),
    ("round", "round"), ("sqrt", "sqrt"), ("copysign", "copysign"), ("fma", "fma"),
):  # fmt: skip
    _both(_name, _intrinsic(_intrinsic_name))


@defines("llrintf", "llrint")
def _llrint(b: Builder, a: Sequence[Value]) -> Value:
    return rounding.to_integer(b, a[0], I64, True, "rn")


@defines("llroundf", "llround")
def _llround(b: Builder, a: Sequence[Value]) -> Value:
    return rounding.to_integer(b, b.math("round", a[0]), I64, True, "rz")


@defines("saturatef")
def _saturate(b: Builder, a: Sequence[Value]) -> Value:
    """To [0, 1]; NaN to +0."""
    x, zero, one = a[0], full(a[0].type, 0.0), full(a[0].type, 1.0)
    x = b.select(b.fcmp_ordered(">", x, zero), x, zero)
    return b.select(b.fcmp_ordered("<", x, one), x, one)


# Chosen rounding

Operation = Callable[..., Value]


def _rounded(names: Sequence[str], operation: Operation) -> None:
    for mode in rounding.MODES:
        for name in names:
            defines(f"{name}_{mode}")(lambda b, a, m=mode: operation(b, *a, m))


for _name in ("add", "sub", "mul", "div", "sqrt"):
    _rounded([f"f{_name}", f"d{_name}"], getattr(rounding, _name))
_rounded(["fmaf", "fma"], rounding.fma)
_rounded(["frcp", "drcp"], lambda b, x, mode: rounding.div(b, full(x.type, 1.0), x, mode))
_rounded(["double2float"], rounding.narrow)
defines("fast_fdividef")(lambda b, a: b.fdiv(*a))


def _conversions() -> None:
    integers = (("int", I32, True), ("uint", I32, False), ("ll", I64, True), ("ull", I64, False))
    for name, type_, signed in integers:
        for kind, target in (("float", F32), ("double", F64)):
            _rounded([f"{kind}2{name}"], lambda b, x, m, t=type_, s=signed: rounding.to_integer(b, x, t, s, m))
            _rounded([f"{name}2{kind}"], lambda b, x, m, t=target, s=signed: rounding.from_integer(b, x, t, s, m))


_conversions()


@defines("rcp64h")
def _rcp64h(b: Builder, a: Sequence[Value]) -> Value:
    """The reciprocal, its lower 32 bits zero (a GPU's is an approximation with as many bits)."""
    raw = b.bitcast(b.fdiv(full(a[0].type, 1.0), a[0]), like(a[0], I64))
    return b.bitcast(b.and_(raw, full(raw.type, -(1 << 32))), a[0].type)


# Transcendental functions


def _function(name: str, double: Emit | None = None, core: str | None = None) -> None:
    """fp32 by way of fp64 polynomials; fp64 by the C library unless `double` says otherwise."""
    defines(name + "f")(lambda b, a: wide.function(b, core or name, *a))
    defines(name)(double or (lambda b, a: libm(b, name, a)))


for _name in (
    "exp10", "expm1", "log1p", "log10", "pow", "sin", "cos", "tan", "atan", "atan2", "asin", "acos", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "hypot",
):  # fmt: skip
    _function(_name)
for _name in (
    "sinpi",
    "cospi",
    "erfcx",
    "normcdf",
    "rhypot",
    "norm3d",
    "rnorm3d",
    "norm4d",
    "rnorm4d",
    "rcbrt",
    "rsqrt",
):
    _function(
        _name,
        special.DOUBLE[_name],
        {"norm3d": "hypot", "norm4d": "hypot", "rnorm3d": "rhypot", "rnorm4d": "rhypot"}.get(_name),
    )
for _name in ("exp", "exp2", "log", "log2"):
    defines(_name + "f")(lambda b, a, f=mathlib.FUNCTIONS[_name]: f(b, a[0]))
    defines(_name)(lambda b, a, n=_name: libm(b, n, a))
for _name in ("sin", "cos", "tan", "exp10", "log10", "pow"):
    defines(f"fast_{_name}f")(FUNCTIONS[f"__nv_{_name}f"])
for _name in ("exp", "log", "log2"):
    defines(f"fast_{_name}f")(FUNCTIONS[f"__nv_{_name}f"])
defines("frsqrt_rn")(FUNCTIONS["__nv_rsqrtf"])
for _name in ("j0", "j1", "y0", "y1", "lgamma", "tgamma"):
    _both(_name, lambda b, a, n=_name: libm(b, n, a))
for _name in ("jn", "yn"):
    _both(_name, lambda b, a, n=_name: libm(b, n, a))
for _name in ("erfinv", "erfcinv", "normcdfinv", "cyl_bessel_i0", "cyl_bessel_i1"):
    _both(_name, special.SCALAR[_name])


@defines("powif", "powi")
def _powi(b: Builder, a: Sequence[Value]) -> Value:
    exponent = b.sitofp(a[1], like(a[1], F64))
    if not _single(a[0]):
        return libm(b, "pow", [a[0], exponent])
    return special.power_of_single(b, a[0], exponent)


@defines("ldexpf", "ldexp", "scalbnf", "scalbn")
def _ldexp(b: Builder, a: Sequence[Value]) -> Value:
    """Scaled in three steps, of which the first two are exact."""
    if not _single(a[0]):
        return libm(b, "ldexp", a)
    return special.scale_single(b, a[0], a[1])


def _remainder(name: str) -> Emit:
    # Exact in fp64 too: the result of fp32 operands is an fp32 number.
    return lambda b, a: libm(b, name, a)


for _name in ("fmod", "remainder"):
    _both(_name, _remainder(_name))


@defines("fdimf", "fdim")
def _fdim(b: Builder, a: Sequence[Value]) -> Value:
    return b.select(b.fcmp_ordered("<=", a[0], a[1]), full(a[0].type, 0.0), b.fsub(*a))


@defines("nextafterf", "nextafter")
def _nextafter(b: Builder, a: Sequence[Value]) -> Value:
    x, y = a
    moved = b.select(b.fcmp_ordered("<", x, y), rounding.step(b, x, True), rounding.step(b, x, False))
    result = b.select(b.fcmp_ordered("==", x, y), y, moved)
    return b.select(b.fcmp_unordered("uno", x, y), b.fadd(x, y), result)


@defines("ilogbf", "ilogb")
def _ilogb(b: Builder, a: Sequence[Value]) -> Value:
    """The exponent; INT_MIN for 0 and NaN, INT_MAX for infinities (CUDA's values)."""
    x = b.fpext(a[0], like(a[0], F64)) if _single(a[0]) else a[0]
    result = libm(b, "ilogb", [x], I32)
    return b.select(b.fcmp_unordered("uno", x, x), full(result.type, -(1 << 31)), result)


@defines("logbf", "logb")
def _logb(b: Builder, a: Sequence[Value]) -> Value:
    return libm(b, "logb", a)


def emit(b: Builder, symbol: str, args: Sequence[Value]) -> Value | None:
    """A call of `symbol`; None if it is not libdevice's."""
    found = FUNCTIONS.get(symbol)
    return None if found is None else found(b, args)


def knows(symbol: str) -> bool:
    return symbol in FUNCTIONS
