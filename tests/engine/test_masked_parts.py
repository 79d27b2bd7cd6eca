# SPDX-License-Identifier: MIT
"""Masked loads that LLVM cuts into parts, where the machine has no AVX-512: a pass of its ended the process."""

from __future__ import annotations

import platform

import pytest

from triton_dist.backends.cpu.native import llvm
from triton_dist.backends.cpu.native.target import native, without_avx512

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the pass is of x86")

TEXT = """
define i32 @kernel(ptr noalias %scratch) nounwind {
entry:
  %rows = getelementptr i8, ptr %scratch, i64 256
  %tile = getelementptr i8, ptr %scratch, i64 384
  br label %loop
loop:
  %i = phi i64 [0, %entry], [1, %loop]
  %at = mul i64 80, %i
  %from = inttoptr i64 %at to ptr
  %place = getelementptr i8, ptr %rows, i64 %i
  %byte = load i8, ptr %place, align 1
  %row = trunc i8 %byte to i1
  %first = insertelement <32 x i1> undef, i1 %row, i32 0
  %all = shufflevector <32 x i1> %first, <32 x i1> undef, <32 x i32> zeroinitializer
  %mask = and <32 x i1> %all, <COLUMNS>
  %got = call <32 x float> @llvm.masked.load.v32f32.p0(ptr %from, i32 4, <32 x i1> %mask, <32 x float> zeroinitializer)
  store <32 x float> %got, ptr %tile, align 4
  br label %loop
}
declare <32 x float> @llvm.masked.load.v32f32.p0(ptr, i32, <32 x i1>, <32 x float>)
"""


@pytest.mark.parametrize("columns", [1, 8, 17, 20, 31, 32])
def test_a_row_of_a_tile_with_fewer_columns(columns: int) -> None:
    mask = ", ".join(f"i1 {int(column < columns)}" for column in range(32))
    assert "vmaskmov" in llvm.assembly(TEXT.replace("COLUMNS", mask), without_avx512(native()))
