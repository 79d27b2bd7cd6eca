# SPDX-License-Identifier: MIT
"""Reduce-scatter: every PE gets the sum, over all PEs, of its part of the input."""

from __future__ import annotations

import math

import torch

from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.counted import Plan, plan_for
from triton_dist.kernels.operands import check_operand
from triton_dist.kernels.overlap import apart, overlap
from triton_dist.kernels.packets import WORD, Packed, by_packets, word_aligned
from triton_dist.kernels.reduction import SCATTER, accumulator_of, pull_reduction_kernel, reduction_kernel
from triton_dist.kernels.repeated import EACH_TIME

PULL_BYTES = 2 << 20
"""Where PEs share a GPU: smaller parts take longer to ask for than to send."""


class ReduceScatter(Packed):
    """Sums parts of `shape`. Every PE makes the same calls in the same order; a CUDA graph may hold them.

    Args:
        shape: of a part; any, but fewer than 2^31 elements.
        dtype: integers, or floats of 16 bits or more. Floats are summed in fp32 (fp64 in fp64), integers in 32 bits (64
            in 64); in the order of the PEs, unless they are pulled.
        pull: False: parts are pushed, from any tensor. True: the op has a symmetric tensor `input`, n_pes x shape,
            whose parts are read where they lie. So no memory is needed for what comes, and less is read and written:
            better where PEs share the memory's bandwidth. Parts that are elsewhere are copied to `input` first. By
            default PEs that share a GPU pull parts of 2 MiB or more, and others push.
        packets: what is pushed says itself when it has come (`packets.py`); of numbers of 16 or 32 bits, a multiple of
            4 bytes a part. By default NVIDIA GPUs do so with small parts, unless `pull` or `plan` is given.
        plan: how the work is shared; by default by size.

    Raises:
        ArgumentError: the type, or what is asked for together, cannot be.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: torch.dtype, *, pull: bool | None = None, packets: bool | None = None,
        plan: Plan | None = None,
    ) -> None:  # fmt: skip
        count, pes = math.prod(shape), shmem.n_pes()
        self.shape, self._whole = shape, (pes, *shape)
        told = pull is not None or plan is not None
        self.packets = by_packets(packets, count * dtype.itemsize, dtype, summed=True, told=told)
        self.input: torch.Tensor | None = None
        if self.packets:
            if pull:
                raise ArgumentError(op="ReduceScatter", detail="packets are pushed: either packets or pull is True")
            self._pack(shape, dtype, plan, summed=True)
            self.result = torch.empty(shape, dtype=dtype, device=shmem.device())
            self._sum_packets(EACH_TIME, SCATTER, [])
            return
        if pull is None:
            pull = count * dtype.itemsize >= PULL_BYTES and shmem.adapter().shares_device()
        accumulator = accumulator_of(dtype)
        plan = plan or plan_for(count, dtype.itemsize)
        super().__init__((1,) if pull else (pes, *shape), dtype, count, 2 if pull else 1, plan)
        self.result = torch.empty(shape, dtype=dtype, device=shmem.device())
        of_all = self._signals, self._numbers
        how = accumulator, self.plan.block, pes
        if pull:
            self.input = self._make_symmetric((pes, *shape))
            arguments = [self.input, EACH_TIME, *of_all, count, self.plan.piece, self._pieces, *how]
            self._launch = self._repeated(pull_reduction_kernel, arguments)
        else:
            sizes = pes * count, count, self.plan.piece, self._pieces
            arguments = [EACH_TIME, self._stage, EACH_TIME, *of_all, *sizes, SCATTER, *how]
            self._launch = self._repeated(reduction_kernel, arguments, [])

    def __call__(self, parts: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """The sum of everyone's `parts[my_pe]`; `parts` is n_pes x shape. In `out`, or valid until the next call.

        Raises:
            ArgumentError: `parts` or `out` has another shape, type or device, or requires a gradient; `out` has gaps.
        """
        if out is None:
            out = self.result
        else:
            self._check_out(out)
        if self._again(parts, out):
            return out
        check_operand("ReduceScatter", "parts", parts, self._whole, self.dtype, self.result.device)
        if self.packets:
            into = self.result if out.data_ptr() % WORD else out
            self._launch(word_aligned(parts.contiguous()), into)
            return out if into is out else out.copy_(into)
        if self.input is None:
            self._launch(parts.contiguous(), out)
        else:
            if parts.data_ptr() != self.input.data_ptr() or not parts.is_contiguous():
                self.input.copy_(apart(parts, self.input))
            if overlap(out, self.input):  # which others still read while this PE stores its sums
                self._launch(self.result)
                return out.copy_(self.result)
            self._launch(out)
        return out

    def _check_out(self, out: torch.Tensor) -> None:
        check_operand("ReduceScatter", "out", out, self.shape, self.dtype, self.result.device)
        if not out.is_contiguous() or out.is_neg():
            raise ArgumentError(op="ReduceScatter", detail="out must be contiguous: sums are stored there one by one")

    def _release(self) -> None:
        self.input = None
        super()._release()
