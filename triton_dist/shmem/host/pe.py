# SPDX-License-Identifier: MIT
"""One PE between init and finalize: its memory, its peers' memory, and what lies where."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_int64, c_uint64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triton_dist import backends
from triton_dist.backends.base import Backend
from triton_dist.backends.cpu import state
from triton_dist.backends.cpu.heap import Segment
from triton_dist.errors import FreedTensor, NotSymmetric, OutOfStep
from triton_dist.shmem.allocator import Allocator
from triton_dist.shmem.host import checks
from triton_dist.shmem.host.checks import Call, SignalKind
from triton_dist.shmem.host.control import CONTROL_BYTES, SLOT_BYTES, Control, Phase, sync_bytes
from triton_dist.shmem.host.liveness import Watchdog
from triton_dist.shmem.host.tensors import Allocation, Tensors
from triton_dist.shmem.host.waiting import Waiter
from triton_dist.shmem.host.world import World

if TYPE_CHECKING:
    import torch

    from triton_dist.shmem.config import ShmemConfig


@dataclass
class Pe:
    """All that belongs to a PE."""

    config: ShmemConfig
    world: World
    control: Control
    device: state.DeviceState
    waiter: Waiter
    allocator: Allocator
    tensors: Tensors
    backend: Backend
    """Its own, or the one that is simulated: it says what signals there are."""
    keep: tuple[Any, ...]
    """What `device` points to."""
    pid: int
    watchdog: Watchdog | None = None

    @classmethod
    def assemble(cls, config: ShmemConfig, world: World, abort: c_int64, deaths: dict[int, str]) -> Pe:
        """A PE of `world`, with its device state; it has not agreed on anything yet."""
        control = Control(config.pe, world.segments)
        control.start()
        bases = (c_uint64 * config.n_pes)(*(segment.address for segment in world.segments))
        fault = state.Fault()
        own = world.segments[config.pe]
        device = state.DeviceState(
            version=state.STATE_VERSION,
            my_pe=config.pe,
            n_pes=config.n_pes,
            heap_base=own.address,
            heap_size=own.size,
            peer_base=ctypes.addressof(bases),
            abort=ctypes.addressof(abort),
            timeout_ns=state.nanoseconds(config.deadline_seconds()),
            fault=ctypes.addressof(fault),
            sync_offset=CONTROL_BYTES,
            dead_pe=-1,
        )
        return cls(
            config=config,
            world=world,
            control=control,
            device=device,
            waiter=Waiter(device, lambda: abort.value, control, deaths),
            allocator=Allocator(CONTROL_BYTES + sync_bytes(config.n_pes), own.size),
            tensors=Tensors(),
            backend=backends.active(),
            keep=(bases, fault, abort),
            pid=os.getpid(),
        )

    @property
    def number(self) -> int:
        return self.config.pe

    @property
    def own(self) -> Segment:
        """This PE's heap."""
        return self.world.segments[self.config.pe]

    def any_in(self, *phases: Phase) -> bool:
        """Whether any PE is in one of these phases."""
        return any(self.control.phase(pe) in phases for pe in range(self.config.n_pes))

    def check_in_step(self, call: str, site: str) -> None:
        """Raise if any PE gave up on a collective call: the sequences of calls do not fit any more."""
        for pe in range(self.config.n_pes):
            if self.control.blocks[pe].phase == Phase.BROKEN:
                detail = f"the PEs are out of step: {self.control.state_of(pe)}. Only shmem.finalize is left to do."
                raise OutOfStep(pe=self.number, where=site, call=call, detail=detail)

    def locate(self, tensor: torch.Tensor, argument: str, call: Call) -> Allocation:
        """The live allocation that `tensor` is a view of, or an error that says what it is instead."""
        checks.require_tensor(tensor, argument, call)
        allocation = self.tensors.of_storage(tensor)
        if allocation is None:
            raise NotSymmetric(**call.fields(), argument=argument, got=self._foreign(tensor))
        if allocation.freed is not None:
            freed = f"{allocation.created}, freed by {allocation.freed}"
            raise FreedTensor(**call.fields(), argument=argument, freed=freed)
        return allocation

    def _foreign(self, tensor: torch.Tensor) -> str:
        if tensor.device.type != "cpu":
            return f"a tensor on {tensor.device}"
        for pe, segment in enumerate(self.world.segments):
            if segment.contains(checks.address_of(tensor)):
                if pe != self.number:
                    return f"a tensor of PE {pe}, from peer_tensor; pass this PE's own and the number of the PE"
                return "it lies in the heap, but it is stale or was made from a bare address"
        return f"an ordinary tensor, {checks.brief(tensor)}"

    def offset(self, tensor: torch.Tensor, argument: str, call: Call) -> int:
        """Where in the heap a symmetric tensor, or part of one, starts."""
        self.locate(tensor, argument, call)
        return checks.address_of(tensor) - self.own.address

    def view(self, tensor: torch.Tensor, argument: str, pe: int, call: Call) -> torch.Tensor:
        """The same tensor, or part of one, in the heap of `pe`."""
        offset = self.offset(tensor, argument, call)
        peer = checks.check_pe(pe, self.config.n_pes, call)
        if peer == self.number:
            return tensor
        return self.world.segments[peer].tensor(offset, tensor.shape, tensor.dtype, tensor.stride())

    def signal_at(self, signal: torch.Tensor, pe: int, call: Call) -> tuple[int, SignalKind]:
        """The address of a signal in the heap of `pe`, and what kind of word it is."""
        offset = self.offset(signal, "the signal", call)
        kind = checks.check_signal(signal, call, self.backend)
        peer = checks.check_pe(pe, self.config.n_pes, call)
        return self.world.segments[peer].address + offset, kind

    def describe_address(self, address: int) -> str:
        """Name what lies at an address: for reports of waits and faults."""
        for pe, segment in enumerate(self.world.segments):
            if segment.contains(address):
                offset = address - segment.address
                return f"{self._describe_offset(offset)} (PE {pe}, heap offset {offset:#x})"
        return f"address {address:#x}, outside every PE's symmetric heap"

    def _describe_offset(self, offset: int) -> str:
        if offset < CONTROL_BYTES:
            return "the control block"
        if offset < CONTROL_BYTES + sync_bytes(self.config.n_pes):
            return f"barrier slot {(offset - CONTROL_BYTES) // SLOT_BYTES}"
        if (live := self.tensors.live_at(offset)) is not None:
            return live.describe(offset - live.offset)
        if (freed := self.tensors.freed_at(offset)) is not None:
            return f"{freed.describe(offset - freed.offset)}, freed by {freed.freed}"
        return "free space"
