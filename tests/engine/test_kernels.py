# SPDX-License-Identifier: MIT
"""Kernels as people write them, against torch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.engine.kernels import attention, loss, matmul, norm, serving


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(3)


TOLERANCE = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}
DTYPES = list(TOLERANCE)


def _close(got: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> None:
    torch.testing.assert_close(got.float(), expected.float(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("n", [1, 64, 300, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm(dtype: torch.dtype, n: int) -> None:
    x, w, b = torch.randn(9, n).to(dtype), torch.randn(n), torch.randn(n)
    dy = torch.randn(9, n).to(dtype)
    y, mean, rstd = norm.layer_norm(x, w, b)
    leaves = [t.double().requires_grad_() for t in (x, w, b)]
    expected = functional.layer_norm(leaves[0], (n,), leaves[1], leaves[2], 1e-5)
    _close(y, expected, dtype)
    expected.backward(dy.double())
    tolerant = torch.float16 if dtype == torch.float32 and n == 1 else dtype
    for got, leaf in zip(norm.layer_norm_gradients(dy, x, w, mean, rstd), leaves, strict=True):
        assert leaf.grad is not None
        _close(got, leaf.grad, tolerant)


@pytest.mark.parametrize("n", [1, 255, 256, 700])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm(dtype: torch.dtype, n: int) -> None:
    x, w = torch.randn(6, n).to(dtype), torch.randn(n)
    _close(norm.rms_norm(x, w), functional.rms_norm(x.double(), (n,), w.double(), 1e-6), dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 32, 100])
@pytest.mark.parametrize("d", [16, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention(dtype: torch.dtype, d: int, length: int, causal: bool) -> None:
    q, k, v, do = (torch.randn(3, length, d).to(dtype) for _ in range(4))
    leaves = [t.double().requires_grad_() for t in (q, k, v)]
    expected = functional.scaled_dot_product_attention(*leaves, is_causal=causal)
    o, lse = attention.attention(q, k, v, causal)
    _close(o, expected, dtype)
    expected.backward(do.double())
    for got, leaf in zip(attention.attention_gradients(q, k, v, o, lse, do, causal), leaves, strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(got.double(), leaf.grad, rtol=10 * TOLERANCE[dtype], atol=4 * TOLERANCE[dtype])


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("d", [2, 64])
def test_rotary(d: int, heads: int) -> None:
    x = torch.randn(10, heads, d)
    angle = torch.arange(10.0)[:, None] / 10000 ** (torch.arange(d // 2) / (d // 2))
    y = attention.rotary(x, angle.cos().contiguous(), angle.sin().contiguous())
    turned = (
        torch.view_as_complex(torch.stack(x.chunk(2, -1), -1)) * torch.polar(torch.ones_like(angle), angle)[:, None]
    )
    torch.testing.assert_close(y, torch.cat([turned.real, turned.imag], -1))


@pytest.mark.parametrize("n", [2, 512, 1300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cross_entropy(dtype: torch.dtype, n: int) -> None:
    logits, target = (4 * torch.randn(12, n)).to(dtype), torch.randint(0, n, (12,))
    target[5] = -100
    got, gradient = loss.cross_entropy(logits, target)
    leaf = logits.double().requires_grad_()
    expected = functional.cross_entropy(leaf, target, reduction="none")
    expected.sum().backward()
    torch.testing.assert_close(got, expected.float(), rtol=1e-5, atol=1e-5)
    assert leaf.grad is not None
    torch.testing.assert_close(gradient, leaf.grad.float(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(p: float) -> None:
    x = torch.randn(20000)
    y = loss.dropout(x, p, 11)
    assert torch.equal(y, loss.dropout(x, p, 11))
    assert not torch.equal(y, loss.dropout(x, p, 12))
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] / (1 - p))
    assert abs(kept.float().mean() - (1 - p)) < 0.02


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 32), (50, 70, 100), (1, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn, torch.float8_e5m2])
def test_quantised_matmul(dtype: torch.dtype, m: int, n: int, k: int) -> None:
    a, b = torch.randn(m, k), torch.randn(n, k)
    got, exact = matmul.quantised_matmul(a, b, dtype), a @ b.T
    allowed = {torch.int8: 0.03, torch.float8_e4m3fn: 0.06, torch.float8_e5m2: 0.12}[dtype]
    assert (got - exact).norm() <= allowed * (a.abs() @ b.abs().T).norm()
    # Exact, given the quantised operands.
    (qa, sa), (qb, sb) = matmul.quantise(a, dtype), matmul.quantise(b, dtype)
    expected = (qa.double() * sa.double()[:, None]) @ (qb.double() * sb.double()[:, None]).T
    torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("programs", [1, 2, 5, 7, 24])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (70, 50, 130)])
def test_stream_k_matmul(m: int, n: int, k: int, programs: int) -> None:
    a, b = torch.randn(m, k), torch.randn(k, n)
    torch.testing.assert_close(matmul.stream_k_matmul(a, b, programs), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("top", [1, 2, 4])
@pytest.mark.parametrize("count", [4, 8])
def test_mixture_of_experts(count: int, top: int) -> None:
    tokens, d = 37, 64
    x, logits, w = torch.randn(tokens, d), torch.randn(tokens, count), torch.randn(count, d, d) / 8
    values, chosen = logits.topk(top, -1)
    expected = torch.einsum("te,ted->td", values.softmax(-1), torch.einsum("td,tedf->tef", x, w[chosen]))
    torch.testing.assert_close(matmul.mixture_of_experts(x, logits, w, top), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("page", [1, 8, 16])
@pytest.mark.parametrize("d", [16, 64])
def test_paged_attention(d: int, page: int) -> None:
    lengths = torch.tensor([1, 17, 40], dtype=torch.int32)
    keys, values = torch.randn(120, page, 2, d), torch.randn(120, page, 2, d)
    pages = torch.randperm(120).reshape(3, 40).int()
    q = torch.randn(3, 2, d)
    got = serving.paged_attention(q, keys, values, pages, lengths)
    for n, length in enumerate(lengths):
        own_keys, own_values = (t[pages[n].long()].reshape(-1, 2, d)[:length] for t in (keys, values))
        weights = torch.softmax(torch.einsum("hd,nhd->nh", q[n], own_keys) * d**-0.5, 0)
        _close(got[n], torch.einsum("nh,nhd->hd", weights, own_values), torch.float32)


@pytest.mark.parametrize(("m", "n", "k", "group"), [(1, 8, 32, 32), (5, 48, 128, 32), (20, 64, 256, 128)])
def test_matmul_with_4_bit_weights(m: int, n: int, k: int, group: int) -> None:
    x, codes, zeros = torch.randn(m, k), torch.randint(0, 16, (k, n)), torch.randint(0, 16, (k // group, n))
    scales = torch.rand(k // group, n)
    got = serving.int4_matmul(x, serving.pack_int4(codes, 0), scales, serving.pack_int4(zeros, 1))
    weights = (codes - zeros.repeat_interleave(group, 0)) * scales.repeat_interleave(group, 0)
    torch.testing.assert_close(got, x @ weights, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("t", "d"), [(1, 4), (64, 16), (256, 2)])
def test_recurrence(t: int, d: int) -> None:
    decays, inputs = torch.rand(t, d), torch.randn(t, d)
    expected, state = [], torch.zeros(d)
    for decay, new in zip(decays, inputs, strict=True):
        state = decay * state + new
        expected.append(state)
    _close(serving.recurrence(decays, inputs), torch.stack(expected), torch.float32)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 32, 32), (200, 144, 96), (30, 40, 56)])
@pytest.mark.parametrize("halves", [False, True])
def test_persistent_matmul_through_descriptors(m: int, n: int, k: int, halves: bool) -> None:
    a, b = torch.randn(m, k).half(), torch.randn(n, k).half()
    torch.testing.assert_close(serving.persistent_matmul(a, b, halves), a @ b.T, rtol=1e-2, atol=1e-2)
