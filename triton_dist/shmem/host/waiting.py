# SPDX-License-Identifier: MIT
"""Waits of the host. Each ends: with the value, or with an error that says why it cannot come.

A wait reads in native code for some microseconds, then yields the core, then sleeps for growing spans. Only the
sleeping part looks at clocks and peers, so that a wait whose value comes soon pays nothing for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from triton_dist.backends.cpu import atomics
from triton_dist.backends.cpu.state import PEER_DIED, RUNNING, DeviceState
from triton_dist.errors import KernelAborted, MissingPe, OutOfStep, PeerDied, TritonDistError
from triton_dist.shmem.callsite import call_site
from triton_dist.shmem.host.control import Blocked, Control, Phase, name_pes

_SPIN_ROUNDS = 400
_YIELDS = 60
_SHORTEST_SLEEP, _LONGEST_SLEEP = 20e-6, 1e-3
_CONFLICT_SECONDS = 0.2
"""How long two PEs must be seen in different collective calls before that counts as a mistake."""


@dataclass
class Wait:
    """One blocking call of the host: what it is, and how to tell that its value will not come."""

    call: str
    kind: Blocked
    ident: int
    """Tells this call from the next of its kind."""
    missing: Callable[[], list[int]]
    """The PEs that the call needs and that have not come."""
    seconds: float
    """Its deadline; 0: none."""
    timed_out: Callable[[float, int], TritonDistError] | None = None
    """The error at the deadline, from the seconds waited and the value seen; None: the PEs are missing."""
    conflicts: dict[int, tuple[int, int, float]] = field(default_factory=dict)

    @property
    def where(self) -> str:
        # Looked up late: a stack walk costs more than most waits.
        return call_site()


class Waiter:
    """The waits of one PE. `deaths` says how PEs ended that are gone."""

    def __init__(self, state: DeviceState, abort: Callable[[], int], control: Control, deaths: dict[int, str]) -> None:
        self._state, self._abort, self._control, self._deaths = state, abort, control, deaths

    def until(self, address: int, accept: Callable[[int], bool], wait: Wait, bits: int = 64) -> int:
        """Read the word at `address` until `accept` takes its value; returns the value."""
        word = atomics.word(bits)
        seen = word.load(address)
        if accept(seen):
            return seen
        for _ in range(_YIELDS):
            seen = word.spin(address, seen, _SPIN_ROUNDS)
            if accept(seen):
                return seen
            atomics.yield_core()
        return self._sleep_until(word, address, accept, wait)

    def _sleep_until(self, word: atomics.Word, address: int, accept: Callable[[int], bool], wait: Wait) -> int:
        start, pause = time.monotonic(), _SHORTEST_SLEEP
        self._control.enter(wait.kind, wait.ident, f"{wait.call} at {wait.where}")
        try:
            while True:
                seen = word.load(address)
                if accept(seen):
                    return seen
                self._check(wait, time.monotonic() - start, seen)
                time.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_SLEEP)
        finally:
            self._control.leave()

    def _check(self, wait: Wait, waited: float, seen: int) -> None:
        if self._abort() != RUNNING:
            raise self.aborted(f"{wait.call} at {wait.where}")
        if wait.kind in (Blocked.COLLECTIVE, Blocked.BARRIER):
            self._check_peers(wait)
        if wait.seconds and waited >= wait.seconds:
            raise self._deadline(wait, waited, seen)

    def aborted(self, what: str) -> KernelAborted:
        """The error for a set abort word."""
        if self._abort() != PEER_DIED:
            return KernelAborted(detail=f"PE {self._state.my_pe}: {what} was interrupted.")
        dead = self._state.dead_pe
        return self.peer_died(dead, what)

    def peer_died(self, dead: int, what: str) -> PeerDied:
        detail = self._deaths.get(dead) or self._control.note(dead) or "it ended"
        return PeerDied(pe=self._state.my_pe, dead=dead, detail=detail, what=what)

    def _check_peers(self, wait: Wait) -> None:
        for pe in wait.missing():
            phase = self._control.phase(pe)
            if phase == Phase.EXITED:
                raise self.peer_died(pe, f"{wait.call} at {wait.where}")
            if phase in (Phase.BROKEN, Phase.FINALIZED):
                raise self.give_up(wait, f"{self._control.state_of(pe)}.")
            self._check_conflict(wait, pe)

    def _check_conflict(self, wait: Wait, pe: int) -> None:
        """Raise if a peer has been waiting for us in a collective call of another kind: neither can go on."""
        block = self._control.blocks[pe]
        kind, ident = block.blocked, block.blocked_id
        if kind not in (Blocked.COLLECTIVE, Blocked.BARRIER) or kind == wait.kind:
            wait.conflicts.pop(pe, None)
            return
        known = wait.conflicts.get(pe)
        if known is None or known[:2] != (kind, ident):
            wait.conflicts[pe] = kind, ident, time.monotonic()
        elif time.monotonic() - known[2] > _CONFLICT_SECONDS:
            raise self.give_up(wait, f"the PEs wait for each other in different calls: {self._control.state_of(pe)}.")

    def give_up(self, wait: Wait, detail: str) -> OutOfStep:
        """Mark this PE as out of step, so that the others stop waiting for it, and make the error."""
        error = OutOfStep(pe=self._state.my_pe, where=wait.where, call=wait.call, detail=detail)
        self._control.set_phase(Phase.BROKEN, f"it was in {wait.call} at {wait.where}")
        return error

    def _deadline(self, wait: Wait, waited: float, seen: int) -> TritonDistError:
        if wait.timed_out is not None:
            return wait.timed_out(waited, seen)
        missing = wait.missing()
        states = "\n".join(f"  {self._control.state_of(pe)}" for pe in missing)
        error = MissingPe(
            pe=self._state.my_pe,
            where=wait.where,
            call=wait.call,
            seconds=waited,
            missing=name_pes(missing) if missing else "nobody",
            states=states,
        )
        self._control.set_phase(Phase.BROKEN, f"it waited {waited:.1f} s in {wait.call} at {wait.where}")
        return error
