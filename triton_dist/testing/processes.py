# SPDX-License-Identifier: MIT
"""PEs as processes, for tests that need them: real memory sharing, real deaths.

The processes are forked from a server that has imported torch already, so four of them start in a fraction of a second.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from triton_dist.errors import PeFailed
from triton_dist.shmem.host.liveness import describe_exit
from triton_dist.testing import _worker


@dataclass(frozen=True)
class Outcome:
    """How one PE ended."""

    pe: int
    result: Any = None
    error: BaseException | None = None
    traceback: str = ""
    exitcode: int | None = None
    """As in `Process.exitcode`: negative is a signal; None: it was still running at the timeout, and was killed."""

    @property
    def failed(self) -> bool:
        return self.exitcode != 0

    def describe(self) -> str:
        if self.exitcode is None:
            return "it was still running at the timeout"
        return f"{describe_exit(self.exitcode)}\n{self.traceback}".rstrip()


def run_processes(
    fn: Callable[..., Any],
    n: int,
    *args: Any,
    timeout: float = 60.0,
    check: bool = True,
    env: dict[str, str] | None = None,
    init: dict[str, Any] | None = None,
) -> list[Any]:
    """Run `fn(*args)` on `n` PEs, each a process; return each PE's result.

    Args:
        fn: a function of a module, found by its file and name, so that test modules need not be importable.
        timeout: seconds after which the processes are killed.
        check: raise the first PE's error. False: return an `Outcome` for each PE instead.
        env: more environment variables for the PEs.
        init: settings for `shmem.init`.
    """
    outcomes = _Processes(fn, n, args, env or {}, init or {}).run(timeout)
    if not check:
        return outcomes
    for outcome in outcomes:
        if outcome.failed:
            raise PeFailed(pe=outcome.pe, n_pes=n, detail=outcome.describe()) from outcome.error
    return [outcome.result for outcome in sorted(outcomes, key=lambda outcome: outcome.pe)]


class _Processes:
    def __init__(
        self, fn: Callable[..., Any], n: int, args: tuple[Any, ...], env: dict[str, str], init: dict[str, Any]
    ) -> None:
        from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

        # The store is here, as with a launcher: its port is known to be free, and it outlives every PE.
        self._store = TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([_worker.__name__])
        self._pes: dict[Connection, tuple[int, BaseProcess]] = {}
        for pe in range(n):
            ours, theirs = context.Pipe(duplex=False)
            task = _worker.Task(inspect.getfile(fn), fn.__qualname__, args, self._env(pe, n, env), init)
            process = context.Process(target=_worker.main, args=(theirs, task), name=f"PE {pe}", daemon=True)
            process.start()
            theirs.close()
            self._pes[ours] = pe, process

    def _env(self, pe: int, n: int, env: dict[str, str]) -> dict[str, str]:
        world = {"RANK": pe, "LOCAL_RANK": pe, "WORLD_SIZE": n, "LOCAL_WORLD_SIZE": n, "MASTER_PORT": self._store.port}
        inherited = {name: value for name, value in os.environ.items() if name.startswith(("TRITON_", "OMP_"))}
        fixed = {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_USE_AGENT_STORE": "True"}
        return {**inherited, **fixed, **{name: str(value) for name, value in world.items()}, **env}

    def run(self, timeout: float) -> list[Outcome]:
        """Outcomes in the order in which the PEs ended."""
        deadline, waiting, outcomes = time.monotonic() + timeout, dict(self._pes), []
        while waiting and time.monotonic() < deadline:
            for ready in wait(list(waiting), timeout=deadline - time.monotonic()):
                assert isinstance(ready, Connection)
                pe, process = waiting.pop(ready)
                outcomes.append(_collect(ready, pe, process))
        for pe, process in waiting.values():
            process.kill()
            process.join()
            outcomes.append(Outcome(pe))
        return outcomes


def _collect(connection: Connection, pe: int, process: BaseProcess) -> Outcome:
    try:
        report = connection.recv()
    except EOFError:  # it ended without a report: killed
        report = _worker.Report()
    process.join(10)
    connection.close()
    return Outcome(pe, report.result, report.error, report.traceback, process.exitcode)
