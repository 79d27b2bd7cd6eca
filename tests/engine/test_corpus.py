# SPDX-License-Identifier: MIT
"""Every kernel of the corpus becomes machine code; the larger ones run and are checked."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
from triton.compiler.compiler import ASTSource

from tests.corpus.registry import Entry, entries, get
from triton_dist import errors

# What no CPU has: a GPU's assembly.
FOREIGN = {"inline_assembly"}


@pytest.mark.backends("cpu")  # another back end refuses what its library lacks
@pytest.mark.parametrize("entry", entries(), ids=lambda e: e.name)
def test_compiles(entry: Entry) -> None:
    target = triton.runtime.driver.active.get_current_target()
    source = ASTSource(entry.fn, entry.signature, entry.constexprs, entry.attrs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if entry.name in FOREIGN:
            with pytest.raises(errors.UnsupportedOpError):
                triton.compile(source, target=target)
            return
        compiled = triton.compile(source, target=target)
    assert compiled.asm["obj"][:4] == b"\x7fELF"
    assert "define" in compiled.asm["llir"]


def _run(name: str, grid: tuple[int, ...], *arguments: Any) -> None:
    entry = get(name)
    names = iter(arguments)
    values = {key: entry.constexprs[key] if key in entry.constexprs else next(names) for key in entry.fn.arg_names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entry.fn[grid](**values)


def _half(*shape: int) -> torch.Tensor:
    return (torch.randn(shape) / 4).half()


def run_matmul() -> None:
    a, b, c = _half(100, 96), _half(96, 130), torch.zeros(100, 130, dtype=torch.float16)
    _run("matmul", (2 * 3,), a, b, c, 100, 130, 96, 96, 130, 130)
    torch.testing.assert_close(c.float(), torch.nn.functional.leaky_relu(a.float() @ b.float()), rtol=1e-2, atol=1e-2)


def run_matmul_exact() -> None:
    a, b, c = torch.randn(32, 64), torch.randn(64, 32), torch.empty(32, 32)
    _run("matmul_exact", (1,), a, b, c, 64)
    torch.testing.assert_close(c, a @ b, rtol=1e-5, atol=1e-5)


def run_matmul_int8() -> None:
    a, b = (torch.randint(-128, 128, (64, 64), dtype=torch.int8) for _ in range(2))
    c = torch.empty(64, 64, dtype=torch.int32)
    _run("matmul_int8", (1,), a, b, c)
    assert torch.equal(c, a.int() @ b.int().T)


def run_matmul_fp8() -> None:
    a, b = (torch.randn(64, 64).to(torch.float8_e5m2) for _ in range(2))
    c = torch.empty(64, 64)
    _run("matmul_fp8", (1,), a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-4, atol=1e-4)


def run_grouped_matmul() -> None:
    shapes = [(64, 32, 96), (32, 64, 32), (96, 96, 64)]
    a = [_half(m, k) for m, _, k in shapes]
    b = [_half(k, n) for _, n, k in shapes]
    c = [torch.zeros(m, n, dtype=torch.float16) for m, n, _ in shapes]
    pointers = [torch.tensor([t.data_ptr() for t in ts]) for ts in (a, b, c)]
    sizes = torch.tensor(shapes, dtype=torch.int32)
    strides = torch.tensor([(k, n, n) for _, n, k in shapes], dtype=torch.int32)
    _run("grouped_matmul", (4,), *pointers, sizes, strides, 3)
    for x, y, z in zip(a, b, c, strict=True):
        torch.testing.assert_close(z.float(), x.float() @ y.float(), rtol=1e-2, atol=1e-2)


def run_persistent_matmul() -> None:
    a, b, c = _half(100, 80), _half(80, 130), torch.zeros(100, 130, dtype=torch.float16)
    _run("persistent_matmul", (4,), a, b, c, 100, 130, 80)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-2)


def run_descriptor_matmul() -> None:
    a, b, c = _half(100, 80), _half(130, 80), torch.zeros(100, 130, dtype=torch.float16)
    _run("descriptor_matmul", (2, 3), a, b, c, 100, 130, 80)
    torch.testing.assert_close(c.float(), a.float() @ b.float().T, rtol=1e-2, atol=1e-2)


def _decode(codes: torch.Tensor, axis: int) -> torch.Tensor:
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    return torch.stack([table[(codes & 15).long()], table[(codes >> 4).long()]], axis + 1).flatten(axis, axis + 1)


def run_block_scaled_matmul() -> None:
    k = 256
    a = torch.randint(0, 256, (128, k // 2), dtype=torch.uint8)
    b = torch.randint(0, 256, (k // 2, 128), dtype=torch.uint8)
    sa, sb = (torch.randint(122, 132, (128, k // 32), dtype=torch.uint8) for _ in range(2))
    c = torch.empty(128, 128)
    _run("block_scaled_matmul", (1,), a, sa, b, sb, c, k)
    left = _decode(a, 1) * torch.exp2(sa.float() - 127).repeat_interleave(32, 1)
    right = _decode(b, 0) * torch.exp2(sb.float() - 127).repeat_interleave(32, 1).T
    torch.testing.assert_close(c, left @ right, rtol=1e-4, atol=1e-2)


def run_flash_attention() -> None:
    s, d, heads, scale = 128, 64, 2, 0.125
    q, k, v = (_half(heads, s, d) for _ in range(3))
    out, lse = torch.zeros(heads, s, d, dtype=torch.float16), torch.zeros(heads, s)
    _run("flash_attention", (s // 64, heads), q, k, v, out, lse, scale, s)
    scores = (q.float() @ k.float().mT) * scale
    scores = scores.masked_fill(~torch.ones(s, s, dtype=torch.bool).tril(), float("-inf"))
    torch.testing.assert_close(out.float(), scores.softmax(-1) @ v.float(), rtol=1e-2, atol=1e-2)


def run_layer_norm() -> None:
    rows, n = 5, 700
    x, w, b = _half(rows, n), _half(n), _half(n)
    y, mean, rstd = torch.zeros_like(x), torch.zeros(rows), torch.zeros(rows)
    _run("layer_norm", (rows,), x, y, w, b, mean, rstd, n, n, 1e-5)
    expected = torch.nn.functional.layer_norm(x.float(), (n,), w.float(), b.float(), 1e-5)
    torch.testing.assert_close(y.float(), expected, rtol=2e-3, atol=2e-3)


def run_layer_norm_backward() -> None:
    rows, n = 24, 200
    x, w, dy = _half(rows, n), _half(n), _half(rows, n)
    mean, rstd = x.float().mean(1), 1 / (x.float().var(1, correction=0) + 1e-5).sqrt()
    dx, dw, db = torch.zeros_like(x), torch.zeros(8, n), torch.zeros(8, n)
    lock = torch.zeros(16, dtype=torch.int32)
    _run("layer_norm_backward", (rows,), dx, dy, dw, db, x, w, mean, rstd, lock, n, n)
    xf, wf = x.float().requires_grad_(), w.float().requires_grad_()
    bf = torch.zeros(n, requires_grad=True)
    torch.nn.functional.layer_norm(xf, (n,), wf, bf, 1e-5).backward(dy.float())
    for got, want in ((dx.float(), xf.grad), (dw.sum(0), wf.grad), (db.sum(0), bf.grad)):
        torch.testing.assert_close(got, want, rtol=1e-2, atol=1e-2)


def run_fused_softmax() -> None:
    x, out = torch.randn(37, 300), torch.empty(37, 300)
    _run("fused_softmax", (5,), out, x, 300, 300, 37, 300)
    torch.testing.assert_close(out, x.softmax(1))


def run_device_functions() -> None:
    for n in (2, 5):
        x = torch.tensor([3.0, 2.0])
        _run("device_functions", (1,), x, n)
        value = 4.0 if n > 3 else 6.0
        assert x[0] == (value + 2) * (value - 2)


def run_tensor_while() -> None:
    for limit in (0.01, 1.0):
        x, out = torch.linspace(0, 2, 64), torch.empty(64)
        _run("tensor_while", (1,), x, out, limit)
        rounds = max(0, math.ceil(math.log2(2 / limit)))
        expected = (x * 0.5**rounds + 1) * 2 if rounds > 3 else x * 0.5**rounds * 0.5
        torch.testing.assert_close(out, expected)


def run_nested_loops() -> None:
    n, m = 5, 9
    x = torch.randn(n * m)
    before = x.clone()
    _run("nested_loops", (1,), x, n, m)
    rows = [sum(before[i * m + j].item() for j in range(i, m) if (i + j) % 2 == 0) for i in range(n)]
    torch.testing.assert_close(x[0].item(), sum(r for r in rows if r > 0), rtol=1e-5, atol=1e-6)


def run_mapped_elements() -> None:
    x, y = torch.randn(64), torch.randn(64)
    high, low = torch.empty(64), torch.empty(64)
    _run("mapped_elements", (1,), x, y, high, low)
    assert torch.equal(high, torch.maximum(x, y))
    assert torch.equal(low, torch.minimum(x, y))


def run_spin_lock() -> None:
    lock, counter = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int64)
    _run("spin_lock", (50,), lock, counter)
    assert counter.item() == 50


def run_spin_on_flag() -> None:
    flag, data, out = torch.zeros(1, dtype=torch.int32), torch.zeros(64), torch.zeros(64)
    _run("spin_on_flag", (8,), flag, data, out)
    assert torch.equal(out, torch.arange(64.0))


def run_descriptor_rows() -> None:
    x, out = _half(40, 64), torch.zeros(40, 64, dtype=torch.float16)
    index = torch.randperm(40)[:32].int()
    _run("descriptor_rows", (1,), x, index, out, 40, 64)
    expected = torch.zeros_like(out)
    expected[index.long()] = x[index.long()]
    assert torch.equal(out, expected)


def run_unsigned_loops() -> None:
    out = torch.zeros(1, dtype=torch.int64)
    _run("unsigned_loops", (1,), out, 10, 20)
    assert out.item() == sum(range(10)) + sum(range(20))


RUNS: dict[str, Callable[[], None]] = {
    name.removeprefix("run_"): run for name, run in globals().items() if name.startswith("run_")
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str) -> None:
    torch.manual_seed(1)
    RUNS[name]()
