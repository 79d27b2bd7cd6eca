# SPDX-License-Identifier: MIT
"""TTIR that Triton makes in corners only, given as text: it becomes machine code."""

from __future__ import annotations

from triton_dist import ir
from triton_dist.backends.cpu.codegen.kernel import compile_module
from triton_dist.backends.cpu.native.llvm import assembly
from triton_dist.backends.cpu.native.target import host

POISON = """
tt.func public @kernel(%p: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %positive = arith.cmpi sgt, %n, %zero : i32
  %nothing = ub.poison : f32
  %nowhere = ub.poison : tensor<8x!tt.ptr<f32>>
  %values = ub.poison : tensor<8xf32>
  cf.cond_br %positive, ^bb1(%nothing : f32), ^bb2
^bb1(%value: f32):
  tt.store %p, %value : !tt.ptr<f32>
  tt.return
^bb2:
  ub.unreachable
}
"""
DEPENDENT = """
tt.func public @kernel(%p: !tt.ptr<f32>, %x: f32) {
  tt.grid_dependency_wait
  tt.store %p, %x : !tt.ptr<f32>
  tt.grid_dependency_launch_dependents
  tt.return
}
"""


def _compile(text: str) -> str:
    return assembly(compile_module(ir.parse(f"module {{{text}}}"), host()).llvm_ir, host())


def test_what_nothing_depends_on() -> None:
    assert "ret" in _compile(POISON)


def test_a_grid_that_depends_on_the_one_before() -> None:
    assert "ret" in _compile(DEPENDENT)
