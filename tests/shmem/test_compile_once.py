# SPDX-License-Identifier: MIT
"""PEs that are threads compile a kernel once among them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.testing import run_pes


@triton.jit
def write_rank_kernel(out_ptr, ADDED: tl.constexpr):
    tl.store(out_ptr, dl.rank() + ADDED)


@triton.jit
def wrong_kernel(out_ptr):
    tl.store(out_ptr, tl.arange(0, 3))


def test_one_pe_compiles_for_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(triton.knobs.compilation, "listener", lambda **seen: compiled.append(seen["src"].name))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def write() -> list[int]:
        out = torch.zeros(1, dtype=torch.int32)
        values = []
        for _ in range(3):
            write_rank_kernel[(1,)](out, ADDED=10)
            values.append(int(out))
        return values

    assert run_pes(write, 4) == [[10 + pe] * 3 for pe in range(4)]
    assert compiled == ["write_rank_kernel"]


def test_an_error_of_the_compiler_reaches_the_caller() -> None:
    def launch() -> None:
        shmem.barrier_all()
        wrong_kernel[(1,)](torch.zeros(4, dtype=torch.int32))

    with pytest.raises(triton.CompilationError, match="power of 2"):
        run_pes(launch, 3)
