# SPDX-License-Identifier: MIT
"""The portable kernels under Triton's interpreter, on PEs that are processes: their logic without the host engine."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from triton_dist.testing import run_processes

EXAMPLES = Path(__file__).parents[2] / "examples"


def check(name: str, *arguments: Any) -> None:
    """On each PE: the check of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.check(*arguments)


def check_gemm(name: str) -> None:
    import torch

    check(name, 70, 90, 50, torch.float32, 3)


def check_all_gather() -> None:
    check("all_gather", 5001, 5)


def check_all_gather_gemm() -> None:
    check_gemm("all_gather_gemm")


def check_gemm_all_reduce() -> None:
    check_gemm("gemm_all_reduce")


def check_producer_consumer() -> None:
    # The interpreter runs the producers to their end before the consumers begin: the queue must hold all rows.
    check("producer_consumer", 5, 1500, 5, 1)


@pytest.mark.processes
@pytest.mark.parametrize(
    "checked", [check_all_gather, check_all_gather_gemm, check_gemm_all_reduce, check_producer_consumer]
)
def test_interpreted(checked: Any) -> None:
    run_processes(checked, 3, timeout=60, env={"TRITON_INTERPRET": "1", "TRITON_DIST_BACKEND": "cpu"})
