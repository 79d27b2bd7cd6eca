# SPDX-License-Identifier: MIT
"""Every function of `tl.extra.libdevice`: operand kinds, a reference in higher precision, and the error allowed.

Kinds: f fp32, d fp64, i int32, u uint32, l int64, v uint64. References take numpy arrays, floats as long doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

Reference = Callable[..., np.ndarray]
LD = np.longdouble


@dataclass(frozen=True)
class Case:
    """One overload of one function."""

    name: str
    kinds: str
    result: str
    reference: Reference
    bound: float = 0.0
    """Ulps; 0: bit for bit (but any NaN for a NaN)."""
    domain: tuple[float, float] | None = None
    count: int = 4096
    floor: float = 0.0
    """Errors of smaller results are measured in ulps of this (near the zeros of an oscillating function)."""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.kinds}"


def _mp(function: Callable[..., Any]) -> Reference:
    def one(*values: Any) -> Any:
        with mpmath.workprec(120):
            got = function(*[v if isinstance(v, int) else _exact(v) for v in values])
            return LD(mpmath.nstr(got, 30))

    def reference(*arrays: np.ndarray) -> np.ndarray:
        return np.array([one(*[int(v) if a.dtype.kind in "iu" else v for a, v in zip(arrays, row, strict=True)])
                         for row in zip(*arrays, strict=True)])  # fmt: skip

    return reference


def _exact(value: Any) -> Any:
    high = float(value)
    return mpmath.mpf(high) + mpmath.mpf(float(value - LD(high)))


def _float_pairs() -> Iterator[Case]:
    """Functions with an fp32 and an fp64 overload. fp32 results are rounded from fp64; fp64 is the C library's."""
    single, double = 0.51, 1.6
    unary: dict[str, tuple[Reference, tuple[float, float] | None]] = {
        "exp10": (lambda x: np.power(LD(10), x), None),
        "expm1": (np.expm1, None), "log1p": (np.log1p, None), "log10": (np.log10, None),
        "sin": (np.sin, None), "cos": (np.cos, None), "tan": (np.tan, None),
        "sinh": (np.sinh, None), "cosh": (np.cosh, None), "tanh": (np.tanh, None), "atan": (np.arctan, None),
        "asin": (np.arcsin, (-1, 1)), "acos": (np.arccos, (-1, 1)), "asinh": (np.arcsinh, None),
        "acosh": (np.arccosh, None),
        "atanh": (np.arctanh, (-1, 1)), "cbrt": (np.cbrt, None), "rcbrt": (lambda x: 1 / np.cbrt(x), None),
        "rsqrt": (lambda x: 1 / np.sqrt(x), None),
    }  # fmt: skip
    for name, (reference, domain) in unary.items():
        yield Case(name, "f", "f", reference, single, domain)
        yield Case(name, "d", "d", reference, double + 1 + 2 * (name in ("cbrt", "rcbrt")), domain)
    for name, bounds in (
        ("exp", (1.0, double)),
        ("exp2", (1.0, double)),
        ("log", (1.0, double)),
        ("log2", (2.0, double)),
    ):
        yield Case(name, "f", "f", getattr(np, name), bounds[0])
        yield Case(name, "d", "d", getattr(np, name), bounds[1])
    for kind, bound in (("f", single), ("d", double)):
        yield Case("pow", 2 * kind, kind, np.power, bound)
        yield Case("pow", f"{kind}i", kind, lambda x, n: np.power(x, n.astype(LD)), bound)
        yield Case("atan2", 2 * kind, kind, np.arctan2, bound)
        yield Case("hypot", 2 * kind, kind, np.hypot, bound)
        yield Case("rhypot", 2 * kind, kind, lambda x, y: 1 / np.hypot(x, y), bound + (kind == "d"))
        for legs, name in ((3, "norm3d"), (4, "norm4d")):
            yield Case(name, legs * kind, kind, _norm, bound + (kind == "d"))
            yield Case("r" + name, legs * kind, kind, lambda *a: 1 / _norm(*a), bound + 2 * (kind == "d"))


def _norm(*legs: np.ndarray) -> np.ndarray:
    total = np.hypot(legs[0], legs[1])
    for leg in legs[2:]:
        total = np.hypot(total, leg)
    return total


def _special() -> Iterator[Case]:
    functions: dict[str, tuple[Callable[..., Any], tuple[float, float], float, float]] = {
        "sinpi": (mpmath.sinpi, (-50, 50), 2, 1e-300), "cospi": (mpmath.cospi, (-50, 50), 2, 1e-300),
        "erf": (mpmath.erf, (-6, 6), 2, 0), "erfc": (mpmath.erfc, (-6, 10), 5, 0),
        "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-5, 30), 6, 0),
        "erfinv": (mpmath.erfinv, (-0.9999, 0.9999), 4, 0),
        "erfcinv": (lambda y: mpmath.erfinv(1 - y), (1e-6, 1.9999), 8, 1e-2),
        "normcdf": (mpmath.ncdf, (-12, 8), 8, 0),
        "normcdfinv": (lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), (1e-6, 0.9999), 8, 1e-2),
        "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), (-20, 60), 20, 1e-1),
        "tgamma": (mpmath.gamma, (0.01, 30), 10, 0),
        "j0": (lambda x: mpmath.besselj(0, x), (0, 60), 60, 1e-1),
        "j1": (lambda x: mpmath.besselj(1, x), (0, 60), 60, 1e-1),
        "y0": (lambda x: mpmath.bessely(0, x), (0.1, 60), 60, 1e-1),
        "y1": (lambda x: mpmath.bessely(1, x), (0.1, 60), 60, 1e-1),
        "cyl_bessel_i0": (lambda x: mpmath.besseli(0, x), (-60, 60), 30, 0),
        "cyl_bessel_i1": (lambda x: mpmath.besseli(1, x), (-60, 60), 30, 0),
    }  # fmt: skip
    for name, (function, domain, bound, floor) in functions.items():
        yield Case(name, "f", "f", _mp(function), 0.51, domain, 256, floor)
        yield Case(name, "d", "d", _mp(function), bound, domain, 256, floor)
    for kind in "fd":
        for name, bessel in (("jn", mpmath.besselj), ("yn", mpmath.bessely)):
            reference = _mp(lambda n, x, f=bessel: f(int(n), x))
            yield Case(name, "i" + kind, kind, reference, 0.51 if kind == "f" else 500, (1.0, 40.0), 64, 1e-1)


def _exact_floats() -> Iterator[Case]:
    functions: dict[str, Reference] = {
        "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
        "round": lambda x: np.copysign(np.where(np.abs(x) < LD(2) ** 60, np.floor(np.abs(x) + LD(0.5)), np.abs(x)), x),
        "sqrt": np.sqrt, "logb": _logb,
    }  # fmt: skip
    binary: dict[str, Reference] = {
        "copysign": np.copysign, "fmod": np.fmod,
        "fdim": lambda x, y: np.where(x <= y, LD(0), x - y),
    }  # fmt: skip
    for kind in "fd":
        rounded = 0.5001
        for name, reference in functions.items():
            yield Case(name, kind, kind, reference, rounded)
        for name, reference in binary.items():
            yield Case(name, 2 * kind, kind, reference, rounded)
        yield Case("remainder", 2 * kind, kind, _remainder(kind), 0, (-1000, 1000), 512)
        yield Case("nextafter", 2 * kind, kind, _native(np.nextafter, kind))
        for name in ("ldexp", "scalbn"):
            yield Case(name, f"{kind}i", kind, lambda x, n: np.ldexp(x, np.clip(n, -9000, 9000)), rounded)
        yield Case("isnan", kind, "i", lambda x: np.isnan(x).astype(np.int32))
        yield Case("isinf", kind, "i", lambda x: np.isinf(x).astype(np.int32))
        yield Case("signbit", kind, "i", lambda x: np.signbit(x).astype(np.int32))
        yield Case("ilogb", kind, "i", _ilogb)
        for name, ties in (("llrint", np.rint), ("llround", functions["round"])):
            yield Case(name, kind, "l", lambda x, f=ties: _saturated(f(x), "l"))
    yield Case("finitef", "f", "i", lambda x: np.isfinite(x).astype(np.int32))
    yield Case("isfinited", "d", "i", lambda x: np.isfinite(x).astype(np.int32))
    yield Case("saturatef", "f", "f", lambda x: np.where(x > 0, np.minimum(x, LD(1)), LD(0)))
    yield Case("fast_dividef", "ff", "f", np.divide, 0.5001)
    fast: dict[str, tuple[Reference, float]] = {
        "fast_sinf": (np.sin, 0.51), "fast_cosf": (np.cos, 0.51), "fast_tanf": (np.tan, 0.51),
        "fast_log2f": (np.log2, 2),
        "fast_logf": (np.log, 1), "fast_expf": (np.exp, 1), "fast_log10f": (np.log10, 0.51),
        "fast_exp10f": (lambda x: np.power(LD(10), x), 0.51),
    }  # fmt: skip
    for name, (reference, bound) in fast.items():
        yield Case(name, "f", "f", reference, bound)
    yield Case("fast_powf", "ff", "f", np.power, 0.51)
    yield Case("rsqrt_rn", "f", "f", lambda x: 1 / np.sqrt(x), 0.51)
    yield Case("rcp64h", "d", "d", lambda x: _clear_low(1 / x.astype(np.float64)))


def _native(function: Callable[..., Any], kind: str) -> Reference:
    dtype = NUMPY[kind]
    return lambda *a: function(*[x.astype(dtype) for x in a])


def _remainder(kind: str) -> Reference:
    del kind
    return lambda x, y: np.array([LD(math.remainder(float(p), float(q))) for p, q in zip(x, y, strict=True)])


def _logb(x: np.ndarray) -> np.ndarray:
    _, e = np.frexp(x)
    plain = np.where(x == 0, -LD(np.inf), (e - 1).astype(LD))
    return np.where(np.isinf(x), LD(np.inf), np.where(np.isnan(x), x, plain))


def _ilogb(x: np.ndarray) -> np.ndarray:
    _, e = np.frexp(x)
    plain = np.where((x == 0) | np.isnan(x), -(2**31), e.astype(np.int64) - 1)
    return np.where(np.isinf(x), 2**31 - 1, plain).astype(np.int32)


def _clear_low(x: np.ndarray) -> np.ndarray:
    return (x.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64).astype(LD)


# Integers


def _wrap(value: int, kind: str) -> int:
    bits = 64 if kind in "lv" else 32
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind in "il" and value >> (bits - 1) else value


def _ints(function: Callable[..., int], result: str) -> Reference:
    def reference(*arrays: np.ndarray) -> np.ndarray:
        rows = zip(*[a.tolist() for a in arrays], strict=True)
        return np.array([_wrap(function(*row), result) for row in rows], dtype=NUMPY[result])

    return reference


def _low24(x: int) -> int:
    return _wrap(x << 8, "i") >> 8


def _byte_perm(x: int, y: int, s: int) -> int:
    pool = (x & 0xFFFFFFFF) | (y & 0xFFFFFFFF) << 32
    return sum((pool >> 8 * (s >> 4 * n & 7) & 0xFF) << 8 * n for n in range(4))


def _integers() -> Iterator[Case]:
    for kind, bits in (("i", 32), ("l", 64)):
        mask = (1 << bits) - 1
        yield Case("clz", kind, "i", _ints(lambda x, m=mask, n=bits: n - (x & m).bit_length(), "i"))
        yield Case("popc", kind, "i", _ints(lambda x, m=mask: (x & m).bit_count(), "i"))
        yield Case("ffs", kind, "i", _ints(lambda x: (x & -x).bit_length(), "i"))
        yield Case("brev", kind, kind, _ints(lambda x, m=mask, n=bits: int(f"{x & m:0{n}b}"[::-1], 2), kind))
        yield Case("abs", kind, kind, _ints(abs, kind))
    for kind, bits in (("i", 32), ("u", 32), ("l", 64), ("v", 64)):
        yield Case("mulhi", 2 * kind, kind, _ints(lambda x, y, n=bits: x * y >> n, kind))
    yield Case("mul24", "ii", "i", _ints(lambda x, y: _low24(x) * _low24(y), "i"))
    yield Case("mul24", "uu", "u", _ints(lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF), "u"))
    yield Case("byte_perm", "iii", "i", _ints(_byte_perm, "i"))
    yield Case("sad", "iiu", "i", _ints(lambda x, y, z: abs(x - y) + z, "i"))
    yield Case("sad", "uuu", "u", _ints(lambda x, y, z: abs(x - y) + z, "u"))
    for kind in "iu":
        yield Case("hadd", 2 * kind, kind, _ints(lambda x, y: x + y >> 1, kind))
        yield Case("rhadd", 2 * kind, kind, _ints(lambda x, y: x + y + 1 >> 1, kind))
    for name, kind, result in (
        ("int_as_float", "i", "f"), ("uint_as_float", "u", "f"), ("longlong_as_double", "l", "d"),
        ("float_as_int", "f", "i"), ("float_as_uint", "f", "i"), ("double_as_longlong", "d", "l"),
    ):  # fmt: skip
        yield Case(name, kind, result, lambda x, k=kind, r=result: x.astype(NUMPY[k]).view(NUMPY[r]))
    yield Case(
        "hiloint2double",
        "ii",
        "d",
        lambda h, l: (h.astype(np.int64) << 32 | l.astype(np.int64) & 0xFFFFFFFF).view(np.float64),
    )
    yield Case("double2hiint", "d", "i", lambda x: (x.astype(np.float64).view(np.int64) >> 32).astype(np.int32))
    yield Case("double2loint", "d", "i", lambda x: x.astype(np.float64).view(np.int64).astype(np.int32))


# Chosen rounding

ROUND: dict[str, Callable[..., Any]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def _saturated(whole: np.ndarray, kind: str) -> np.ndarray:
    info = np.iinfo(NUMPY[kind])
    clipped = [0 if np.isnan(x) else info.max if x > info.max else info.min if x < info.min else int(x) for x in whole]
    return np.array(clipped, dtype=object).astype(NUMPY[kind])


def _conversions() -> Iterator[Case]:
    for mode, function in ROUND.items():
        for source in "fd":
            for name, kind, signed in (("int", "u", "i"), ("uint", "u", "u"), ("ll", "v", "l"), ("ull", "v", "v")):
                del kind
                target = {"u": "i", "v": "l"}.get(signed, signed)
                reference = _converted(function, signed, target)
                yield Case(f"{'float' if source == 'f' else 'double'}2{name}_{mode}", source, target, reference)
        yield Case(f"double2float_{mode}", "d", "f", _exactly("f", mode, lambda x: x, np.float64), count=512)
        for name, kind in (("int", "i"), ("uint", "u"), ("ll", "l"), ("ull", "v")):
            yield Case(f"{name}2float_{mode}", kind, "f", _from_integer("f", mode), count=512)
            if kind in "lv" or mode == "rn":
                yield Case(f"{name}2double_{mode}", kind, "d", _from_integer("d", mode), count=512)


def _converted(function: Callable[..., Any], kind: str, target: str) -> Reference:
    return lambda x: _saturated(function(x), kind).astype(NUMPY[target])


def _step(nearest: Any, exact: Fraction, mode: str) -> Any:
    """The neighbour of a rounded result that the direction asks for, by exact comparison."""
    if np.isnan(nearest):
        return nearest
    infinite = np.isinf(nearest)
    above = bool(nearest > 0) if infinite else Fraction(float(nearest)) > exact
    below = bool(nearest < 0) if infinite else Fraction(float(nearest)) < exact
    down = mode == "rd" or (mode == "rz" and exact > 0)
    up = mode == "ru" or (mode == "rz" and exact < 0)
    if above and down:
        return np.nextafter(nearest, nearest.dtype.type(-np.inf))
    return np.nextafter(nearest, nearest.dtype.type(np.inf)) if below and up else nearest


def _from_integer(kind: str, mode: str) -> Reference:
    dtype = np.dtype(NUMPY[kind])

    def reference(x: np.ndarray) -> np.ndarray:
        return np.array([_step(dtype.type(v), Fraction(int(v)), mode) for v in x.tolist()], dtype=dtype)

    return reference


def _exactly(
    kind: str, mode: str, rational: Callable[..., Any], operand: Any, nearest: Callable[..., Any] | None = None
) -> Reference:
    """An operation rounded from its exact rational value; `nearest` is the plain operation."""
    dtype = np.dtype(NUMPY[kind])

    def one(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            got = dtype.type(values[0]) if nearest is None else nearest(*[operand(v) for v in values])
        if not all(np.isfinite(v) for v in values) or np.isnan(got):
            return got
        try:
            exact = rational(*[Fraction(float(v)) for v in values])
        except ZeroDivisionError:
            return got
        if exact == 0:
            return -abs(got) if mode == "rd" and _cancels(rational, values) else got
        return _step(got, exact, mode)

    return lambda *arrays: np.array([one(*row) for row in zip(*arrays, strict=True)], dtype=dtype)


def _cancels(rational: Callable[..., Any], values: Any) -> bool:
    """The exact zero is a sum of two operands of different signs."""
    terms = SUMS.get(rational)
    if terms is None:
        return False
    left, right = terms(*values)
    return bool(np.signbit(left) != np.signbit(right))


def _add(x: Fraction, y: Fraction) -> Fraction:
    return x + y


def _sub(x: Fraction, y: Fraction) -> Fraction:
    return x - y


def _fma(x: Fraction, y: Fraction, z: Fraction) -> Fraction:
    return x * y + z


SUMS: dict[Any, Callable[..., Any]] = {
    _add: lambda x, y: (x, y), _sub: lambda x, y: (x, -y), _fma: lambda x, y, z: (LD(x) * LD(y), z),
}  # fmt: skip


def _fma_nearest(kind: str) -> Callable[..., Any]:
    """A correctly rounded fma, from the exact value."""
    dtype = np.dtype(NUMPY[kind]).type

    def nearest(x: Any, y: Any, z: Any) -> Any:
        if not all(np.isfinite(v) for v in (x, y, z)):
            return x * y + z
        exact = _fma(*[Fraction(float(v)) for v in (x, y, z)])
        return dtype(x * y + z) if exact == 0 else _rounded(exact, dtype)

    return nearest


def _rounded(exact: Fraction, dtype: Any) -> Any:
    bits, least, most = (24, -149, 128) if dtype is np.float32 else (53, -1074, 1024)
    power = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    power += -1 if abs(exact) < Fraction(2) ** power else 0
    unit = max(power - bits + 1, least)
    mantissa = round(exact / Fraction(2) ** unit)
    if abs(mantissa) >= 2 ** (most - unit):
        return dtype(np.copysign(np.inf, mantissa))
    return dtype(math.ldexp(mantissa, unit))


def _directed() -> Iterator[Case]:
    operations: dict[str, tuple[int, Callable[..., Any], Callable[..., Any]]] = {
        "add": (2, _add, np.add), "sub": (2, _sub, np.subtract), "mul": (2, lambda x, y: x * y, np.multiply),
        "div": (2, lambda x, y: x / y, np.divide), "rcp": (1, lambda x: 1 / x, lambda x: x.dtype.type(1) / x),
    }  # fmt: skip
    for kind in "fd":
        operand = NUMPY[kind]
        for mode in ROUND:
            for name, (arity, exact, nearest) in operations.items():
                yield Case(
                    f"{name}_{mode}", arity * kind, kind, _exactly(kind, mode, exact, operand, nearest), count=512
                )
            yield Case(
                f"fma_{mode}", 3 * kind, kind, _exactly(kind, mode, _fma, operand, _fma_nearest(kind)), count=512
            )
            yield Case(f"sqrt_{mode}", kind, kind, _root(kind, mode), count=512)
        yield Case("fma", 3 * kind, kind, _exactly(kind, "rn", _fma, operand, _fma_nearest(kind)), count=512)


def _root(kind: str, mode: str) -> Reference:
    def one(x: Any) -> Any:
        r = np.sqrt(NUMPY[kind](x))
        if not np.isfinite(r) or r == 0:
            return r
        square, exact = Fraction(float(r)) ** 2, Fraction(float(x))
        if square > exact and mode in ("rd", "rz"):
            return np.nextafter(r, r.dtype.type(-np.inf))
        return np.nextafter(r, r.dtype.type(np.inf)) if square < exact and mode == "ru" else r

    return lambda x: np.array([one(v) for v in x], dtype=NUMPY[kind])


NUMPY: dict[str, Any] = {"f": np.float32, "d": np.float64, "i": np.int32, "u": np.uint32, "l": np.int64, "v": np.uint64}


def cases() -> list[Case]:
    """All of them."""
    parts = (_float_pairs, _special, _exact_floats, _integers, _conversions, _directed)
    with np.errstate(all="ignore"):
        return [case for part in parts for case in part()]
