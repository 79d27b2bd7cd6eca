# SPDX-License-Identifier: MIT
"""torch.compile on CPU tensors is what it was: our back end beside it changes neither its code nor its results."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(not COMPILER, reason="inductor needs a C++ compiler for CPU code")

MODEL = """
import torch
import triton, triton_dist
import torch.sparse._triton_ops  # defines kernels if torch sees a usable Triton
import torch._inductor.config
from torch._inductor.utils import run_and_get_code

torch._inductor.config.cpp.simdlen = 1  # scalar code: it compiles in a third of the time

torch.manual_seed(0)
layers = torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 10)
model = torch.nn.Sequential(*layers)
x = torch.randn(8, 64)
expected = model(x)
expected.square().sum().backward()
gradients = [p.grad.clone() for p in model.parameters()]
model.zero_grad()

compiled = torch.compile(model)
y, code = run_and_get_code(compiled, x)
y.square().sum().backward()
torch.testing.assert_close(y, expected)
for parameter, gradient in zip(model.parameters(), gradients):
    torch.testing.assert_close(parameter.grad, gradient)
assert code and all("triton" not in text for text in code), code
print("right")
"""

OWN_KERNEL = """
import torch
import torch._inductor.config
import triton
import triton.language as tl

torch._inductor.config.cpp.simdlen = 1

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

@torch.compile(fullgraph=True)
def function(x, y):
    out = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out * 2

x, y = torch.randn(1000), torch.randn(1000)
torch.testing.assert_close(function(x, y), (x + y) * 2)
print("right")
"""


def _run(tmp_path: Path, text: str) -> None:
    script = tmp_path / "compiled.py"
    script.write_text(textwrap.dedent(text))
    folders = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    # Compiled in the process itself: workers would outlive a test that fails.
    environment = {**os.environ, **folders, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    found = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=110)
    assert found.stdout.strip().endswith("right"), found.stderr


def test_a_model_compiles_to_cpp(tmp_path: Path) -> None:
    _run(tmp_path, MODEL)


def test_a_kernel_of_ones_own_in_compiled_code(tmp_path: Path) -> None:
    """The host engine runs it, where a stock Triton finds no driver for CPU tensors."""
    _run(tmp_path, OWN_KERNEL)
