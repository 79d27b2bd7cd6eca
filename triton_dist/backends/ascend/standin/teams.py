# SPDX-License-Identifier: MIT
"""Teams of the stand-in. They live in the simulated device state, so that kernels see them."""

from __future__ import annotations

from triton_dist import shmem
from triton_dist.backends.ascend import codes
from triton_dist.backends.ascend.simulated.state import Team
from triton_dist.backends.ascend.standin import pes


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
    if team is None:
        return codes.INVALID_PARAM
    if parent != 0:
        pes.log("team_split_strided: the stand-in splits the world team only")
        return codes.UNSUPPORTED
    last = start + (size - 1) * stride
    if start < 0 or stride <= 0 or size <= 0 or last >= team.size:
        return codes.INVALID_VALUE
    return _make([members(team)[start + i * stride] for i in range(size)])


def split_2d(parent: int, x_range: int) -> tuple[int, int]:
    team = get(parent)
    if team is None or parent != 0 or x_range <= 0:
        raise RuntimeError(f"team_split_2d: team {parent}, x_range {x_range}")
    pe = pes.require("team_split_2d")
    me, n = pe.device.my_pe, team.size
    rows = [list(range(at, min(at + x_range, n))) for at in range(0, n, x_range)]
    columns = [list(range(at, n, x_range)) for at in range(min(x_range, n))]
    mine = []
    for groups in (rows, columns):
        # One number a group, in the same order on every PE.
        made = [_make(group) for group in groups]
        mine.append(next(number for number, group in zip(made, groups, strict=True) if me in group))
    return mine[0], mine[1]


def _make(group: list[int]) -> int:
    """Collective: a team with the least number that is free on every PE. PEs outside it reserve the number as well, so
    that a number means one team everywhere."""
    pe = pes.require("team_split_strided")
    shmem.barrier_all()
    uses = [shmem.peer_tensor(pe.used, other) for other in range(pe.device.n_pes)]
    free = [i for i in range(1, pes.TEAM_SLOTS) if not any(int(used[i]) for used in uses)]
    shmem.barrier_all()
    if not free:
        return codes.MALLOC
    number = free[0]
    pe.used[number] = 1
    if pe.device.my_pe not in group:
        return -1
    pe.slots[number].zero_()
    pe.npu.add_team(number, group, pe.slots[number].data_ptr())
    return number


def destroy(number: int) -> None:
    pe = pes.require("team_destroy")
    if number > 0 and pe.npu.team(number) is not None:
        pe.npu.remove_team(number)
        pe.used[number] = 0
