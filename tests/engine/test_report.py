# SPDX-License-Identifier: MIT
"""device_print, device_assert, their static forms, and the error for an operation that the engine does not know."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from tests.engine import harness
from triton_dist import errors
from triton_dist.backends.cpu.codegen.kernel import HANDLERS
from triton_dist.backends.cpu.native.llvm import assembly
from triton_dist.backends.cpu.native.target import host


@triton.jit
def prints(x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.device_print("n", n)
    tl.device_print("100% x:", tl.load(x + i))
    tl.device_print("only text")
    tl.device_print("hex", tl.load(x + i).to(tl.int32), hex=True)


def test_device_print(capfd: pytest.CaptureFixture[str]) -> None:
    prints[(2,)](torch.tensor([1.5, -2.0]), 7, N=2)
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 2 * (1 + 2 + 1 + 2)
    for p in range(2):
        mine = [line for line in lines if line.startswith(f"pid ({p}, 0, 0)")]
        assert any(line.endswith(" n: 7") for line in mine)
        assert any(line.endswith(" 100% x: 1.500000") for line in mine)
        assert any("only text" in line for line in mine)
        assert any("hex" in line and line.endswith("0xfffffffe") for line in mine)


@triton.jit
def asserts(x, limit, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    tl.device_assert(value < limit, "too large")
    tl.store(x + i, value * 0)


def test_device_assert() -> None:
    x = torch.arange(16.0)
    asserts[(1,)](x, 16.0, N=16, debug=True)
    assert not x.any()
    x = torch.arange(16.0)
    with pytest.raises(errors.TritonDistError, match="too large"):
        asserts[(1,)](x, 15.0, N=16, debug=True)
    # The program ended there.
    assert x[1] == 1


def test_device_assert_is_nothing_without_debug() -> None:
    x = torch.arange(16.0)
    asserts[(1,)](x, 3.0, N=16)
    assert not x.any()


@triton.jit
def static_checks(o, N: tl.constexpr):
    tl.static_assert(N % 4 == 0, "N must be a multiple of four")
    tl.static_print("N is", N)
    tl.store(o, N)


def test_static(capsys: pytest.CaptureFixture[str]) -> None:
    o = torch.zeros(1, dtype=torch.int32)
    static_checks[(1,)](o, N=8)
    assert o.item() == 8
    with pytest.raises(triton.CompilationError, match="multiple of four"):
        static_checks[(1,)](o, N=6)
    capsys.readouterr()


def test_unknown_operation_names_op_and_line() -> None:
    kernel = harness.module(
        """@triton.jit
def kernel(x):
    i = tl.arange(0, 4)
    y = tl.inline_asm_elementwise("frobnicate $0, $1;", "=r,r", [tl.load(x + i)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x + i, y)
"""
    ).kernel
    with pytest.raises(errors.UnsupportedOpError) as caught:
        kernel[(1,)](torch.zeros(4, dtype=torch.int32))
    message = str(caught.value)
    assert "inline_asm" in message
    assert ".py:9" in message


@triton.jit
def turned(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.flip(tl.load(x + i), 0) + 1.25)


def test_a_mistake_of_the_engine_names_the_operation_and_the_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # nothing is compiled yet

    def fails(*_: object) -> None:
        raise KeyError("nobody")

    monkeypatch.setitem(HANDLERS, "tt.store", fails)
    with pytest.raises(errors.CompilerFault, match=r"test_report.py:\d+.*failed at tt.store \(KeyError: 'nobody'\)"):
        turned[(1,)](torch.zeros(4), torch.zeros(4), N=4)


def test_what_llvm_does_not_take_is_a_mistake_of_the_engine() -> None:
    with pytest.raises(errors.CompilerFault, match="LLVM's verifier"):
        assembly("define i32 @kernel() { ret i64 0 }", host())
