# SPDX-License-Identifier: MIT
"""PEs as processes: memory that is really shared, deaths that are seen at once, nothing left behind."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path

import pytest

from triton_dist import errors
from triton_dist.shmem.host import liveness
from triton_dist.testing import PE_COUNTS, run_pes, run_processes

from . import pe_scripts

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("n", PE_COUNTS)
@pytest.mark.parametrize("fd_passing", ["auto", "socket"])
def test_a_ring(n: int, fd_passing: str) -> None:
    results = run_processes(pe_scripts.ring, n, init={"fd_passing": fd_passing})
    assert {kind for *_, kind in results} == {"processes"}
    assert {count for count, *_ in results} == {29}
    assert len({offset for _, offset, _ in results}) == 1


@pytest.mark.parametrize("seed", [0, 1])
def test_any_sequence_of_calls(seed: int) -> None:
    results = run_processes(pe_scripts.any_calls, 3, seed)
    assert results == [results[0]] * 3
    assert run_pes(lambda: pe_scripts.any_calls(seed), 3) == results


def test_arguments_and_environment() -> None:
    assert run_processes(pe_scripts.only_own, 2, 7, env={"EXTRA": "x"}) == [(0, "x"), (7, "x")]


def test_an_error_names_the_pe() -> None:
    with pytest.raises(errors.PeFailed, match=r"PE \d of 2 failed: exited with code 1\n(.|\n)*KeyError: 'EXTRA'"):
        run_processes(pe_scripts.only_own, 2, 7)


def test_unequal_calls_between_processes() -> None:
    for pe, message in enumerate(run_processes(pe_scripts.unequal, 3)):
        assert message.startswith(f"PE {pe}: the PEs do not agree")
        for other in range(3):
            assert f"PE {other}: create_tensor(({other + 1},), torch.int8) at " in message


@pytest.mark.parametrize("n", [1, 3])
def test_init_after_finalize(n: int) -> None:
    assert run_processes(pe_scripts.again_and_again, n)[0] == [n] * 3


@pytest.mark.parametrize("wait", ["signal", "barrier", "create", "word"])
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("kill", "killed by SIGKILL (signal 9)"),
        ("_exit", "exited with code 5"),
        ("raise", "exited with code 1: ValueError: oh no"),
    ],
)
def test_a_dead_pe_is_named_at_once(how: str, told: str, wait: str) -> None:
    outcomes = {o.pe: o for o in run_processes(pe_scripts.end_one, 3, how, wait, check=False)}
    assert outcomes[1].failed
    for pe in (0, 2):
        assert not outcomes[pe].failed, outcomes[pe].describe()
        waited, message = outcomes[pe].result
        assert waited < 5
        assert message.startswith(f"PE {pe}: PE 1 is gone (")
        # The exit code is known where the system tells it (Linux 6.15), or a launcher does.
        assert told in message or "its process ended" in message or (how == "raise" and "ValueError: oh no" in message)


def test_a_pe_that_finalized_is_not_dead() -> None:
    assert run_processes(pe_scripts.finalize_early_and_work_on, 3) == ["-1"] * 3


def test_nothing_is_left_after_finalize() -> None:
    before = sorted(os.listdir("/dev/shm"))
    for facts in run_processes(pe_scripts.resources, 3):
        assert facts["fds"] <= 0
        assert facts["maps"] == 0
        assert not [name for name in facts["shm"] if name not in before and "triton" in name]
        assert not _alive(facts["pid"])
    assert not [name for name in os.listdir("/dev/shm") if name not in before and "triton" in name]


def test_nothing_is_left_after_a_kill() -> None:
    before, pids = sorted(os.listdir("/dev/shm")), _processes()
    shared = _shared_bytes()
    outcomes = run_processes(pe_scripts.die_with_touched_memory, 3, check=False)
    assert sorted(o.exitcode or 0 for o in outcomes) == [-9, 1, 1]
    assert not [name for name in os.listdir("/dev/shm") if name not in before and "triton" in name]
    assert not [pid for pid in _processes() - pids if "PE" in _command(pid)]
    assert _eventually(lambda: _shared_bytes() - shared < 20 << 20)


def _eventually(holds, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _processes() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _shared_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) << 10
    return 0


def test_heaps_of_unequal_size() -> None:
    outcomes = run_processes(pe_scripts.another_heap_size, 2)
    assert outcomes == ["shmem.init: heap_size must be equal on all PEs, but it is PE 0: 65536, PE 1: 131072."] * 2


def test_a_pe_that_never_comes() -> None:
    port = _free_port()
    env = {
        "WORLD_SIZE": "3",
        "LOCAL_WORLD_SIZE": "3",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
    outcomes = run_processes(pe_scripts.ring, 2, check=False, env=env, init={"init_timeout": 6.0})
    for outcome in outcomes:
        assert isinstance(outcome.error, errors.RendezvousError)
        # PE 0 runs the store here; PE 1 may see it end a moment before its own deadline.
        assert re.search(
            r"waited 6.0 s for PE 2, which did not|went away while this PE waited for PE", str(outcome.error)
        )


def test_a_store_that_is_not_there() -> None:
    env = {"MASTER_PORT": str(_free_port())}
    outcomes = run_processes(pe_scripts.ring, 2, check=False, env=env, init={"init_timeout": 1.0})
    for outcome in outcomes:
        assert isinstance(outcome.error, errors.RendezvousError)
        assert "which the launcher should run" in str(outcome.error)


def test_several_nodes_are_out_of_scope() -> None:
    outcomes = run_processes(pe_scripts.ring, 1, check=False, env={"WORLD_SIZE": "2"})
    assert isinstance(outcomes[0].error, errors.ShmemConfigError)
    assert "all must be on one node" in str(outcomes[0].error)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_a_timeout_kills() -> None:
    start = time.monotonic()
    outcomes = run_processes(pe_scripts.sleep, 2, check=False, timeout=1.5)
    for outcome in outcomes:
        assert "still running at the timeout" in outcome.describe()
    assert time.monotonic() - start < 10


def test_exits_in_words() -> None:
    assert liveness.describe_exit(None) == "its process ended"
    assert liveness.describe_exit(3) == "exited with code 3"
    assert liveness.describe_exit(-9) == "killed by SIGKILL (signal 9)"
    assert liveness.describe_exit(-99) == "killed by signal 99"


def test_unequal_heaps_with_the_store_in_pe_0() -> None:
    """PE 0 raises as well, and must not take the store away before PE 1 has read why."""
    env = {"MASTER_PORT": str(_free_port()), "TORCHELASTIC_USE_AGENT_STORE": "False"}
    for message in run_processes(pe_scripts.another_heap_size, 2, env=env):
        assert message.startswith("shmem.init: heap_size must be equal on all PEs")


def test_a_kernel_after_finalize_is_not_alone_in_the_world() -> None:
    for pe, (before, error, again) in enumerate(run_processes(pe_scripts.launch_after_finalize, 2)):
        assert before == again == str(pe)
        assert error.startswith("The kernel _rank_into needs a PE: call triton_dist.shmem.init() first")


def test_a_process_that_a_pe_forks_is_no_pe() -> None:
    """It shares the heap, but not what counts the calls: signals of its calls ended the parent's waits."""
    for barrier, operation, kernel, result in run_processes(pe_scripts.forked, 2):
        assert barrier.startswith("barrier_all() needs a PE: ")
        assert re.match(r"The kernel \w+ needs a PE: .* nor does a process that a PE forks\.$", operation)
        assert kernel.startswith("The kernel _rank_into needs a PE: ")
        assert result == "[3, 3, 3, 3]"
