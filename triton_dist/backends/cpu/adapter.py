# SPDX-License-Identifier: MIT
"""The runtime adapter of the host engine: PEs that are processes, or threads, of one machine.

A heap is laid out alike on every PE: the control block (`shmem/host/control.py`), the barrier's slots, the tensors.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from ctypes import c_int64
from typing import TYPE_CHECKING, Any

from triton_dist.backends.base import RuntimeAdapter
from triton_dist.backends.cpu import atomics, state
from triton_dist.errors import (
    CollectiveMismatch,
    HeapExhausted,
    NotInitialized,
    OutOfStep,
    PartOfTensor,
    ShmemError,
    WaitTimeout,
)
from triton_dist.shmem.callsite import call_site
from triton_dist.shmem.host import checks
from triton_dist.shmem.host.checks import Call
from triton_dist.shmem.host.control import CONTROL_BYTES, SLOT_BYTES, Blocked, Phase
from triton_dist.shmem.host.liveness import ExitBoard, Watchdog, describe_exit
from triton_dist.shmem.host.pe import Pe
from triton_dist.shmem.host.waiting import Wait
from triton_dist.shmem.host.world import World, join

if TYPE_CHECKING:
    import torch

    from triton_dist.shmem.config import ShmemConfig


class CpuAdapter(RuntimeAdapter):
    """One PE of the host engine. Collective calls may come from any thread of the PE, one at a time."""

    def __init__(self, world: World | None = None) -> None:
        self._world = world
        self._pe: Pe | None = None
        self._lock = threading.RLock()
        self._deaths: dict[int, str] = {}
        self._abort = c_int64(state.RUNNING)

    # Life

    def init(self, config: ShmemConfig) -> None:
        """Collective: meet the others, map their heaps, make this PE known to kernels."""
        threads = self._world is not None
        world = self._world or join(config)
        self._deaths, self._abort = {}, c_int64(state.RUNNING)
        self._pe = Pe.assemble(config, world, self._abort, self._deaths)
        try:
            if world.pids:
                self._watch(self._pe)
            self._agree(f"init(heap_size={config.heap_size})", config.init_timeout)
        except BaseException:
            self._drop(self._pe, Phase.BROKEN, threads)
            raise
        world.opened()
        self._pe.control.set_phase(Phase.READY)
        if threads:
            state.bind_thread(self._pe.device)
        else:
            state.bind_process(self._pe.device)
            atexit.register(self._at_exit)

    def _watch(self, pe: Pe) -> None:
        board = ExitBoard.from_environment(pe.config.n_pes)
        pe.watchdog = Watchdog(pe.world.pids, self._on_exit, board)

    def _on_exit(self, dead: int, code: int | None) -> None:
        pe = self._pe
        if pe is None or pe.control.phase(dead) == Phase.FINALIZED:
            return
        note = pe.control.note(dead) if pe.control.phase(dead) == Phase.EXITED else ""
        self.peer_failed(dead, f"{describe_exit(code)}{': ' if note else ''}{note}")

    def peer_failed(self, dead: int, how: str) -> None:
        """A peer is gone, `how` says why: end this PE's waits, on the host and in kernels."""
        pe = self._pe
        if pe is None or self._abort.value != state.RUNNING:
            return
        self._deaths[dead] = how
        pe.device.dead_pe = dead
        atomics.word(64).store(ctypes.addressof(self._abort), state.PEER_DIED)

    def interrupt(self) -> None:
        """End this PE's waits because the program is to stop."""
        if self._abort.value == state.RUNNING:
            atomics.word(64).store(ctypes.addressof(self._abort), state.INTERRUPTED)

    def death_of(self, pe: int) -> str:
        """How a PE that is gone ended: for `errors.PeerDied` after a kernel."""
        return self._deaths.get(pe, "it ended")

    def finalize(self) -> None:
        """Collective, unless a PE is dead or out of step already: then this PE leaves alone, without an error.

        Tensors that were not freed are given back. Torch tensors that outlive it keep their memory, unshared.
        """
        with self._lock:
            pe = self._running("finalize()")
            try:
                if self._can_meet(pe):
                    self._agree("finalize()")
            except OutOfStep:
                # A peer that finalized alone, after an error, did so while we waited: nothing is wrong here.
                if not pe.any_in(Phase.FINALIZED):
                    raise
            finally:
                self._drop(pe, Phase.FINALIZED, threads=self._world is not None)

    def abandon(self, why: str) -> None:
        """Leave alone because of an error; the peers see `why`. Nothing happens outside of init ... finalize."""
        pe = self._pe
        if pe is not None:
            pe.control.set_phase(Phase.EXITED, why)
            self._drop(pe, Phase.EXITED, threads=self._world is not None)

    def _can_meet(self, pe: Pe) -> bool:
        return self._abort.value == state.RUNNING and not pe.any_in(Phase.BROKEN, Phase.FINALIZED, Phase.EXITED)

    def _drop(self, pe: Pe, phase: Phase, threads: bool) -> None:
        # The note of a PE that gave up or failed stays: its peers report it.
        if pe.control.phase(pe.config.pe) not in (Phase.BROKEN, Phase.EXITED):
            pe.control.set_phase(phase)
        if pe.watchdog is not None:
            pe.watchdog.stop()
        state.leave(pe.device)
        pe.world.opened()
        if threads:
            state.bind_thread(None)
        else:
            state.bind_process(None)
            atexit.unregister(self._at_exit)
        self._pe = None

    def _at_exit(self) -> None:
        """The script ends without finalize: say so before the process is gone."""
        pe = self._pe
        if pe is None or pe.pid != os.getpid():  # a forked child is no PE
            return
        # Set by the interpreter when it printed the traceback of an exception that nobody caught.
        error = getattr(sys, "last_value", None)
        note = f"{type(error).__name__}: {error}" if error is not None else "without shmem.finalize()"
        pe.control.set_phase(Phase.EXITED, note)

    def _running(self, call: str) -> Pe:
        if self._pe is None:
            raise NotInitialized(call=call)
        return self._pe

    # Identity

    def my_pe(self) -> int:
        return self._running("my_pe()").config.pe

    def n_pes(self) -> int:
        return self._running("n_pes()").config.n_pes

    @property
    def device_state(self) -> state.DeviceState:
        """What kernels of this PE read."""
        return self._running("device_state").device

    # Collective calls

    def _agree(self, call: str, seconds: float | None = None) -> str:
        """Make `call` together with all PEs, or raise on all; returns the call with its call site."""
        pe = self._running(call)
        site = call_site()
        pe.check_in_step(call, site)
        seq = pe.control.publish(call, site)
        wait = Wait(
            call,
            Blocked.COLLECTIVE,
            seq,
            missing=lambda: pe.control.behind(seq),
            seconds=pe.config.deadline_seconds() if seconds is None else seconds,
        )
        for peer in range(pe.config.n_pes):
            pe.waiter.until(pe.control.seq_address(peer), lambda seen: seen >= seq, wait)
        if not pe.control.agreed(seq):
            raise CollectiveMismatch(pe=pe.number, calls=pe.control.calls(seq))
        pe.check_in_step(call, site)
        return f"{call} at {site}"

    def agree(self, call: str) -> None:
        """Collective: raise on every PE unless all make this `call`."""
        with self._lock:
            self._agree(call)

    def barrier_all(self) -> None:
        """The centralised pull barrier: write the own slot, then read each peer's until it has come this far.

        A peer may be one barrier ahead already, as it needs only our slot to pass; never two.
        """
        with self._lock:
            pe = self._running("barrier_all()")
            device = pe.device
            device.sync_count = count = device.sync_count + 1
            slots = {i: s.address + CONTROL_BYTES + i * SLOT_BYTES for i, s in enumerate(pe.world.segments)}
            self.pull("barrier_all()", slots, count)

    def pull(self, call: str, slots: Mapping[int, int], count: int) -> None:
        """The barrier of the PEs that `slots` names, which each have a slot at an address, for the `count`th time."""
        pe = self._running(call)
        word = atomics.word(64)
        word.store(slots[pe.number], count)
        wait = Wait(
            call,
            Blocked.BARRIER,
            count,
            missing=lambda: [i for i, slot in slots.items() if word.load(slot) - count not in (0, 1)],
            seconds=pe.config.deadline_seconds(),
        )
        for slot in slots.values():
            pe.waiter.until(slot, lambda seen: seen - count in (0, 1), wait)

    def create_tensor(self, shape: Sequence[int] | int, dtype: torch.dtype) -> torch.Tensor:
        """Collective: a tensor of zeros at the same offset of every PE's heap."""
        text = f"create_tensor({checks.shown_shape(shape)}, {dtype})"
        with self._lock, self._refusing():
            call = self._call(text)
            sizes = checks.shape_of(shape, call)
            return self._create(call, sizes, checks.dtype_of(dtype, call), None)

    def create_signals(self, n: int, dtype: torch.dtype) -> torch.Tensor:
        """Collective: `n` signals of zero: a tensor of shape (n,), with the stride that kernels expect.

        That is the active back end's: 64 bytes on the host, but one element where a GPU is simulated.
        """
        text = f"create_signals({checks.shown_count(n)}, {dtype})"
        with self._lock, self._refusing():
            call = self._call(text)
            count = checks.count_of(n, call)
            backend = self._running(text).backend
            bits = checks.check_signal_dtype(checks.dtype_of(dtype, call), call, backend).bits
            distance = backend.limits.slot_bytes or bits // 8
            return self._create(call, (count,), dtype, (distance * 8 // bits,))

    def _create(
        self, call: Call, shape: tuple[int, ...], dtype: torch.dtype, strides: tuple[int, ...] | None
    ) -> torch.Tensor:
        pe = self._running(call.call)
        nbytes = dtype.itemsize * (math.prod(shape) if strides is None else shape[0] * strides[0])
        created = self._agree(call.call)
        offset = pe.allocator.allocate(nbytes)
        if offset is None:  # on every PE, as all have made the same calls
            raise HeapExhausted(
                **call.fields(),
                needed=pe.allocator.rounded(nbytes),
                capacity=pe.allocator.capacity,
                free=pe.allocator.free_bytes,
                largest=pe.allocator.largest_free,
            )
        tensor = pe.own.tensor(offset, shape, dtype, strides)
        pe.tensors.add(offset, nbytes, tensor, created)
        return tensor

    def free_tensor(self, tensor: torch.Tensor) -> None:
        """Collective: give a tensor's memory back. It reads as zeros then, until another tensor gets the place."""
        with self._lock, self._refusing():
            call = self._call(f"free_tensor({_shown_tensor(tensor)})")
            pe = self._running(call.call)
            allocation = pe.locate(tensor, "the tensor", call)
            if tensor.numel() != allocation.tensor.numel() or tensor.storage_offset() != 0:
                got = f"{checks.brief(tensor)} from element {tensor.storage_offset()}"
                raise PartOfTensor(**call.fields(), argument="the tensor", got=got, whole=allocation.created)
            # The serial number tells the PEs' tensors apart where shape and dtype do not.
            self._agree(f"free_tensor(tensor {allocation.serial}: {checks.brief(allocation.tensor)})")
            # Zeroed now: all PEs zero theirs before any of them can come to the next creation's agreement.
            pe.own.clear(allocation.offset, max(allocation.nbytes, 1))
            pe.allocator.free(allocation.offset)
            pe.tensors.remove(allocation, f"{call.call} at {call.where}")

    def _refusing(self) -> _Refusal:
        return _Refusal(self)

    # Access to peers

    def peer_tensor(self, tensor: torch.Tensor, pe: int) -> torch.Tensor:
        """The same tensor, or part of one, in the heap of `pe`: reads and writes go there."""
        call = self._call("peer_tensor")
        return self._running(call.call).view(tensor, "the tensor", pe, call)

    def put(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
        """Copy `source` to `dest` of `pe`. Done on return; a signal sent then is seen after the data."""
        call = self._call("put")
        remote = self._running(call.call).view(dest, "dest", pe, call)
        checks.check_equal(dest, source, "source", call)
        _copy(remote, source)

    def get(self, dest: torch.Tensor, source: torch.Tensor, pe: int) -> None:
        """Copy `source` of `pe` to `dest`, which may be any tensor."""
        call = self._call("get")
        remote = self._running(call.call).view(source, "source", pe, call)
        checks.check_equal(dest, source, "dest", call)
        _copy(dest, remote)

    def signal(self, signal: torch.Tensor, value: int, op: str, pe: int) -> None:
        """Set `signal` of `pe` to `value`, or add to it; whoever sees it also sees what this PE wrote before."""
        call = self._call("signal")
        own = self._running(call.call)
        address, kind = own.signal_at(signal, pe, call)
        checks.check_signal_op(op, signal, call, own.backend)
        word, number = atomics.word(kind.bits), kind.check(value, call)
        if op == "set":
            word.store(address, number)
        else:
            word.add(address, number)

    def stream_wait_signal(self, signal: torch.Tensor, value: int, cmp: str = "ge") -> None:
        """There are no streams, but what they can wait for is all that is allowed: it is to run on a device, too."""
        checks.check_choice("cmp", cmp, checks.STREAM_COMPARISONS, self._call("stream_wait_signal"))
        self.wait_signal(signal, value, cmp)

    def wait_signal(self, signal: torch.Tensor, value: int, cmp: str = "eq", timeout: float | None = None) -> int:
        """Wait until this PE's `signal` compares to `value`; returns what it saw. The sender's data is seen then."""
        call = self._call("wait_signal")
        pe = self._running(call.call)
        compare = checks.COMPARISONS[checks.check_choice("cmp", cmp, tuple(checks.COMPARISONS), call)]
        address, kind = pe.signal_at(signal, pe.number, call)
        kind.check(value, call)
        deadline = checks.seconds_of(timeout, pe.config.deadline_seconds(), call)
        seen = kind.read(atomics.word(kind.bits).load(address))
        if compare(seen, value):
            return seen

        def timed_out(seconds: float, seen: int) -> WaitTimeout:
            place = {"where": call.where, "slot": pe.describe_address(address).removeprefix("signal ")}
            wanted = {"expected": f"{cmp} {value}", "seen": kind.read(seen)}
            return WaitTimeout(pe=pe.number, program="none (the host)", seconds=seconds, **place, **wanted)

        wait = Wait(
            f"wait_signal({cmp} {value}) on {pe.describe_address(address)}",
            Blocked.SIGNAL,
            address - pe.device.heap_base,
            missing=list,
            seconds=deadline,
            timed_out=timed_out,
        )
        return kind.read(pe.waiter.until(address, lambda seen: compare(kind.read(seen), value), wait, kind.bits))

    # What is where

    def is_symmetric(self, tensor: torch.Tensor) -> bool:
        """Whether `tensor` is, or is a view of, a live tensor of this PE's heap."""
        pe = self._running("is_symmetric()")
        allocation = pe.tensors.of_storage(tensor) if checks.is_dense_tensor(tensor) else None
        return allocation is not None and allocation.freed is None

    def offset_of(self, tensor: torch.Tensor) -> int:
        """Where in the heap a symmetric tensor starts, in bytes; alike on every PE."""
        call = self._call("offset_of")
        return self._running(call.call).offset(tensor, "the tensor", call)

    def describe_address(self, address: int) -> str:
        """Name what lies at an address: for reports of waits and faults."""
        return self._running("describe_address()").describe_address(address)

    def info(self) -> dict[str, Any]:
        """Facts for `shmem.info`."""
        pe = self._running("info()")
        return {
            "pe": pe.number,
            "n_pes": pe.config.n_pes,
            "pes_are": "threads" if self._world is not None else "processes",
            "heap_bytes": pe.allocator.capacity,
            "free_bytes": pe.allocator.free_bytes,
            "tensors": len(pe.tensors),
        }

    def _call(self, name: str) -> Call:
        return Call(self._running(name).number, name)


class _Refusal:
    """Notes a call that this PE refuses on its own, so that those who wait for it can say why it never came."""

    def __init__(self, adapter: CpuAdapter) -> None:
        self._adapter = adapter

    def __enter__(self) -> None:
        self._seq = self._adapter._pe.control.own.seq if self._adapter._pe is not None else 0

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        pe = self._adapter._pe
        if isinstance(error, ShmemError) and pe is not None and pe.control.own.seq == self._seq:
            pe.control.refuse(str(error))


def _copy(dest: torch.Tensor, source: torch.Tensor) -> None:
    import torch

    with torch.no_grad():
        dest.copy_(source)


def _shown_tensor(tensor: Any) -> str:
    return checks.brief(tensor) if checks.is_dense_tensor(tensor) else type(tensor).__name__
