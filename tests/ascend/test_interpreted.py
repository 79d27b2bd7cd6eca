# SPDX-License-Identifier: MIT
"""Under Triton's interpreter a kernel follows the rules of the back end too."""

from __future__ import annotations

import pytest
import torch

import triton_dist
import triton_dist.language as dl
from triton_dist import knobs
from triton_dist.testing import run_processes


@triton_dist.jit
def wait_kernel(slots, out, n):
    token = dl.wait(slots, n, "sys", "acquire", waitValue=7)
    dl.notify(dl.consume_token(out, token), dl.rank(), signal=n, sig_op="set")


def wait_on_slots(step: int) -> int:
    slots, out = torch.zeros(4 * step, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    slots[::step] = 7
    wait_kernel[(1,)](slots, out, 4)
    return int(out)


@pytest.mark.processes
@pytest.mark.parametrize(("backend", "step"), [("ascend", 8), ("cuda", 1)])
def test_barriers_of_one_wait_are_as_far_apart_as_on_the_device(backend: str, step: int) -> None:
    environment = {"TRITON_INTERPRET": "1", "TRITON_DIST_BACKEND": backend}
    with knobs.scope(backend=backend):
        assert run_processes(wait_on_slots, 1, step, timeout=60, env=environment) == [4]
