# SPDX-License-Identifier: MIT
"""Teams of the stand-in. They live in the simulated device state, so that kernels see them."""

from __future__ import annotations

import ctypes

from triton_dist import shmem
from triton_dist.backends.ascend import codes
from triton_dist.backends.ascend.simulated.state import Team
from triton_dist.backends.ascend.standin import pes
from triton_dist.backends.ascend.symbols import SLOT_BYTES


def get(number: int) -> Team | None:
    """The team of this number that this PE is in or knows of."""
    pe = pes.current()
    return None if pe is None else pe.npu.team(number)


def members(team: Team) -> list[int]:
    """The world's numbers of a team's members."""
    pe = pes.require("a team")
    mapping = pe.npu.mapping(team)
    return mapping[: team.size]


def translate(source: int, pe: int, dest: int) -> int:
    a, b = get(source), get(dest)
    if a is None or b is None or not 0 <= pe < a.size:
        return -1
    world = members(a)[pe]
    found = members(b)
    return found.index(world) if world in found else -1


def split_strided(parent: int, start: int, stride: int, size: int) -> int:
    team = get(parent)
    if team is None or team.my_pe < 0:
        return codes.INVALID_PARAM
    last = start + (size - 1) * stride
    if start < 0 or stride <= 0 or size <= 0 or last >= team.size:
        return codes.INVALID_VALUE
    all_ = members(team)
    return _make(parent, team, [all_[start + i * stride] for i in range(size)])


def split_2d(parent: int, x_range: int) -> tuple[int, int]:
    team = get(parent)
    if team is None or team.my_pe < 0 or x_range <= 0:
        raise RuntimeError(f"team_split_2d: team {parent}, x_range {x_range}")
    row, column = divmod(team.my_pe, min(x_range, team.size))
    all_, width = members(team), min(x_range, team.size)
    made = [_make(parent, team, group) for group in (all_[row * width : (row + 1) * width], all_[column::width])]
    if min(made) < 0:
        raise RuntimeError(f"team_split_2d: {pes.TEAM_SLOTS - 1} teams are there, and no PE can be in more")
    return made[0], made[1]


def _make(parent: int, team: Team, group: list[int]) -> int:
    """Collective over the parent: a team of `group`, with the least number that is free on its PEs; each group of one
    split makes its own. A PE outside its group gets -1. A number means a team to its members."""
    pe = pes.require("a team split")
    me = pe.device.my_pe
    _meet(parent, team)
    uses = [shmem.peer_tensor(pe.used, other) for other in group]
    number = next((i for i in range(1, pes.TEAM_SLOTS) if not any(int(used[i]) for used in uses)), codes.MALLOC)
    inside = me in group
    if inside and number > 0:
        # Before anybody can be in a barrier of it: what an earlier team left there would count.
        pe.slots[number].zero_()
    _meet(parent, team)
    if not inside:
        return -1
    if number > 0:
        pe.used[number] = 1
        pe.npu.add_team(number, group, pe.slots[number].data_ptr())
    return number


def _meet(number: int, team: Team) -> None:
    """The barrier of a team, for the host; it counts together with those of kernels."""
    if number == 0:
        shmem.barrier_all()
        return
    pe = pes.require("a team split")
    counter = ctypes.c_int64.from_address(team.counter)
    counter.value += 1
    bases = (ctypes.c_uint64 * pe.device.n_pes).from_address(pe.device.peer_base)
    offset = team.slots - pe.device.heap_base
    slots = {world: bases[world] + offset + SLOT_BYTES * i for i, world in enumerate(members(team))}
    pe.adapter.pull(f"a split of team {number}", slots, counter.value)


def destroy(number: int) -> None:
    pe = pes.require("team_destroy")
    if number > 0 and pe.npu.team(number) is not None:
        pe.npu.remove_team(number)
        pe.used[number] = 0
