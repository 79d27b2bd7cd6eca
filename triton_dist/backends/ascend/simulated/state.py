# SPDX-License-Identifier: MIT
"""The device state of a simulated NPU: what the template library reads, at an address that no kernel is given.

The fields are those of aclshmem's state, in its order; each takes 8 bytes here. The state of PE n of a process lies at
the device's fixed address plus n slots, where that part of the address space is free. A world whose PEs are threads
has several states in one process, so the running kernel's PE chooses the slot.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_uint8, c_uint64
from typing import Any

from triton_dist.backends.cpu.state import DeviceState

FIXED_ADDRESS = 0x17FF_BE01_0000
SLOT_BYTES = 64 * 1024
MTE, ROCE, SDMA, UDMA = 1, 2, 4, 8
TOPOLOGY = {"MTE": MTE, "SDMA": SDMA | MTE, "UDMA": UDMA | MTE, "ROCE": ROCE}
"""What connects this PE with another, by the engine chosen. ROCE stands for PEs of different nodes: no load or store
reaches them."""
QUEUE_ENTRIES = 64
MOST_TEAMS = 2048
IDLE_NS = 500_000_000
"""How long the progress agent leaves a transfer undone if nobody asks for its end: it fails a kernel without quiet."""


class Queue(ctypes.Structure):
    """One engine's submission queue, its doorbell, and what its progress agent sleeps on."""

    _fields_ = [
        ("lock", c_int64),
        ("head", c_int64),  # entries carried out
        ("tail", c_int64),  # entries filled in
        ("doorbell", c_int64),  # entries that the agent may see
        ("demand", c_int64),  # programs that wait for the end
        ("wake", c_int64),  # changes whenever the agent should look again
        ("stop", c_int64),
        ("alive", c_int64),  # the agent runs
        ("capacity", c_int64),
        ("entries", c_uint64),
        ("idle_ns", c_int64),
        ("done", c_int64),  # entries carried out since the beginning, for tests
    ]


class Entry(ctypes.Structure):
    """One element of a queue."""

    _fields_ = [
        ("kind", c_int64),  # 0 copy, 1 store an int32, 2 add to an int32
        ("dest", c_uint64),
        ("source", c_uint64),
        ("bytes", c_int64),
        ("value", c_int64),
        ("stamp", c_int64),
        ("reserved", c_int64 * 2),
    ]


class Team(ctypes.Structure):
    """A team, seen from one PE."""

    _fields_ = [
        ("my_pe", c_int64),  # in the team; -1 outside it
        ("size", c_int64),
        ("slots", c_uint64),  # this PE's 64-byte slots of the barrier, one for each member
        ("counter", c_uint64),  # address of the number of barriers passed
        ("pe_mapping", c_uint64),  # int32: the world's number of each member, then the team's number of each PE
        ("valid", c_int64),
    ]


class CoreSync(ctypes.Structure):
    """Where the programs of a kernel meet."""

    _fields_ = [("lock", c_int64), ("launch", c_int64), ("arrived", c_int64), ("generation", c_int64)]


class AscendState(ctypes.Structure):
    """What `aclshmemi_get_state` gives on the device."""

    _fields_ = [
        ("version", c_int64),
        ("mype", c_int64),
        ("npes", c_int64),
        ("heap_base", c_uint64),
        ("host_heap_base", c_uint64),
        ("p2p_device_heap_base", c_uint64),
        ("rdma_device_heap_base", c_uint64),
        ("sdma_device_heap_base", c_uint64),
        ("p2p_host_heap_base", c_uint64),
        ("rdma_host_heap_base", c_uint64),
        ("sdma_host_heap_base", c_uint64),
        ("topo_list", c_uint64),
        ("heap_size", c_uint64),
        ("team_pools", c_uint64),
        ("sync_pool", c_uint64),
        ("sync_counter", c_uint64),
        ("core_sync_pool", c_uint64),
        ("core_sync_counter", c_uint64),
        ("initialized", c_int64),
        ("mte_config", c_uint64),
        ("sdma_config", c_uint64),  # address of a Queue, as the next two
        ("rdma_config", c_uint64),
        ("udma_config", c_uint64),
        ("qp_info", c_uint64),
        ("sdma_workspace", c_uint64),
        ("profs", c_uint64),
        ("signal_addr", c_uint64),
    ]


class _Slots:
    """The part of the address space where states lie; mapped once, if it is free."""

    def __init__(self, count: int = 256) -> None:
        self.base = _map_fixed(FIXED_ADDRESS, count * SLOT_BYTES)
        self.count = count
        self._used: set[int] = set()
        self._lock = threading.Lock()

    def take(self, pe: int) -> int:
        """The address of slot `pe`, or 0 if it is taken (by another world of this process) or not mapped."""
        with self._lock:
            if not self.base or pe >= self.count or pe in self._used:
                return 0
            self._used.add(pe)
            return self.base + pe * SLOT_BYTES

    def give_back(self, address: int) -> None:
        with self._lock:
            self._used.discard((address - self.base) // SLOT_BYTES)


def _map_fixed(address: int, size: int) -> int:
    """Anonymous memory at `address`, or 0."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100000  # MAP_FIXED_NOREPLACE
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    got = libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    return address if got == address else 0


_slots: list[_Slots] = []


def _take_slot(pe: int) -> tuple[AscendState, int]:
    """A state at the fixed address, else anywhere."""
    if not _slots:
        _slots.append(_Slots())
    address = _slots[0].take(pe)
    if not address:
        return AscendState(), 0
    ctypes.memset(address, 0, ctypes.sizeof(AscendState))
    return AscendState.from_address(address), address


class Npu:
    """A simulated NPU: its state, and all that the state points to. Made for a DeviceState of the host engine."""

    def __init__(self, device: DeviceState, engine: str) -> None:
        self.engine, self._device = engine, device
        n, me = device.n_pes, device.my_pe
        # A kernel outside of every world has a state of its own, and must not take the place of the PE of its number.
        self.state, self._slot = _take_slot(me) if device.heap_size else (AscendState(), 0)
        bases = (c_uint64 * n).from_address(device.peer_base)
        self.queues = {name: _queue() for name in ("SDMA", "ROCE", "UDMA")}
        self._owned: list[Any] = [entries for _, entries in self.queues.values()]
        self._kept: list[Sequence[Any]] = []
        self.teams = (c_uint64 * MOST_TEAMS)()
        self._fill(n, me, list(bases))
        self.add_team(0, range(n), device.heap_base + device.sync_offset, _counter_address(device))
        device.vendor = ctypes.addressof(self.state)

    def _fill(self, n: int, me: int, bases: list[int]) -> None:
        state, device = self.state, self._device
        topology = (c_uint8 * n)(*[MTE if pe == me else TOPOLOGY[self.engine] for pe in range(n)])
        state.version, state.mype, state.npes = 1, me, n
        state.heap_base = state.host_heap_base = device.heap_base
        state.heap_size = device.heap_size
        state.topo_list = self._address(topology)
        for table, bit in (("p2p", MTE), ("rdma", ROCE | UDMA), ("sdma", SDMA)):
            reached = [base if topology[pe] & bit or pe == me else 0 for pe, base in enumerate(bases)]
            address = self._address((c_uint64 * n)(*reached))
            setattr(state, f"{table}_device_heap_base", address)
            setattr(state, f"{table}_host_heap_base", address)
        state.team_pools = ctypes.addressof(self.teams)
        state.sync_pool, state.sync_counter = device.heap_base + device.sync_offset, _counter_address(device)
        state.core_sync_pool = self._address(CoreSync())
        for name, field in (("SDMA", "sdma_config"), ("ROCE", "rdma_config"), ("UDMA", "udma_config")):
            setattr(state, field, ctypes.addressof(self.queues[name][0]))
        state.initialized = 1

    def _address(self, value: Any) -> int:
        self._owned.append(value)
        return ctypes.addressof(value)

    def add_team(self, number: int, members: Sequence[int], slots: int, counter: int | None = None) -> None:
        """Make team `number` of these PEs of the world; `slots` is where its barrier's slots lie in this PE's heap."""
        me, n = self.state.mype, self.state.npes
        forward = list(members) + [-1] * (n - len(members))
        reverse = [forward.index(pe) if pe in members else -1 for pe in range(n)]
        mapping = (c_int32 * (2 * n))(*forward, *reverse)
        if counter is None:
            counter = self._address(c_int64(0))
        team = Team(reverse[me], len(members), slots, counter, self._address(mapping), 1)
        self.teams[number] = self._address(team)

    def remove_team(self, number: int) -> None:
        self.teams[number] = 0

    def team(self, number: int) -> Team | None:
        """The team of this number, or None."""
        address = self.teams[number] if 0 <= number < MOST_TEAMS else 0
        return Team.from_address(address) if address else None

    def mapping(self, team: Team) -> list[int]:
        """The world's number of each member."""
        return list((c_int32 * team.size).from_address(team.pe_mapping))

    def keep(self, values: Sequence[Any]) -> None:
        """Keep what a launch was given until the queues are empty: a transfer that nobody waited for may read it."""
        if any(queue.tail != queue.head for queue, _ in self.queues.values()):
            self._kept.append(values)
        elif self._kept:
            self._kept.clear()

    def describe(self, address: int) -> str | None:
        """What a wait for this address of the library's own waits for."""
        if address == self.state.core_sync_pool + CoreSync.generation.offset:
            return "of the kernel's programs to each other in a barrier, which all of them must call"
        for name, (queue, _) in self.queues.items():
            if address == ctypes.addressof(queue) + Queue.head.offset:
                return f"of the {name} engine that the transfers up to this number are done"
        return None

    def close(self, stop_agent: Any) -> None:
        """Stop the progress agents; transfers that nobody waited for are dropped."""
        for queue, _ in self.queues.values():
            stop_agent(ctypes.addressof(queue))
        self._device.vendor = 0
        if self._slot:
            _slots[0].give_back(self._slot)


def _queue() -> tuple[Queue, Any]:
    entries = (Entry * QUEUE_ENTRIES)()
    return Queue(capacity=QUEUE_ENTRIES, entries=ctypes.addressof(entries), idle_ns=IDLE_NS), entries


def _counter_address(device: DeviceState) -> int:
    # Shared with the host's own barrier, so that kernels and the host count the same barriers.
    return ctypes.addressof(device) + DeviceState.sync_count.offset


_npus: dict[int, Npu] = {}
_lock = threading.Lock()


def npu_of(device: DeviceState) -> Npu | None:
    """The NPU that stands for `device`, if there is one yet."""
    return _npus.get(ctypes.addressof(device))


def attach(device: DeviceState, engine: str) -> Npu:
    """The NPU for `device`, made at the first call."""
    with _lock:
        found = _npus.get(ctypes.addressof(device))
        # A PE that is gone may have left its address to another.
        stale = found is not None and found._device is not device and not device.vendor
        if found is None or stale:
            found = _npus[ctypes.addressof(device)] = Npu(device, engine)
        return found


def detach(device: DeviceState, stop_agent: Any) -> None:
    """The PE is over."""
    with _lock:
        npu = _npus.pop(ctypes.addressof(device), None)
    if npu is not None:
        npu.close(stop_agent)

