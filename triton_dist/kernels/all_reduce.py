# SPDX-License-Identifier: MIT
"""All-reduce: every PE gets the sum over all PEs. Which algorithm, its size decides."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
import triton

from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.counted import Plan, plan_for
from triton_dist.kernels.operands import check_operand
from triton_dist.kernels.packets import Packed, by_packets, word_aligned
from triton_dist.kernels.reduction import ONE_SHOT, TWO_SHOT, accumulator_of, reduction_kernel
from triton_dist.kernels.repeated import EACH_TIME

Algorithm = Literal["one-shot", "two-shot"]
EXCHANGE_BYTES = 1 << 20
"""What a link carries in the time of one more exchange of signals: about 3 us at 350 GB/s."""
ONE_SHOT_BYTES = 4 << 20
"""Above this, what one-shot reads and writes of its own memory counts: 5 times the input; two-shot has 3 times."""


def algorithm_for(nbytes: int, pes: int) -> Algorithm:
    """One-shot sends (pes - 1) times the input; two-shot 2 (pes - 1) / pes times, after one more exchange."""
    saved = (pes - 1) * (1 - 2 / pes) * nbytes
    return "one-shot" if saved <= EXCHANGE_BYTES and nbytes <= ONE_SHOT_BYTES else "two-shot"


class AllReduce(Packed):
    """Sums tensors of `shape`. All PEs get the same bits. A CUDA graph may hold the calls.

    Every PE makes the same calls in the same order.

    Args:
        shape: of the tensor; any, but fewer than 2^31 elements.
        dtype: integers, or floats of 16 bits or more. Floats are summed in fp32 (fp64 in fp64), integers in 32 bits (64
            in 64), in the order of the PEs.
        algorithm: "one-shot": everyone sends all to everyone; "two-shot": everyone sums a part, then all gather the
            sums. By default by size.
        packets: one-shot, and what is sent says itself when it has come (`packets.py`); of numbers of 16 or 32 bits, a
            multiple of 4 bytes. By default NVIDIA GPUs do so with small tensors, unless `algorithm` or `plan` is given.
        plan: how the work is shared; by default by size.

    Raises:
        ArgumentError: the type, or what is asked for together, cannot be.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        *,
        algorithm: Algorithm | None = None,
        packets: bool | None = None,
        plan: Plan | None = None,
    ) -> None:
        self.shape, count, pes = shape, math.prod(shape), shmem.n_pes()
        nbytes, told = count * dtype.itemsize, algorithm is not None or plan is not None
        self.packets = by_packets(packets, nbytes, dtype, summed=True, told=told)
        self.algorithm = algorithm or ("one-shot" if self.packets else algorithm_for(nbytes, pes))
        if self.algorithm not in get_args(Algorithm):
            detail = f"algorithm is {algorithm!r}; it must be one of {', '.join(get_args(Algorithm))}"
            raise ArgumentError(op="AllReduce", detail=detail)
        accumulator = accumulator_of(dtype)
        one = self.algorithm == "one-shot"
        if self.packets:
            if not one:
                raise ArgumentError(op="AllReduce", detail="packets are for one-shot; two-shot has signals")
            self._pack(shape, dtype, plan, summed=True)
            self.result = torch.empty(shape, dtype=dtype, device=shmem.device())
            self._sum_packets(self.result, ONE_SHOT)
            return
        # Parts that are multiples of 16 elements keep accesses wide.
        self._part = count if one else triton.cdiv(count, 16 * pes) * 16
        plan = plan or plan_for(self._part, dtype.itemsize)
        super().__init__((pes, self._part), dtype, self._part, 1 if one else 2, plan)
        if one:
            self.result = torch.empty(shape, dtype=dtype, device=shmem.device())
        else:
            self.result = self._make_symmetric((count,)).view(shape)
        self._launch = self._repeated(reduction_kernel, [
            EACH_TIME, self._stage, self.result, self._signals, self._numbers, count, self._part, self.plan.piece,
            self._pieces, ONE_SHOT if one else TWO_SHOT, accumulator, self.plan.block, pes,
        ])  # fmt: skip

    def __call__(self, source: torch.Tensor) -> torch.Tensor:
        """The sum of everyone's `source`; valid until the next call. `source` is not changed, unless it is `result`.

        Raises:
            ArgumentError: `source` has another shape, type or device, or requires a gradient.
        """
        if self._again(source):
            return self.result
        check_operand("AllReduce", "source", source, self.shape, self.dtype, self.result.device)
        source = source.contiguous()
        self._launch(word_aligned(source) if self.packets else source)
        return self.result
