# SPDX-License-Identifier: MIT
"""The control block at the start of each heap: what a PE tells the others about itself.

A PE writes only its own block and reads those of its peers. Collective calls are checked through it: call number
`seq` is written into one of two records (its arguments as text, a digest, the call site), then `seq` is stored.
Everyone waits until all have stored that number and compares. The record of call k is overwritten by call k + 2 at
the earliest, which no PE starts before all have stored k + 1, so before all have compared k: two records are enough,
and one round.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from ctypes import c_char, c_int64, c_uint64
from enum import IntEnum

from triton_dist.backends.cpu import atomics
from triton_dist.backends.cpu.heap import Segment

CONTROL_BYTES = 8192
SLOT_BYTES = 64
"""Distance of signal slots and of the barrier's slots: a cache line."""

MAGIC = 0x7472_6469_7374_0001


class Phase(IntEnum):
    STARTING = 0
    READY = 1
    BROKEN = 2  # gave up on a collective call: its sequence of calls no longer fits the others'
    FINALIZED = 3
    EXITED = 4  # ended without finalize


class Blocked(IntEnum):
    """What a PE's host thread waits in, once it has waited for longer than a moment."""

    NOWHERE = 0
    COLLECTIVE = 1
    BARRIER = 2
    SIGNAL = 3


class Record(ctypes.Structure):
    _fields_ = [("digest", c_uint64), ("call", c_char * 760), ("site", c_char * 256)]


class Block(ctypes.Structure):
    _fields_ = [
        ("magic", c_uint64),
        ("phase", c_int64),
        ("seq", c_int64),
        ("blocked", c_int64),
        ("blocked_id", c_int64),
        ("blocked_in", c_char * 1024),
        ("note", c_char * 1024),  # why it is BROKEN or EXITED
        ("failed", c_char * 1024),  # the last call that this PE refused on its own: it never became collective
        ("records", Record * 2),
    ]


assert ctypes.sizeof(Block) <= CONTROL_BYTES


def sync_bytes(n_pes: int) -> int:
    """Size of the barrier's slots."""
    return n_pes * SLOT_BYTES


class Control:
    """This PE's block and its peers'."""

    def __init__(self, pe: int, segments: Sequence[Segment]) -> None:
        self.pe, self.n_pes = pe, len(segments)
        self.blocks = [Block.from_address(segment.address) for segment in segments]
        self.own = self.blocks[pe]
        self._seq = [segment.address + Block.seq.offset for segment in segments]
        self._word = atomics.word(64)

    def start(self) -> None:
        self.own.magic = MAGIC
        self.own.phase = Phase.STARTING

    def publish(self, call: str, site: str) -> int:
        """Announce this PE's next collective call; returns its number."""
        seq = self.own.seq + 1
        record = self.own.records[seq & 1]
        record.digest = _digest(call)
        record.call, record.site = _fit(call, Record.call.size), _fit(site, Record.site.size)
        self._word.store(self._seq[self.pe], seq)
        return seq

    def seq_address(self, pe: int) -> int:
        return self._seq[pe]

    def behind(self, seq: int) -> list[int]:
        """The PEs that have not announced call number `seq`."""
        return [pe for pe in range(self.n_pes) if self._word.load(self._seq[pe]) < seq]

    def agreed(self, seq: int) -> bool:
        """Whether all announced the same call under this number; all must have announced one."""
        own = self.own.records[seq & 1].digest
        return all(block.records[seq & 1].digest == own for block in self.blocks)

    def calls(self, seq: int) -> str:
        """Each different call that was announced under this number, with its PEs and call site, a line each."""
        groups: dict[tuple[int, str], list[int]] = {}
        for pe, block in enumerate(self.blocks):
            record = block.records[seq & 1]
            # Calls may differ where their words were left out.
            groups.setdefault((record.digest, f"{_text(record.call)} at {_text(record.site)}"), []).append(pe)
        return "\n".join(f"  {name_pes(pes)}: {call}" for (_, call), pes in groups.items())

    def enter(self, kind: Blocked, ident: int, call: str) -> None:
        """Tell the others that this PE waits."""
        self.own.blocked_in = _fit(call, Block.blocked_in.size)
        self.own.blocked_id = ident
        self.own.blocked = kind

    def leave(self) -> None:
        self.own.blocked = Blocked.NOWHERE

    def set_phase(self, phase: Phase, note: str = "") -> None:
        self.own.note = _fit(note, Block.note.size)
        # Release: who sees the phase sees the note and all else this PE wrote before.
        self._word.store(ctypes.addressof(self.own) + Block.phase.offset, phase)

    def phase(self, pe: int) -> Phase:
        return Phase(self.blocks[pe].phase)

    def note(self, pe: int) -> str:
        return _text(self.blocks[pe].note)

    def refuse(self, error: str) -> None:
        """Remember a call that failed before it became collective, for the others' report."""
        self.own.failed = _fit(f"(call {self.own.seq + 1}) {error}", Block.failed.size)

    def state_of(self, pe: int) -> str:
        """One line on what a PE does, for a report."""
        block = self.blocks[pe]
        if block.phase in (Phase.BROKEN, Phase.FINALIZED, Phase.EXITED):
            return f"PE {pe} {_PHASES[block.phase]}{': ' if block.note else ''}{_text(block.note)}"
        if block.blocked:
            return f"PE {pe} waits in {_text(block.blocked_in)}"
        failed = _text(block.failed)
        if failed.startswith(f"(call {block.seq + 1}) "):
            return f"PE {pe} raised {failed.partition(') ')[2]}"
        if block.seq == 0:
            return f"PE {pe} has not come to its first collective call"
        record = block.records[block.seq & 1]
        return f"PE {pe} runs; its last collective call was {_text(record.call)} at {_text(record.site)}"


_PHASES = {Phase.BROKEN: "gave up", Phase.FINALIZED: "has finalized", Phase.EXITED: "ended"}


def name_pes(pes: Sequence[int]) -> str:
    """ "PE 1", or "PEs 0, 2 and 3"."""
    if len(pes) == 1:
        return f"PE {pes[0]}"
    return f"PEs {', '.join(map(str, pes[:-1]))} and {pes[-1]}"


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest(), "little")


def _fit(text: str, size: int) -> bytes:
    return shortened(text.encode(errors="replace"), size - 1)


_LEFT_OUT = b" ... "


def shortened(text: bytes, most: int) -> bytes:
    """Its beginning and its end, if it is longer: what calls are told apart by may be their last argument."""
    if len(text) <= most:
        return text
    end = (most - len(_LEFT_OUT)) // 2
    return text[: most - len(_LEFT_OUT) - end] + _LEFT_OUT + text[-end:]


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
