# SPDX-License-Identifier: MIT
# What a kernel receives is not what Python passes to it.
# pyright: reportArgumentType=false
"""A queue across PEs: some programs of a grid produce into the next PE's queue, others consume from their own."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels.collective import Collective, one_at_a_time
from triton_dist.kernels.counted import check_known
from triton_dist.kernels.operands import check_operand
from triton_dist.kernels.overlap import laid_out
from triton_dist.kernels.sizes import check_counts


@triton.jit
def _produce(
    x_ptr, queue_ptr, ready_ptr, free_ptr, first, items, length, producer,
    PRODUCERS: tl.constexpr, SLOTS: tl.constexpr, BLOCK: tl.constexpr,
):
    right = (dl.rank() + 1) % dl.num_ranks()
    for i in range(producer, items, PRODUCERS):
        position = first + i
        slot = position % SLOTS
        lap = position // SLOTS
        # The slot is free once its item of the lap before is consumed. Lap 0 finds the signal's first value, 0.
        token = dl.wait(dl.signal_slot(free_ptr, slot), 1, "sys", "acquire", waitValue=lap)
        slot_ptr = dl.consume_token(queue_ptr + slot * length, token)
        slot_ptr = dl.symm_at(slot_ptr, right)
        for start in range(0, length, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + i * length + offsets, mask=offsets < length)
            tl.store(slot_ptr + offsets, x, mask=offsets < length)
        dl.notify(dl.signal_slot(ready_ptr, slot), right, signal=lap + 1, sig_op="set", comm_scope="inter_node")


@triton.jit
def _consume(
    y_ptr, queue_ptr, ready_ptr, free_ptr, first, items, length, scale, consumer,
    CONSUMERS: tl.constexpr, SLOTS: tl.constexpr, BLOCK: tl.constexpr,
):
    pes = dl.num_ranks()
    left = (dl.rank() + pes - 1) % pes
    for i in range(consumer, items, CONSUMERS):
        position = first + i
        slot = position % SLOTS
        lap = position // SLOTS
        token = dl.wait(dl.signal_slot(ready_ptr, slot), 1, "sys", "acquire", waitValue=lap + 1)
        slot_ptr = dl.consume_token(queue_ptr + slot * length, token)
        for start in range(0, length, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            x = tl.load(slot_ptr + offsets, mask=offsets < length)
            tl.store(y_ptr + i * length + offsets, x * scale, mask=offsets < length)
        # Tell the producer's PE: it waits on its own memory.
        dl.notify(dl.signal_slot(free_ptr, slot), left, signal=lap + 1, sig_op="set", comm_scope="inter_node")


@triton_dist.jit(do_not_specialize=["first"])
def producer_consumer_kernel(
    x_ptr, y_ptr, queue_ptr, ready_ptr, free_ptr, first, items, length, scale,
    PRODUCERS: tl.constexpr, CONSUMERS: tl.constexpr, SLOTS: tl.constexpr, BLOCK: tl.constexpr,
):
    """The first PRODUCERS programs send the rows of x to the next PE; the rest scale what comes from the PE before.

    Row i is item `first + i` of an endless stream. Item p uses slot p % SLOTS in lap p // SLOTS. `ready` of a slot
    holds the laps written, `free` the laps read: both only grow, one step at a time and in turn, so nothing is reset
    and every wait sees the very value that it waits for.
    """
    program = tl.program_id(0)
    if program < PRODUCERS:
        _produce(
            x_ptr, queue_ptr, ready_ptr, free_ptr, first, items, length, program,
            PRODUCERS, SLOTS, BLOCK,
        )
    else:
        _consume(
            y_ptr, queue_ptr, ready_ptr, free_ptr, first, items, length, scale, program - PRODUCERS,
            CONSUMERS, SLOTS, BLOCK,
        )


class ProducerConsumer(Collective):
    """Sends rows to the next PE through a queue of few slots, while the rows of the PE before come in.

    All programs of a launch must run at the same time, so on a GPU `producers + consumers` must not exceed what fits
    on it. A call may follow another at once: the stream of items goes on. The host counts the items, so a CUDA graph
    cannot hold the calls.

    Args:
        length: elements of a row.
        dtype: any real type that Triton has.
        slots: rows that the queue holds.
        producers, consumers: programs that send, and that receive.

    Raises:
        ArgumentError: the type or a number is none.
        CollectiveMismatch: the PEs ask for different ones.
    """

    def __init__(
        self, length: int, dtype: torch.dtype, *, slots: int = 4, producers: int = 2, consumers: int = 2
    ) -> None:
        check_known("ProducerConsumer", dtype)
        check_counts("ProducerConsumer", slots=slots, producers=producers, consumers=consumers)
        self.length, self.dtype, self.slots = length, dtype, slots
        self.producers, self.consumers = producers, consumers
        self._queue = shmem.create_tensor((slots, length), dtype)
        self._ready = shmem.create_signals(slots)
        self._free = shmem.create_signals(slots)
        self._sent = 0

    @one_at_a_time
    def __call__(self, rows: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        """Send `rows`; return the rows that came from the PE before, times `scale`, as a tensor of the caller's own.

        As many rows on every PE: nobody looks, and a PE that gets fewer than it waits for waits.

        Raises:
            ArgumentError: `rows` has another length, type or device, or requires a gradient; `scale` is no number.
        """
        if not isinstance(scale, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(op="ProducerConsumer", detail=f"scale is {scale!r}; it must be a number")
        check_operand("ProducerConsumer", "rows", rows, (None, self.length), self.dtype, self._queue.device)
        rows = laid_out(rows)
        result = torch.empty_like(rows)
        if self.length == 0:  # on every PE: nothing is sent
            return result
        producer_consumer_kernel[(self.producers + self.consumers,)](
            rows, result, self._queue, self._ready, self._free, self._sent, rows.shape[0], self.length, scale,
            PRODUCERS=self.producers, CONSUMERS=self.consumers, SLOTS=self.slots,
            BLOCK=min(1024, triton.next_power_of_2(self.length)),
        )
        self._sent += rows.shape[0]
        return result

    def _release(self) -> None:
        shmem.barrier_all()
        shmem.free_tensor(self._free)
        shmem.free_tensor(self._ready)
        shmem.free_tensor(self._queue)
