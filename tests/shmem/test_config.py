# SPDX-License-Identifier: MIT
"""Who a PE is: from arguments and a launcher's environment, contradictions refused."""

from __future__ import annotations

import pytest

from triton_dist import knobs
from triton_dist.errors import ShmemConfigError
from triton_dist.shmem.config import resolve

LAUNCHED = {
    "RANK": "2",
    "LOCAL_RANK": "2",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}


def test_alone_is_a_world_of_one() -> None:
    config = resolve({})
    assert (config.pe, config.n_pes, config.rendezvous) == (0, 1, None)


def test_a_launchers_environment() -> None:
    config = resolve(LAUNCHED)
    assert (config.pe, config.n_pes) == (2, 4)
    assert config.rendezvous is not None
    assert (config.rendezvous.host, config.rendezvous.port) == ("127.0.0.1", 29500)
    assert not config.rendezvous.hosted_by_launcher
    agent = resolve({**LAUNCHED, "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "3"})
    assert agent.rendezvous is not None
    assert agent.rendezvous.hosted_by_launcher
    assert agent.rendezvous.prefix == "3"


def test_a_lone_pe_needs_no_rendezvous() -> None:
    assert resolve({"RANK": "0", "WORLD_SIZE": "1"}).rendezvous is None


def test_settings_come_from_the_knobs_until_given() -> None:
    with knobs.scope(heap_size="64K", wait_timeout=7.0):
        config = resolve({})
        assert config.heap_size == 1 << 16
        assert config.deadline_seconds() == 7.0
        assert resolve({}, wait_timeout=2.0).deadline_seconds() == 2.0


def test_several_nodes_are_the_back_ends_business() -> None:
    config = resolve({**LAUNCHED, "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "0"})
    assert (config.pe, config.n_pes, config.pes_on_node) == (2, 4, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"WORLD_SIZE": None}, "RANK=2 is set, but WORLD_SIZE is not"),
        ({"RANK": None}, "WORLD_SIZE=4 is set, but RANK is not"),
        ({"RANK": "4"}, "RANK=4 and WORLD_SIZE=4 contradict"),
        ({"RANK": "two"}, "RANK='two' is no whole number"),
        ({"MASTER_ADDR": None}, "MASTER_ADDR is not"),
        ({"MASTER_PORT": None}, "MASTER_PORT is not"),
        ({"MASTER_PORT": "99999"}, "MASTER_PORT=99999 is no port"),
        ({"LOCAL_RANK": "0"}, "LOCAL_RANK=0 and RANK=2 contradict"),
    ],
)
def test_a_broken_environment(change: dict[str, str | None], message: str) -> None:
    env = {name: value for name, value in {**LAUNCHED, **change}.items() if value is not None}
    with pytest.raises(ShmemConfigError, match=message):
        resolve(env)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pe": 1}, r"pe = 1 was asked for, but the launcher set RANK=2"),
        ({"n_pes": 3}, r"n_pes = 3 was asked for, but the launcher set WORLD_SIZE=4"),
        ({"heap_size": 10}, r"heap_size = 10: .*greater than or equal to 4096"),
        ({"heap": 10}, r"no setting 'heap'; settings: pe, n_pes, pes_on_node, heap_size"),
        ({"fd_passing": "magic"}, r"fd_passing = 'magic'"),
    ],
)
def test_arguments_that_make_no_sense(given: dict[str, object], message: str) -> None:
    with pytest.raises(ShmemConfigError, match=message):
        resolve(LAUNCHED, **given)


def test_several_pes_need_a_rendezvous() -> None:
    with pytest.raises(ShmemConfigError, match=r"MASTER_ADDR and MASTER_PORT.*triton-dist run -n"):
        resolve({}, pe=0, n_pes=2)
    with pytest.raises(ShmemConfigError, match=r"pe = 2, but with n_pes = 2 the last PE is 1"):
        resolve({}, pe=2, n_pes=2)
