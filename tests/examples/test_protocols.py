# SPDX-License-Identifier: MIT
"""The signalling of the portable kernels, in every possible interleaving of small cases.

Each program is a list of steps on shared memory; the explorer runs every order of them. A wait that can never end, or a
read of anything but the expected value, is a fault of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import pytest


class Step(NamedTuple):
    """`wait` goes on when the value is there, `reach` when it is as large; `read` fails if it is not there.

    `take` goes on when there is a `packet` with the value's flag, and fails if its data is another.
    """

    kind: str
    place: Hashable
    value: int


Program = list[Step]


class ProtocolFault(Exception):
    pass


def explore(programs: list[Program]) -> int:
    """Run every interleaving; returns the number of states. Memory that was never written is 0."""
    start = ((0,) * len(programs), frozenset[tuple[Hashable, int]]())
    seen, todo = {start}, [start]
    while todo:
        counters, memory = todo.pop()
        following = [
            state
            for i, program in enumerate(programs)
            if counters[i] < len(program) and (state := advance(program[counters[i]], i, counters, dict(memory)))
        ]
        if not following and any(c < len(p) for c, p in zip(counters, programs, strict=True)):
            stuck = [p[c] for c, p in zip(counters, programs, strict=True) if c < len(p)]
            raise ProtocolFault(f"stuck: {stuck}")
        todo += [state for state in following if state not in seen]
        seen.update(following)
    return len(seen)


def advance(step: Step, i: int, counters: tuple[int, ...], memory: dict[Hashable, int]):
    """The state after program `i` took `step`; None if it must wait."""
    present = memory.get(step.place, 0)
    if (step.kind == "wait" and present != step.value) or (step.kind == "reach" and present < step.value):
        return None
    if step.kind == "take" and present >> 32 != step.value >> 32:
        return None
    if step.kind in ("read", "take") and present != step.value:
        raise ProtocolFault(f"read {present} instead of {step.value} at {step.place}")
    if step.kind == "write":
        memory[step.place] = step.value
    return (*counters[:i], counters[i] + 1, *counters[i + 1 :]), frozenset(memory.items())


def exchange(
    pe: int, pes: int, calls: int, half: Callable[[int], int], signal: Callable[[int], int], split: bool = False
) -> list[Program]:
    """A PE's kernel that is built on `Exchange`: push to all, wait for all, read what came.

    As one program, or split in two: one pushes, the other waits and reads.
    """
    parts: list[Program] = [[], []] if split else [[]]
    for call in range(1, calls + 1):
        for part in parts:  # a launch begins when every program of the launch before has ended
            part += [Step("reach", ("ended", pe, other), call - 1) for other in range(len(parts))]
        for peer in range(pes):
            parts[0].append(Step("write", ("data", half(call), peer, pe), call))
            parts[0].append(Step("write", ("signal", half(call), peer, pe), signal(call)))
        parts[-1] += [Step("wait", ("signal", half(call), pe, source), signal(call)) for source in range(pes)]
        parts[-1] += [Step("read", ("data", half(call), pe, source), call) for source in range(pes)]
        for i, part in enumerate(parts):
            part.append(Step("write", ("ended", pe, i), call))
    return parts


def two_copies(call: int) -> int:
    return call % 2


def call_number(call: int) -> int:
    return call


@pytest.mark.parametrize(
    ("pes", "split", "calls"), [(1, False, 4), (2, False, 6), (3, False, 3), (1, True, 4), (2, True, 4)]
)
def test_exchange_needs_no_barrier(pes: int, split: bool, calls: int) -> None:
    everyone = [part for pe in range(pes) for part in exchange(pe, pes, calls, two_copies, call_number, split)]
    assert explore(everyone) > calls


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    ("half", "signal"),
    [(lambda call: 0, call_number), (two_copies, lambda call: 1)],
    ids=["one copy", "the same value in every call"],
)
def test_the_explorer_finds_broken_exchanges(
    half: Callable[[int], int], signal: Callable[[int], int], split: bool
) -> None:
    with pytest.raises(ProtocolFault):
        explore([part for pe in range(2) for part in exchange(pe, 2, 4, half, signal, split)])


class Counting(NamedTuple):
    """A collective that is `Counted`: `kind`, on `pes` PEs with `programs` each; `without` a round of signals."""

    kind: str
    pes: int
    programs: int
    without: str = ""

    def told(self, phase: str, pe: int, i: int, call: int) -> Program:
        """A program tells those of its own number, and awaits them."""
        if phase == self.without:
            return []
        tells = [Step("write", ("told", phase, call % 2, peer, pe, i), call) for peer in range(self.pes)]
        return tells + [Step("wait", ("told", phase, call % 2, pe, source, i), call) for source in range(self.pes)]

    def call(self, pe: int, i: int, call: int) -> Program:
        """What a program does, with one piece."""
        stage = [Step("write", ("stage", call % 2, peer, pe, i), call) for peer in range(self.pes)]
        staged = [Step("read", ("stage", call % 2, pe, source, i), call) for source in range(self.pes)]
        results = [Step("write", ("result", peer, pe, i), call) for peer in range(self.pes)]
        pulled = [Step("read", ("input", source, pe, i), call) for source in range(self.pes)]
        ready, sent, done = (self.told(phase, pe, i, call) for phase in ("ready", "sent", "done"))
        return {
            "staged": [*stage, *sent, *staged],
            "direct": [*ready, *results, *sent],
            "two-shot": [*stage, *sent, *staged, *results, *done],
            "pull": [*ready, *pulled, *done],
        }[self.kind]

    def between(self, pe: int, call: int) -> Program:
        """Before a call: the last one's result is read, or its input is written."""
        pieces = [(other, i) for other in range(self.pes) for i in range(self.programs)]
        if self.kind == "pull":
            return [Step("write", ("input", pe, *piece), call) for piece in pieces]
        return [Step("read", ("result", pe, *piece), call - 1) for piece in pieces] if self.kind != "staged" else []

    def everyone(self, calls: int) -> list[Program]:
        """Launches on a stream: one begins when all programs of the one before have ended."""
        found: list[Program] = []
        for pe in range(self.pes):
            stream: Program = []
            kernel: list[Program] = [[] for _ in range(self.programs)]
            for call in range(1, calls + 1):
                stream += [*self.between(pe, call), Step("write", ("launched", pe), call)]
                for i, program in enumerate(kernel):
                    program.append(Step("reach", ("launched", pe), call))
                    program += [*self.call(pe, i, call), Step("write", ("ended", pe, i), call)]
                    stream.append(Step("reach", ("ended", pe, i), call))
            found += [[*stream, *self.between(pe, calls + 1)], *kernel]
        return found


@pytest.mark.parametrize("kind", ["staged", "direct", "two-shot", "pull"])
@pytest.mark.parametrize(("pes", "programs", "calls"), [(1, 2, 3), (2, 1, 4), (2, 2, 2), (3, 1, 2)])
def test_counted_calls_need_no_barrier(kind: str, pes: int, programs: int, calls: int) -> None:
    assert explore(Counting(kind, pes, programs).everyone(calls)) > calls


@pytest.mark.parametrize(
    ("kind", "without"),
    [
        ("staged", "sent"), ("direct", "ready"), ("direct", "sent"), ("two-shot", "sent"), ("two-shot", "done"),
        ("pull", "ready"), ("pull", "done"),
    ],
)  # fmt: skip
def test_the_explorer_finds_what_a_counted_call_omits(kind: str, without: str) -> None:
    with pytest.raises(ProtocolFault, match="read"):
        explore(Counting(kind, 2, 1, without).everyone(3))


def producer(pe: int, pes: int, number: int, producers: int, slots: int, items: int) -> Program:
    right, steps = (pe + 1) % pes, []
    for item in range(number, items, producers):
        slot, lap = item % slots, item // slots
        steps.append(Step("wait", ("free", pe, slot), lap))
        steps.append(Step("write", ("queue", right, slot), 100 + item))
        steps.append(Step("write", ("ready", right, slot), lap + 1))
    return steps


def consumer(pe: int, pes: int, number: int, consumers: int, slots: int, items: int) -> Program:
    left, steps = (pe - 1) % pes, []
    for item in range(number, items, consumers):
        slot, lap = item % slots, item // slots
        steps.append(Step("wait", ("ready", pe, slot), lap + 1))
        steps.append(Step("read", ("queue", pe, slot), 100 + item))
        steps.append(Step("write", ("free", left, slot), lap + 1))
    return steps


@pytest.mark.parametrize(
    ("pes", "producers", "consumers", "slots", "items"),
    [(1, 1, 1, 1, 6), (1, 2, 2, 2, 8), (1, 3, 2, 2, 7), (2, 1, 1, 2, 5), (2, 2, 1, 1, 3), (3, 1, 1, 1, 2)],
)
def test_queue_reuses_slots_safely(pes: int, producers: int, consumers: int, slots: int, items: int) -> None:
    everyone = [producer(pe, pes, i, producers, slots, items) for pe in range(pes) for i in range(producers)]
    everyone += [consumer(pe, pes, i, consumers, slots, items) for pe in range(pes) for i in range(consumers)]
    assert explore(everyone) > items


def test_the_explorer_finds_a_queue_that_overwrites() -> None:
    eager = [step for step in producer(0, 1, 0, 1, 1, 3) if step.kind == "write"]
    with pytest.raises(ProtocolFault):
        explore([eager, consumer(0, 1, 0, 1, 1, 3)])


def lending(pe: int, pes: int, calls: int, lends: bool = True, resets: bool = True) -> list[Program]:
    """A call by `Stage`, two streams: one lends, awaits what others wrote and reads it, the other writes to them."""
    main: Program = []
    push: Program = []
    for call in range(1, calls + 1):
        others = [peer for peer in range(pes) if peer != pe]
        if lends:
            main += [Step("write", ("lent", peer, pe), 1) for peer in others]
        main.append(Step("write", ("forked", pe), call))
        push.append(Step("reach", ("forked", pe), call))
        for peer in others:
            if lends:
                push.append(Step("wait", ("lent", pe, peer), 1))
                push.append(Step("write", ("lent", pe, peer), 0))
            push.append(Step("write", ("data", peer, pe), call))
            push.append(Step("write", ("told", peer, pe), 1))
        push.append(Step("write", ("joined", pe), call))
        for peer in others:
            main.append(Step("wait", ("told", pe, peer), 1))
            if resets:
                main.append(Step("write", ("told", pe, peer), 0))
            main.append(Step("read", ("data", pe, peer), call))
        main.append(Step("reach", ("joined", pe), call))
    return [main, push]


@pytest.mark.parametrize(("pes", "calls"), [(1, 3), (2, 4), (3, 2)])
def test_lent_memory_needs_no_barrier(pes: int, calls: int) -> None:
    assert explore([program for pe in range(pes) for program in lending(pe, pes, calls)]) > calls


@pytest.mark.parametrize("broken", [{"lends": False}, {"resets": False}], ids=str)
def test_the_explorer_finds_broken_lending(broken: dict[str, bool]) -> None:
    with pytest.raises(ProtocolFault):
        explore([program for pe in range(2) for program in lending(pe, 2, 3, **broken)])


def packet(flag: int, data: int) -> int:
    return flag << 32 | data


def packets(
    pe: int, pes: int, numbers: Sequence[int], programs: int = 1, half: Callable[[int], int] = two_copies,
    flag: Callable[[int], int] = call_number, zeroed: bool = True, agreed: bool = True,
) -> list[Program]:  # fmt: skip
    """A PE's kernel of packets: each program sends a word to every other PE, and takes theirs.

    Nothing orders the stores, nor waits for them: the way of each program's words to a PE is a program of its own.
    `numbers`: of the calls. Where they begin again, another operation has got the memory.
    """
    others = [peer for peer in range(pes) if peer != pe]
    kernel: list[Program] = [[] for _ in range(programs)]
    ways: list[Program] = []
    for i, program in enumerate(kernel):
        to: dict[int, Program] = {peer: [] for peer in others}
        for call, number in enumerate(numbers, 1):
            copy, value = half(number), packet(flag(number), call)
            program += [Step("reach", ("ended", pe, other), call - 1) for other in range(programs)]
            if number == 1 and zeroed:
                program += [Step("write", ("word", which, pe, source, i), 0) for which in (0, 1) for source in others]
            if number == 1 and agreed:
                program.append(Step("write", ("made", pe, i), call))
                program += [Step("reach", ("made", peer, j), call) for peer in others for j in range(programs)]
            program.append(Step("write", ("sent", pe, i), call))
            for peer, way in to.items():
                way += [Step("reach", ("sent", pe, i), call), Step("write", ("word", copy, peer, pe, i), value)]
            program += [Step("take", ("word", copy, pe, source, i), value) for source in others]
            program.append(Step("write", ("ended", pe, i), call))
        ways += to.values()
    return kernel + ways


def wrapped(call: int) -> int:
    """As it is after 2^31 calls."""
    return call % 4


def of_all_pes(pes: int, packets_of: Callable[[int], list[Program]]) -> list[Program]:
    return [program for pe in range(pes) for program in packets_of(pe)]


@pytest.mark.parametrize("flag", [call_number, wrapped])
@pytest.mark.parametrize(("pes", "programs", "calls"), [(1, 2, 4), (2, 1, 9), (2, 2, 4), (3, 1, 4)])
def test_packets_need_no_signal(pes: int, programs: int, calls: int, flag: Callable[[int], int]) -> None:
    assert explore(of_all_pes(pes, lambda pe: packets(pe, pes, range(1, calls + 1), programs, flag=flag))) > calls


@pytest.mark.parametrize(
    ("half", "flag", "fault"),
    [
        (lambda call: 0, call_number, "stuck"),
        (two_copies, lambda call: 1, "read"),
        (two_copies, lambda call: call % 2, "read"),
        (two_copies, lambda call: call - 1, "read 0"),
    ],
    ids=["one copy", "the same flag in every call", "the flag of the last call but one", "the flag of new memory"],
)
def test_the_explorer_finds_broken_packets(half: Callable[[int], int], flag: Callable[[int], int], fault: str) -> None:
    with pytest.raises(ProtocolFault, match=fault):
        explore(of_all_pes(2, lambda pe: packets(pe, 2, range(1, 5), half=half, flag=flag)))


TWO_OPERATIONS = (1, 2, 3, 1, 2, 3)


@pytest.mark.parametrize(("pes", "numbers"), [(2, TWO_OPERATIONS), (3, (1, 1))])
def test_packets_in_memory_that_another_operation_had(pes: int, numbers: tuple[int, ...]) -> None:
    assert explore(of_all_pes(pes, lambda pe: packets(pe, pes, numbers))) > len(numbers)


@pytest.mark.parametrize(
    ("zeroed", "agreed", "fault"), [(False, True, "read"), (True, False, "stuck")], ids=["not zeroed", "zeroed late"]
)
def test_the_explorer_finds_packets_of_another_operation(zeroed: bool, agreed: bool, fault: str) -> None:
    with pytest.raises(ProtocolFault, match=fault):
        explore(of_all_pes(2, lambda pe: packets(pe, 2, TWO_OPERATIONS, zeroed=zeroed, agreed=agreed)))
