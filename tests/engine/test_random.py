# SPDX-License-Identifier: MIT
"""The random numbers: Philox 4x32, bit for bit, against an independent one in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.engine import harness

SEEDS = (0, 1, 42, 2**31 - 1, 2**32 - 1, 2**32, 123456789012345)


def philox(seed: int, counter: np.ndarray, rounds: int = 10) -> list[np.ndarray]:
    """Salmon et al. 2011: 4 words of 32 bits; the counter's lowest word counts, the key is the seed."""
    mask = np.uint64(0xFFFFFFFF)
    words = [counter.astype(np.uint64), *(np.zeros(len(counter), np.uint64) for _ in range(3))]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(rounds):
        a, b = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (b >> np.uint64(32)) ^ words[1] ^ np.uint64(key[0]),
            b & mask,
            (a >> np.uint64(32)) ^ words[3] ^ np.uint64(key[1]),
            a & mask,
        ]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return [w.astype(np.uint32) for w in words]


def _uniform(word: np.ndarray) -> np.ndarray:
    """Triton's mapping of an integer to [0, 1)."""
    signed = word.view(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)


OFFSETS = torch.cat([torch.arange(192), torch.tensor([2**31 - 1, 2**30, 10**9, 77] * 16)]).to(torch.int32)


@pytest.mark.parametrize("seed", SEEDS)
def test_randint4x(seed: int) -> None:
    texts = [f"tl.randint4x({seed}, a)[{n}]" for n in range(4)]
    got = harness.evaluate(dict.fromkeys(texts, torch.int32), {"a": OFFSETS})
    for text, word in zip(texts, philox(seed, OFFSETS.numpy().astype(np.int64)), strict=True):
        np.testing.assert_array_equal(got[text].numpy().view(np.uint32), word)


@pytest.mark.parametrize("rounds", [1, 6, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_randint_and_rand(seed: int, rounds: int) -> None:
    integer, uniform = f"tl.randint({seed}, a, {rounds})", f"tl.rand({seed}, a, {rounds})"
    got = harness.evaluate({integer: torch.int32, uniform: torch.float32}, {"a": OFFSETS})
    word = philox(seed, OFFSETS.numpy().astype(np.int64), rounds)[0]
    np.testing.assert_array_equal(got[integer].numpy().view(np.uint32), word)
    np.testing.assert_array_equal(got[uniform].numpy(), _uniform(word))


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_randn(seed: int) -> None:
    """Box and Muller's transformation of two uniform numbers."""
    text = f"tl.randn({seed}, a)"
    got = harness.evaluate({text: torch.float32}, {"a": OFFSETS})[text].numpy()
    first, second = (_uniform(w) for w in philox(seed, OFFSETS.numpy().astype(np.int64))[:2])
    radius = np.sqrt(-2 * np.log(np.maximum(first, np.float32(1e-7)).astype(np.float64)))
    np.testing.assert_allclose(
        got, radius * np.cos(6.283185307179586 * second.astype(np.float64)), rtol=1e-4, atol=2e-6
    )


def test_seed_from_memory() -> None:
    kernel = harness.module(
        "@triton.jit\ndef kernel(seeds, o):\n    i = tl.arange(0, 64)\n"
        "    tl.store(o + i, tl.rand(tl.load(seeds + tl.program_id(0)), i))\n"
    ).kernel
    o = torch.empty(64)
    kernel[(1,)](torch.tensor([991]), o)
    np.testing.assert_array_equal(o.numpy(), _uniform(philox(991, np.arange(64))[0]))


def test_looks_uniform() -> None:
    a = torch.arange(1 << 16, dtype=torch.int32)
    got = harness.evaluate({"tl.rand(5, a)": torch.float32, "tl.randn(5, a)": torch.float32}, {"a": a})
    uniform, normal = got.values()
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    assert abs(normal.mean()) < 0.02
    assert abs(normal.std() - 1) < 0.02
