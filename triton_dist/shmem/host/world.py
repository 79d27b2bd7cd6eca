# SPDX-License-Identifier: MIT
"""How the PEs of a host find each other and map each other's memory."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from triton_dist.backends.cpu.heap import FdServer, Segment, open_peer_fd
from triton_dist.errors import RendezvousError, ShmemConfigError, UnsupportedHost
from triton_dist.shmem.config import Rendezvous, ShmemConfig
from triton_dist.shmem.host.control import CONTROL_BYTES, name_pes, sync_bytes
from triton_dist.shmem.host.liveness import ExitBoard, describe_exit, runs

if TYPE_CHECKING:
    from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage]

FORMAT = 1
"""Changes when the layout of the control block or of the heap does."""


@dataclass
class World:
    """The heaps of all PEs as mapped by this PE, and the peers' process ids (none if the PEs are threads)."""

    pe: int
    segments: list[Segment]
    pids: dict[int, int]
    server: FdServer | None = None

    def opened(self) -> None:
        """All peers have mapped this PE's memory: what only served that can go."""
        if self.server is not None:
            self.server.close()
            self.server = None
        self.segments[self.pe].close_fd()


def segment_bytes(heap_size: int, n_pes: int) -> int:
    """Bytes of a segment whose tensors can take `heap_size`: the control block and the barrier's slots come first."""
    return CONTROL_BYTES + sync_bytes(n_pes) + heap_size


def thread_segments(n_pes: int, heap_size: int) -> list[Segment]:
    """The heaps of PEs that are threads of this process."""
    return [Segment.private(segment_bytes(heap_size, n_pes)) for _ in range(n_pes)]


class Card(BaseModel):
    """What a PE tells the others at the rendezvous."""

    model_config = ConfigDict(frozen=True)

    format: int
    machine: str
    pid: int
    fd: int
    server: str
    n_pes: int
    heap_size: int


_generation = 0


def join(config: ShmemConfig) -> World:
    """Meet the other processes at the rendezvous and map their heaps."""
    global _generation
    if config.pes_on_node not in (None, config.n_pes):
        raise ShmemConfigError(
            detail=f"{config.pes_on_node} of {config.n_pes} PEs are on this node, but the host engine's PEs share "
            "memory, so all must be on one node. Use --nnodes=1."
        )
    _generation += 1
    own = Segment.create(segment_bytes(config.heap_size, config.n_pes))
    if config.n_pes == 1 or config.rendezvous is None:
        return World(config.pe, [own], {})
    assert own.fd is not None
    server = FdServer(own.fd)
    try:
        cards = _exchange(config, config.rendezvous, _card(config, own.fd, server.name))
        segments = [own if pe == config.pe else _attach(config, pe, card, own.size) for pe, card in enumerate(cards)]
    except BaseException:
        server.close()
        raise
    pids = {pe: card.pid for pe, card in enumerate(cards) if pe != config.pe}
    return World(config.pe, segments, pids, server)


def _card(config: ShmemConfig, fd: int, server: str) -> Card:
    return Card(
        format=FORMAT,
        machine=_machine(),
        pid=os.getpid(),
        fd=fd,
        server=server,
        n_pes=config.n_pes,
        heap_size=config.heap_size,
    )


def _machine() -> str:
    """Tells machines apart, and containers that do not share process ids."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _exchange(config: ShmemConfig, at: Rendezvous, own: Card) -> list[Card]:
    deadline = time.monotonic() + config.init_timeout
    store = _store(config, at, deadline)
    # A second init after a finalize finds keys of its own: all PEs count their inits alike, as init is collective.
    keys = [f"{at.prefix}/{_generation}/{pe}" for pe in range(config.n_pes)]
    missing = list(range(config.n_pes))
    try:
        store.set(keys[config.pe], own.model_dump_json())
        _await_keys(store, keys, missing, deadline, config)
        raw = [store.get(key) for key in keys]
        _await_readers(store, f"{at.prefix}/{_generation}/read", deadline, config)
    except RuntimeError as error:  # the classes of torch's store errors derive from it
        # With the store in PE 0 this is how its end looks, perhaps because it gave up waiting a moment before we do.
        waiting = f" while this PE waited for {name_pes(missing)}" if missing else ""
        raise RendezvousError(
            pe=config.pe,
            n_pes=config.n_pes,
            detail=f"the store at {at.host}:{at.port} went away{waiting}: {_first_line(error)}",
        ) from error
    cards = [_parse(config, pe, text) for pe, text in enumerate(raw)]
    _check_equal(config, cards)
    return cards


def connect(config: ShmemConfig, at: Rendezvous) -> Store:
    """The launcher's store, for back ends that meet in their own way."""
    return _store(config, at, time.monotonic() + config.init_timeout)


def _store(config: ShmemConfig, at: Rendezvous, deadline: float) -> Store:
    from torch.distributed import PrefixStore, TCPStore  # pyright: ignore[reportPrivateImportUsage]

    serves = config.pe == 0 and not at.hosted_by_launcher
    try:
        if not serves:
            _await_port(at, deadline)
        # multi_tenant: torch.distributed in the same process may use the same port, as env:// does.
        store = TCPStore(
            host_name=at.host,
            port=at.port,
            world_size=config.n_pes,
            is_master=serves,
            timeout=timedelta(seconds=config.init_timeout),
            wait_for_workers=False,
            multi_tenant=True,
        )
    except (RuntimeError, OSError) as error:
        who = "the launcher" if at.hosted_by_launcher else "PE 0"
        raise RendezvousError(
            pe=config.pe,
            n_pes=config.n_pes,
            detail=f"no store at {at.host}:{at.port} within {config.init_timeout:.1f} s, which {who} should run "
            f"({_first_line(error)}). Does PE 0 call shmem.init? Is MASTER_PORT free?",
        ) from error
    return PrefixStore("triton_dist", store)


def _await_port(at: Rendezvous, deadline: float) -> None:
    """Wait until the store listens. Its own client would try again only every second or so."""
    while True:
        try:
            with socket.create_connection((at.host, at.port), timeout=5):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _await_keys(store: Store, keys: list[str], missing: list[int], deadline: float, config: ShmemConfig) -> None:
    """Wait until all keys are there; `missing` holds the numbers of those that are not, also when this raises."""
    pause = 0.001
    board = ExitBoard.from_environment(config.n_pes)
    while True:
        gone = [(pe, code) for pe in missing if board is not None and (code := board.get(pe)) is not None]
        # Polled rather than store.wait: its failure does not say which key is missing.
        missing[:] = [pe for pe in missing if not store.check([keys[pe]])]
        if not missing:
            return
        for pe, code in gone:
            if pe in missing:
                detail = f"PE {pe} {describe_exit(code)} before it called shmem.init."
                raise RendezvousError(pe=config.pe, n_pes=config.n_pes, detail=detail)
        if time.monotonic() > deadline:
            raise RendezvousError(
                pe=config.pe,
                n_pes=config.n_pes,
                detail=f"waited {config.init_timeout:.1f} s for {name_pes(missing)}, which did not call shmem.init. "
                "init_timeout sets the limit.",
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _await_readers(store: Store, key: str, deadline: float, config: ShmemConfig) -> None:
    """Let PE 0 wait until all have read: the store may end with its process, or with the error that it raises next."""
    count = store.add(key, 1)
    while config.pe == 0 and count < config.n_pes and time.monotonic() < deadline:
        time.sleep(0.001)
        count = store.add(key, 0)


def _parse(config: ShmemConfig, pe: int, raw: bytes) -> Card:
    try:
        return Card.model_validate_json(raw)
    except ValidationError as error:
        raise RendezvousError(
            pe=config.pe, n_pes=config.n_pes, detail=f"PE {pe} runs another version of triton_dist"
        ) from error


def _check_equal(config: ShmemConfig, cards: list[Card]) -> None:
    """All must agree; everyone sees all cards, so everyone raises."""
    if len({card.machine for card in cards}) > 1:
        hosts = ", ".join(f"PE {pe} on {card.machine.split()[0]}" for pe, card in enumerate(cards))
        raise ShmemConfigError(
            detail=f"the host engine's PEs share memory, so all must be on one machine and in one container: {hosts}."
        )
    for field in ("format", "n_pes", "heap_size"):
        values = [getattr(card, field) for card in cards]
        if len(set(values)) > 1:
            listed = ", ".join(f"PE {pe}: {value}" for pe, value in enumerate(values))
            raise ShmemConfigError(detail=f"{field} must be equal on all PEs, but it is {listed}.")


def _attach(config: ShmemConfig, pe: int, card: Card, size: int) -> Segment:
    try:
        return Segment.attach(open_peer_fd(card.pid, card.fd, card.server, config.fd_passing), size)
    except (UnsupportedHost, OSError) as error:
        if runs(card.pid):
            raise
        raise RendezvousError(
            pe=config.pe, n_pes=config.n_pes, detail=f"PE {pe} (process {card.pid}) died meanwhile"
        ) from error
