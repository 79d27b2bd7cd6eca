# SPDX-License-Identifier: MIT
"""The PTX of the library's collectives: 128-bit accesses, nothing called, one release for the signals to all."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import triton.language as tl

from tests.cuda.conftest import Compile, count
from triton_dist.kernels.all_gather import push_all_gather_kernel
from triton_dist.kernels.gemm_reduce_scatter import gemm_reduce_scatter_kernel
from triton_dist.kernels.reduction import pull_reduction_kernel, reduction_kernel

TYPES = {"signal_ptr": "*i64", "count_ptr": "*i64"}
NARROW = r"(ld|st)\.global(\.(?!v4)\w+)*\.[bu](8|16|32)\b"


def types_of(kernel: Any, constants: dict[str, Any]) -> list[str]:
    names = [name for name in kernel.arg_names if name not in constants]
    return [TYPES.get(name, "*bf16" if name.endswith("_ptr") else "i32") for name in names]


@pytest.mark.parametrize("pes", [2, 4])
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["reduce-scatter", "one-shot", "two-shot"])
def test_reductions(compiled: Compile, kind: int, pes: int) -> None:
    constants = {"KIND": kind, "ACCUMULATOR": tl.float32, "BLOCK": 4096, "PES": pes}
    made = compiled(reduction_kernel, *types_of(reduction_kernel, constants), constants=constants, num_warps=8)
    assert count(made, r"^call\b") == 0
    assert count(made, NARROW) == 0
    assert count(made, r"ld\.global(\.\w+)*\.v4\.b32") >= 2 * pes
    # One for the pieces that are sent; for the two-shot one for the sums as well.
    assert count(made, r"st\.release\.sys") == (2 if kind == 2 else 1)


def test_pull(compiled: Compile) -> None:
    constants = {"ACCUMULATOR": tl.float32, "BLOCK": 4096, "PES": 4}
    types = types_of(pull_reduction_kernel, constants)
    made = compiled(pull_reduction_kernel, *types, constants=constants, num_warps=8)
    assert count(made, r"^call\b") == 0
    assert count(made, NARROW) == 0
    assert count(made, r"ld\.global(\.\w+)*\.v4\.b32") == 8


@pytest.mark.parametrize("direct", [False, True])
def test_all_gather(compiled: Compile, direct: bool) -> None:
    constants = {"DIRECT": direct, "BLOCK": 4096, "PES": 4}
    types = types_of(push_all_gather_kernel, constants)
    made = compiled(push_all_gather_kernel, *types, constants=constants, num_warps=8)
    assert count(made, r"^call\b") == 0
    assert count(made, NARROW) == 0
    assert count(made, r"st\.global\.v4\.b32") >= 8
    assert count(made, r"st\.release\.sys") == (2 if direct else 1)




def hopper_gemms() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "h200" / "gemm.py"
    spec = importlib.util.spec_from_file_location("h200_gemm", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SUMS = {"EVEN_M": True, "EVEN_K": True, "OTHERS": 3}
BY_POINTERS = {**SUMS, "CHUNK": 1, "SUMS": 1, "DESCRIBED": False, "NEAR": False}
BY_DESCRIPTORS = {**SUMS, "CHUNK": 4, "SUMS": 3, "DESCRIBED": True}


@pytest.mark.parametrize("near", [False, True])
def test_gemm_reduce_scatter_by_descriptors(compiled: Compile, near: bool) -> None:
    """No register holds an address of an operand: all tiles are copied in bulk, and those of others too."""
    tile = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 16}
    constants = {**tile, **BY_DESCRIPTORS, "NEAR": near}
    kinds = {
        "a": "tensordesc<bf16[128, 64]>", "b": "tensordesc<bf16[64, 256]>", "came": "tensordesc<bf16[128, 256]>",
        "signal_ptr": "*i64", "count_ptr": "*i64", "M": "i32", "N": "i32", "K": "i32",
    }  # fmt: skip
    names = [name for name in gemm_reduce_scatter_kernel.arg_names if name not in constants]
    types = [kinds.get(name, "*bf16") for name in names]
    made = compiled(gemm_reduce_scatter_kernel, *types, constants=constants, num_warps=8, num_stages=4)
    assert count(made, r"cp\.async\.bulk\.tensor") == 19
    assert count(made, r"wgmma\.mma_async") == 8
    assert count(made, r"cp\.async\.c[ag]|ld\.global\.b16|(ld|st)\.local") == 0
    scope = "gpu" if near else "sys"
    assert count(made, rf"st\.release\.{scope}") == 2
    assert count(made, rf"ld\.acquire\.{scope}") >= 1
    # What came was stored by other multiprocessors, and is read by the engine that copies.
    assert count(made, r"fence\.proxy\.async\.global") >= 1
    assert count(made, r"^call\b") == 0


def test_gemms_that_communicate_are_pipelined_like_the_plain_one(compiled: Compile) -> None:
    gemm = hopper_gemms()
    kernels = {
        gemm.gemm_kernel: {},
        gemm.all_gather_gemm_kernel: {"PUSHERS": 8, "COPY": 16384},
        gemm_reduce_scatter_kernel: BY_POINTERS,
    }
    integers = dict.fromkeys(("M", "N", "K"), "i32")
    kinds = {"signal_ptr": "*i64", "count_ptr": "*i64", "epoch": "i64", **integers}
    for kernel, more in kernels.items():
        constants = {**gemm.TILE, **more}
        types = [kinds.get(name, "*bf16") for name in kernel.arg_names if name not in constants]
        made = compiled(kernel, *types, constants=constants, **gemm.LAUNCH)
        # It has the product twice: for tiles of others, and for its own.
        products = 2 if kernel is gemm_reduce_scatter_kernel else 1
        assert count(made, r"cp\.async\.cg\.shared\.global \[.*0x10") == 36 * products
        assert count(made, r"cp\.async\.ca|ld\.global\.b16|(ld|st)\.local") == 0
        assert count(made, r"^call\b") == 0
