# SPDX-License-Identifier: MIT
"""Matrix products: element types, sizes from 1 up, transposed and batched operands, accumulators, block scales."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import triton

from tests.engine import harness
from triton_dist.backends.cpu.codegen import dot

SIZES = (
    (1, 1, 1), (1, 16, 16), (16, 1, 4), (2, 4, 8), (16, 16, 16), (4, 64, 2), (64, 4, 32), (32, 64, 16), (64, 64, 64),
    (128, 16, 8),
)  # fmt: skip
FLOATS = ("float16", "bfloat16", "float32", "float64")
FP8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


def _matrix(dtype: str, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Small integers: every product and sum is exact in fp32, whatever the order."""
    numbers = torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed))
    return numbers.float().to(getattr(torch, dtype)) if "float" in dtype else numbers.to(getattr(torch, dtype))


def _accumulator(dtype: str) -> torch.dtype:
    return {"int8": torch.int32, "float64": torch.float64}.get(dtype, torch.float32)


def _check(
    text: str, dtype: str, operands: dict[str, torch.Tensor], expected: torch.Tensor, out: torch.dtype | None = None
) -> None:
    wanted = {text: (tuple(expected.shape), out or _accumulator(dtype))}
    got = harness.tiles(wanted, operands)[text]
    torch.testing.assert_close(got.double(), expected, rtol=0, atol=0)


@pytest.mark.parametrize("most", range(1, 17))
def test_tiles_hold_each_row_once(most: int) -> None:
    """Tiles of one height, then of one less: 16 registers take six rows, which no power of two is a multiple of."""
    for m in (1 << bit for bit in range(10)):
        starts, at = dot.row_spans(m, most), 0
        for start, end, step in starts:
            assert start == at < end
            assert 0 < step <= most
            assert (end - start) % step == 0
            at = end
        assert at == m
        assert len(starts) < 3


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize("dtype", [*FLOATS, "int8", *FP8])
def test_dot(dtype: str, m: int, n: int, k: int) -> None:
    a, b = _matrix(dtype, (m, k), 1), _matrix(dtype, (k, n), 2)
    _check("tl.dot(a, b)", dtype, {"a": a, "b": b}, a.double() @ b.double())


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (32, 8, 64), (4, 64, 2), (64, 32, 16)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("form", ["a.T", "b.T", "both", "c", "2 c", "result.T"])
def test_forms(form: str, dtype: str, m: int, n: int, k: int) -> None:
    """Transposed operands, an addend, and a transposed result."""
    a, b = _matrix(dtype, (m, k), 1), _matrix(dtype, (k, n), 2)
    exact = a.double() @ b.double()
    if form in ("a.T", "both"):
        a = a.T.contiguous()
    if form in ("b.T", "both"):
        b = b.T.contiguous()
    left, right = (
        ("a", "b")
        if form in ("c", "2 c", "result.T")
        else ("tl.trans(a)" if form != "b.T" else "a", "tl.trans(b)" if form != "a.T" else "b")
    )
    operands = {"a": a, "b": b}
    if form.endswith("c"):
        c = _matrix("int32", (m, n), 3)
        operands["c"] = c.to(_accumulator(dtype))
        addend, times = ("c", 1) if form == "c" else ("acc=c * 2", 2)
        kind = ", out_dtype=tl.int32" if dtype == "int8" else ""
        _check(f"tl.dot({left}, {right}, {addend}{kind})", dtype, operands, exact + c * times)
    elif form == "result.T":
        _check(f"tl.trans(tl.dot({left}, {right}))", dtype, operands, exact.T)
    else:
        _check(f"tl.dot({left}, {right})", dtype, operands, exact)


@pytest.mark.parametrize(("batch", "m", "n", "k"), [(1, 16, 16, 16), (4, 16, 16, 16), (2, 4, 32, 8), (8, 1, 2, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_batched(dtype: str, batch: int, m: int, n: int, k: int) -> None:
    a, b = _matrix(dtype, (batch, m, k), 1), _matrix(dtype, (batch, k, n), 2)
    _check("tl.dot(a, b)", dtype, {"a": a, "b": b}, a.double() @ b.double())


@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"])
def test_precision_names(precision: str) -> None:
    """All are computed in fp32."""
    a, b = torch.randn(32, 64), torch.randn(64, 16)
    text = f"tl.dot(a, b, input_precision='{precision}')"
    got = harness.tiles({text: ((32, 16), torch.float32)}, {"a": a, "b": b})[text]
    torch.testing.assert_close(got, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_out_dtype(dtype: str) -> None:
    a, b = _matrix("float16", (16, 32), 1), _matrix("float16", (32, 16), 2)
    text = f"tl.dot(a, b, out_dtype=tl.{dtype})"
    _check(text, "float16", {"a": a, "b": b}, a.double() @ b.double(), getattr(torch, dtype))


EXPRESSIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "tl.dot(a, b) + tl.dot(b, a)": lambda x, y: x @ y + y @ x,
    "tl.dot(tl.dot(a, b), a)": lambda x, y: x @ y @ x,
    "tl.dot(a + b, a - b)": lambda x, y: (x + y) @ (x - y),
    "tl.dot(a, a)": lambda x, y: x @ x,
    "tl.dot(a, b) * tl.sum(a, 1)[:, None]": lambda x, y: (x @ y) * x.sum(1)[:, None],
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text: str) -> None:
    a, b = _matrix("float32", (16, 16), 1), _matrix("float32", (16, 16), 2)
    expected = EXPRESSIONS[text](a.double(), b.double())
    _check(text, "float32", {"a": a, "b": b}, expected)


# Block scales

newer = pytest.mark.skipif(
    not hasattr(triton.language, "atomic_poll"), reason="batches of scales, and blocks of 16, need Triton 3.9"
)

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def _fp4(codes: torch.Tensor, axis: int) -> torch.Tensor:
    low, high = E2M1[(codes & 15).long()], E2M1[(codes >> 4).long()]
    return torch.stack([low, high], axis + 1).flatten(axis, axis + 1)


def _spread(scale: torch.Tensor) -> torch.Tensor:
    return torch.exp2(scale.double() - 127).repeat_interleave(32, 1)


@pytest.mark.parametrize(
    ("left", "right"), [(x, y) for x in ("e2m1", "e4m3", "e5m2", "bf16", "fp16") for y in ("e2m1", "e4m3", "e5m2")]
)
@pytest.mark.parametrize("scales", ["both", "left", "right"])
def test_dot_scaled(left: str, right: str, scales: str) -> None:
    m, n, k = 32, 16, 64
    a, exact_a = _scaled_operand(left, (m, k), 1, 1)
    b, exact_b = _scaled_operand(right, (k, n), 0, 2)
    generator = torch.Generator().manual_seed(3)
    scale_a, scale_b = (
        torch.randint(120, 134, (rows, k // 32), dtype=torch.uint8, generator=generator) for rows in (m, n)
    )
    operands = {"a": a, "b": b}
    names = []
    for name, scale, wanted in (("s", scale_a, "left"), ("t", scale_b, "right")):
        used = scales in ("both", wanted) and not (name == "s" and left in ("bf16", "fp16"))
        names.append(name if used else "None")
        if used:
            operands[name] = scale
    if names[0] == "s":
        exact_a = exact_a * _spread(scale_a)
    if names[1] == "t":
        exact_b = exact_b * _spread(scale_b).T
    text = f"tl.dot_scaled(a, {names[0]}, '{left}', b, {names[1]}, '{right}')"
    got = harness.tiles({text: ((m, n), torch.float32)}, operands)[text]
    torch.testing.assert_close(got.double(), exact_a @ exact_b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("left", "right"), [("e2m1", "e2m1"), ("e2m1", "e4m3"), ("bf16", "e2m1")])
@pytest.mark.parametrize("batch", [None, pytest.param(2, marks=newer)])
def test_fp4_packed_along_the_other_dimension(left: str, right: str, batch: int | None) -> None:
    m, n, k, ranks = 16, 32, 64, () if batch is None else (batch,)
    axis = len(ranks)
    a, exact_a = _scaled_operand(left, (*ranks, m, k), axis, 1)
    b, exact_b = _scaled_operand(right, (*ranks, k, n), axis + 1, 2)
    scale = torch.randint(120, 134, (*ranks, n, k // 32), dtype=torch.uint8)
    exact_b = exact_b * torch.exp2(scale.double() - 127).repeat_interleave(32, -1).mT
    packs = f"lhs_k_pack={left != 'e2m1'}, rhs_k_pack={right != 'e2m1'}"
    text = f"tl.dot_scaled(a, None, '{left}', b, t, '{right}', {packs})"
    got = harness.tiles({text: ((*ranks, m, n), torch.float32)}, {"a": a, "b": b, "t": scale})[text]
    torch.testing.assert_close(got.double(), exact_a @ exact_b, rtol=1e-5, atol=1e-4)


@newer
def test_blocks_of_16_with_8_bit_float_scales() -> None:
    m, n, k = 16, 16, 64
    a, exact_a = _scaled_operand("e2m1", (m, k), 1, 1)
    b, exact_b = _scaled_operand("e2m1", (k, n), 0, 2)
    scale = (torch.rand(m, k // 16) * 8).to(torch.float8_e4m3fn)
    other = (torch.rand(n, k // 16) * 8).to(torch.float8_e4m3fn)
    exact_a = exact_a * scale.double().repeat_interleave(16, 1)
    exact_b = exact_b * other.double().repeat_interleave(16, 1).T
    text = "tl.dot_scaled(a, s, 'e2m1', b, t, 'e2m1')"
    got = harness.tiles({text: ((m, n), torch.float32)}, {"a": a, "b": b, "s": scale, "t": other})[text]
    torch.testing.assert_close(got.double(), exact_a @ exact_b, rtol=1e-5, atol=1e-4)


def _scaled_operand(kind: str, shape: tuple[int, ...], axis: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    if kind == "e2m1":
        packed = [n // 2 if d == axis else n for d, n in enumerate(shape)]
        codes = torch.randint(0, 256, packed, dtype=torch.uint8, generator=generator)
        return codes, _fp4(codes, axis)
    dtype = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16, "fp16": torch.float16}[
        kind
    ]
    values = torch.randn(shape, generator=generator).to(dtype)
    return values, values.double()
