# SPDX-License-Identifier: MIT
"""Cross-entropy of a large vocabulary in one pass with its gradient, and dropout that can be repeated from its seed."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits, target, loss, gradient, n, ignore, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    logits += row * n
    gradient += row * n
    label = tl.load(target + row)
    top, total = -float("inf"), 0.0
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(logits + column, mask=column < n, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(value, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
        top = higher
    counts = label != ignore
    chosen = tl.load(logits + label, mask=counts, other=0.0).to(tl.float32)
    tl.store(loss + row, tl.where(counts, tl.log(total) + top - chosen, 0.0))
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(logits + column, mask=column < n, other=-float("inf")).to(tl.float32)
        share = tl.exp(value - top) / total - (column == label).to(tl.float32)
        tl.store(gradient + column, tl.where(counts, share, 0.0), mask=column < n)


@triton.jit
def dropout_kernel(x, y, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    value = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.where(keep, value / (1 - p), 0.0), mask=i < n)


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, ignore: int = -100) -> tuple[torch.Tensor, torch.Tensor]:
    """(loss, gradient) of each row."""
    rows, n = logits.shape
    loss, gradient = torch.empty(rows), torch.empty(rows, n)
    cross_entropy_kernel[(rows,)](logits, target, loss, gradient, n, ignore, BLOCK=512)
    return loss, gradient


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    y = torch.empty_like(x)
    dropout_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), p, seed, BLOCK=256)
    return y
