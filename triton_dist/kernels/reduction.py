# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportCallIssue=false
"""Sums over the PEs, in one kernel: reduce-scatter, one-shot and two-shot all-reduce, which push; one that pulls."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist.errors import ArgumentError
from triton_dist.kernels.counted import await_all, call_done, call_number, slots_of, tell_all

SCATTER = tl.constexpr(0)
"""Every PE gets the sum of its part."""
ONE_SHOT = tl.constexpr(1)
"""Everything goes to everyone, and each sums all of it."""
TWO_SHOT = tl.constexpr(2)
"""Every PE sums its part, and sends the sum to all."""


@triton.jit
def _base(pe, part, KIND: tl.constexpr):
    """Where the part of a PE begins in the input."""
    return tl.cast(pe, tl.int64) * (0 if KIND == ONE_SHOT else part)


@triton.jit
def _inside(offsets, base, part, total):
    return (offsets < part) & (base + offsets < total)


@triton.jit
def _send(
    in_ptr, stage_ptr, me, begin, piece, part, total, KIND: tl.constexpr, BLOCK: tl.constexpr, PES: tl.constexpr
):
    """A piece of its part to each other PE; everyone begins with another one."""
    target_ptr = stage_ptr + tl.cast(me, tl.int64) * part
    for start in range(begin, begin + piece, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < part
        values = tl.load(in_ptr + offsets, mask=mask) if KIND == ONE_SHOT else None
        for step in tl.static_range(1, PES):
            peer = (me + step) % PES
            if KIND != ONE_SHOT:
                base = _base(peer, part, KIND)
                mask = _inside(offsets, base, part, total)
                values = tl.load(in_ptr + base + offsets, mask=mask)
            tl.store(dl.symm_at(target_ptr, peer) + offsets, values, mask=mask)


@triton.jit
def _sum(
    own_ptr, stage_ptr, out_ptr, me, begin, piece, base, part, total,
    KIND: tl.constexpr, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr, PES: tl.constexpr,
):
    """A piece of this PE's part, summed in the order of the PEs: all PEs, and all runs, get the same bits."""
    for start in range(begin, begin + piece, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = _inside(offsets, base, part, total)
        sums = tl.zeros((BLOCK,), ACCUMULATOR)
        for source in tl.static_range(PES):
            source_ptr = tl.where(source == me, own_ptr, stage_ptr + tl.cast(source, tl.int64) * part)
            sums += tl.load(source_ptr + offsets, mask=mask, other=0).to(ACCUMULATOR)
        values = sums.to(out_ptr.dtype.element_ty)
        if KIND == TWO_SHOT:
            for step in tl.static_range(1, PES + 1):
                tl.store(dl.symm_at(out_ptr, (me + step) % PES) + offsets, values, mask=mask)
        else:
            tl.store(out_ptr + offsets, values, mask=mask)


@triton_dist.jit
def reduction_kernel(
    in_ptr, stage_ptr, out_ptr, signal_ptr, count_ptr, total, part, piece, pieces,
    KIND: tl.constexpr, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr, PES: tl.constexpr,
):
    """Program i does pieces i, i + programs, ...: while one is on its way, the one before is summed."""
    PHASES: tl.constexpr = tl.constexpr(2 if KIND == TWO_SHOT else 1)
    number = call_number(count_ptr)
    me = dl.rank()
    program, programs = tl.program_id(0), tl.num_programs(0)
    stage_ptr += (number % 2) * PES * part
    base = _base(me, part, KIND)
    if KIND == TWO_SHOT:
        out_ptr += base
    for sent in range(program, pieces + programs, programs):
        if sent < pieces:
            _send(in_ptr, stage_ptr, me, sent * piece, piece, part, total, KIND, BLOCK, PES)
            tell_all(slots_of(signal_ptr, number, 0, PHASES, sent, pieces, PES), number, me, PES)
        summed = sent - programs
        if summed >= 0:
            token = await_all(slots_of(signal_ptr, number, 0, PHASES, summed, pieces, PES), number, PES)
            came_ptr = dl.consume_token(stage_ptr, token)
            _sum(
                in_ptr + base, came_ptr, out_ptr, me, summed * piece, piece, base, part, total,
                KIND, ACCUMULATOR, BLOCK, PES,
            )
            if KIND == TWO_SHOT:
                tell_all(slots_of(signal_ptr, number, 1, PHASES, summed, pieces, PES), number, me, PES)
    if KIND == TWO_SHOT:
        for index in range(program, pieces, programs):
            await_all(slots_of(signal_ptr, number, 1, PHASES, index, pieces, PES), number, PES)
    call_done(count_ptr, number)


@triton_dist.jit
def pull_reduction_kernel(
    in_ptr, out_ptr, signal_ptr, count_ptr, count, piece, pieces,
    ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr, PES: tl.constexpr,
):
    """The sum of everyone's part for this PE, read where it lies. `in` is symmetric: PES x count elements."""
    number = call_number(count_ptr)
    me = dl.rank()
    program, programs = tl.program_id(0), tl.num_programs(0)
    ready = slots_of(signal_ptr, number, 0, 2, program, pieces, PES)
    done = slots_of(signal_ptr, number, 1, 2, program, pieces, PES)
    tell_all(ready, number, me, PES)
    mine_ptr = dl.consume_token(in_ptr + tl.cast(me, tl.int64) * count, await_all(ready, number, PES))
    for index in range(program, pieces, programs):
        for start in range(index * piece, (index + 1) * piece, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            sums = tl.zeros((BLOCK,), ACCUMULATOR)
            for step in tl.static_range(PES):  # everyone begins at home: no PE is read by all at once
                source_ptr = dl.symm_at(mine_ptr, (me + step) % PES)
                sums += tl.load(source_ptr + offsets, mask=offsets < count, other=0).to(ACCUMULATOR)
            tl.store(out_ptr + offsets, sums.to(out_ptr.dtype.element_ty), mask=offsets < count)
    # Nobody writes its input again before all have read it.
    tell_all(done, number, me, PES)
    await_all(done, number, PES)
    call_done(count_ptr, number)


def accumulator_of(dtype: torch.dtype) -> tl.dtype:
    """The type in which values of `dtype` are summed."""
    if dtype.is_floating_point and dtype.itemsize == 1:
        detail = f"{dtype} is too coarse for sums; convert it to a wider type"
        raise ArgumentError(op="a sum over the PEs", detail=detail)
    if dtype.is_floating_point:
        return tl.float64 if dtype == torch.float64 else tl.float32
    return tl.int64 if dtype.itemsize == 8 else tl.int32
