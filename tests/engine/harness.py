# SPDX-License-Identifier: MIT
"""Many checks in one compilation: kernels generated from expressions, and their results by expression.

A case of the conformance suite is one expression on one set of operands. `evaluate` puts a list of expressions into one
kernel, so that a few compilations serve hundreds of cases.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

IMPORTS = """import triton
import triton.language as tl
from triton.language.extra import libdevice


"""


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="triton-dist-generated-")


def module(text: str) -> ModuleType:
    """A Python module with this text behind the usual imports. Triton reads a kernel's source from its file."""
    name = "generated_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    path = Path(_folder().name) / f"{name}.py"
    path.write_text(IMPORTS + text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def _source(names: Sequence[str], expressions: Sequence[str]) -> str:
    outs = [f"o{n}" for n in range(len(expressions))]
    lines = ["@triton.jit", f"def kernel({', '.join(f'p{n}' for n in names)}, {', '.join(outs)}, N: tl.constexpr):"]
    lines.append("    i = tl.program_id(0) * N + tl.arange(0, N)")
    lines += [f"    {n} = tl.load(p{n} + i)" for n in names]
    lines += [f"    tl.store({o} + i, {e})" for o, e in zip(outs, expressions, strict=True)]
    return "\n".join(lines) + "\n"


def evaluate(
    expressions: Mapping[str, torch.dtype], operands: Mapping[str, torch.Tensor], batch: int = 12
) -> dict[str, torch.Tensor]:
    """Each expression over the named operands (flat tensors of one length), as a tensor of its dtype."""
    count = next(iter(operands.values())).numel()
    block = min(count & -count, 256)
    results: dict[str, torch.Tensor] = {}
    todo = list(expressions)
    for start in range(0, len(todo), batch):
        part = todo[start : start + batch]
        outs = [torch.empty(count, dtype=expressions[e]) for e in part]
        kernel: Any = module(_source(list(operands), part)).kernel
        kernel[(count // block,)](*operands.values(), *outs, N=block)
        results.update(zip(part, outs, strict=True))
    return results


def index(shape: Sequence[int]) -> str:
    """The row-major offsets of a tile, as an expression."""
    terms, step = [], 1
    for axis in reversed(range(len(shape))):
        place = ", ".join(":" if d == axis else "None" for d in range(len(shape)))
        terms.append(
            f"tl.arange(0, {shape[axis]})[{place}] * {step}" if len(shape) > 1 else f"tl.arange(0, {shape[0]})"
        )
        step *= shape[axis]
    return " + ".join(terms)


Result = tuple[tuple[int, ...], torch.dtype]


def _tile_source(operands: Mapping[str, torch.Tensor], results: Mapping[str, Result], prelude: str) -> str:
    outs = [f"o{n}" for n in range(len(results))]
    lines = ["@triton.jit", f"def kernel({', '.join(f'p{n}' for n in operands)}, {', '.join(outs)}):"]
    for name, tensor in operands.items():
        place = f" + {index(tensor.shape)}" if tensor.dim() else ""
        lines.append(f"    {name} = tl.load(p{name}{place})")
    for out, (expression, (shape, _)) in zip(outs, results.items(), strict=True):
        place = f" + {index(shape)}" if shape else ""
        lines.append(f"    tl.store({out}{place}, {expression})")
    return prelude + "\n".join(lines) + "\n"


def tiles(
    results: Mapping[str, Result], operands: Mapping[str, torch.Tensor], prelude: str = "", batch: int = 10
) -> dict[str, torch.Tensor]:
    """Expressions over whole tiles: operands of any rank with extents that are powers of two, one program."""
    found: dict[str, torch.Tensor] = {}
    todo = list(results.items())
    for start in range(0, len(todo), batch):
        part = dict(todo[start : start + batch])
        outs = [torch.empty(shape, dtype=dtype) for shape, dtype in part.values()]
        kernel: Any = module(_tile_source(operands, part, prelude)).kernel
        kernel[(1,)](*operands.values(), *outs)
        found.update(zip(part, outs, strict=True))
    return found


def ulps(got: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Errors in units of the last place of the result's type; NaN and infinities must agree (error inf otherwise)."""
    with np.errstate(all="ignore"):
        rounded = reference.astype(got.dtype)
        largest = np.finfo(got.dtype).max
        unit = np.spacing(np.minimum(np.abs(rounded), largest)).astype(np.longdouble)
        error = np.abs(got.astype(np.longdouble) - reference.astype(np.longdouble)) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    wrong = np.isnan(got) | np.isinf(got) | np.isnan(rounded)
    error = np.where(wrong, np.inf, error)
    exact = same & (np.isnan(rounded) | np.isinf(rounded))
    return np.where(exact, 0.0, np.nan_to_num(error, nan=0.0, posinf=np.inf)).astype(np.float64)


def worst(got: np.ndarray, reference: np.ndarray, *operands: np.ndarray) -> tuple[float, str]:
    """The largest error in ulps, and where it is."""
    errors = ulps(got, reference)
    at = int(np.argmax(errors))
    where = ", ".join(str(o[at]) for o in operands)
    return float(errors[at]), f"at ({where}): got {got[at]!r}, expected {reference[at]!r}"


SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -0.5, 2.0, 3.0, -3.0, 1e-30, -1e-30)


def floats(kind: str, count: int, seed: int = 0, low: float | None = None, high: float | None = None) -> torch.Tensor:
    """Every exponent and sign at random, special values and the ends of the format; or, with bounds, uniform ones."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(kind)
    if low is not None and high is not None:
        return torch.from_numpy(random.uniform(low, high, count).astype(dtype))
    bits = random.integers(0, 2 ** (8 * dtype.itemsize), count, dtype=np.uint64).astype(f"u{dtype.itemsize}")
    values = bits.view(dtype).copy()
    info = np.finfo(dtype)
    extreme = [
        *SPECIAL,
        info.max,
        -info.max,
        info.tiny,
        -info.tiny,
        info.smallest_subnormal,
        1 + info.eps,
        1 - info.eps / 2,
    ]
    values[: len(extreme)] = extreme
    half = count // 2
    values[half:] = random.normal(0, 3, count - half).astype(dtype)
    return torch.from_numpy(values)


def integers(kind: str, count: int, seed: int = 0) -> torch.Tensor:
    """Random bit patterns, small numbers, and the ends of the type."""
    random = np.random.default_rng(seed)
    info = np.iinfo(kind)
    values = random.integers(info.min, info.max, count, dtype=kind, endpoint=True)
    values[: count // 4] = random.integers(max(-9, info.min), 9, count // 4).astype(kind)
    ends = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], dtype=kind)
    values[:6] = ends
    values[6:12] = ends[::-1]
    return torch.from_numpy(values)
