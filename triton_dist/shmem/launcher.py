# SPDX-License-Identifier: MIT
"""`triton-dist run`: start a script on several PEs of this machine, a process each, and end them together.

It sets the variables that torchrun sets, so `torch.distributed` works in the script too. The store that PEs meet at
lives in the launcher. A PE that fails ends the others; a PE cannot outlive the launcher, however that ends.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType

from triton_dist.backends.cpu.heap import anonymous_file
from triton_dist.errors import LauncherRefused
from triton_dist.shmem.host.liveness import BOARD_VARIABLE, ExitBoard, describe_exit
from triton_dist.shmem.output import Output

_POLL_SECONDS = 0.005
_KILL_SECONDS = 3.0
"""From SIGTERM to SIGKILL."""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    n: int
    command: tuple[str, ...]
    """Arguments of the Python interpreter: the script, or `-m module`, and its arguments."""
    prefix: bool = False
    grace: float = 2.0


def main(argv: Sequence[str] | None = None) -> int:
    """`triton-dist run` with these arguments; returns the exit code of the first PE that failed, else 0."""
    return Job(parse(sys.argv[1:] if argv is None else argv)).run()


def parse(argv: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="triton-dist run",
        description="Start a script on several PEs of this machine, a process each.",
        epilog="Where they are not set, OMP_NUM_THREADS and TRITON_DIST_NUM_THREADS become the cores divided by the "
        "PEs, and OMP_WAIT_POLICY becomes passive, so that PEs do not take each other's cores.",
    )
    parser.add_argument("-n", "--pes", "--nproc-per-node", type=int, default=1, help="how many PEs (default: 1)")
    parser.add_argument("--nnodes", type=int, default=1, help="accepted for torchrun's sake; must be 1")
    parser.add_argument("--prefix", action="store_true", help="begin each line of output with the PE's number")
    parser.add_argument(
        "--grace", type=float, default=2.0, help="seconds that PEs have to end once another failed (default: 2)"
    )
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module, as in python -m")
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    rest = parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS", help="of SCRIPT; none are needed")
    rest.required = False  # else argparse asks for them where SCRIPT is missing
    given = parser.parse_args(list(argv))
    if given.nnodes != 1:
        raise LauncherRefused(
            detail=f"--nnodes={given.nnodes}: PEs of the host engine share memory, so all are on one node."
        )
    if given.pes < 1:
        raise LauncherRefused(detail=f"-n {given.pes}: one PE or more.")
    if not given.module and not os.path.isfile(given.script):
        raise LauncherRefused(detail=f"there is no script {given.script!r}.")
    return Options(
        n=given.pes,
        command=(*(["-m"] if given.module else []), given.script, *given.args),
        prefix=given.prefix,
        grace=given.grace,
    )


class Job:
    """The PEs of one run."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pes: list[subprocess.Popen[bytes]] = []
        self._outputs: list[Output] = []
        self._port: socket.socket | None = None
        self._failed: list[int] = []
        self._signal: int | None = None
        self._board_fd = anonymous_file("triton_dist_exit_codes", options.n * 8)
        self._board = ExitBoard(self._board_fd, options.n)

    def run(self) -> int:
        """Start all, wait for all; report the first failure."""
        handlers = {number: signal.signal(number, self._on_signal) for number in _FORWARDED}
        try:
            self._start()
            self._wait()
        finally:
            self._end(signal.SIGKILL)
            if self._port is not None:
                self._port.close()
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(self._board_fd)
        return self._report()

    # Starting

    def _start(self) -> None:
        self._port = _reserve_port()
        port = self._port.getsockname()[1]
        self._pes = [self._spawn(pe, port) for pe in range(self._options.n)]
        # Threads begin only now: forking with `preexec_fn` is safe as long as there are none.
        self._outputs = [Output(pe, process, self._options.prefix) for pe, process in enumerate(self._pes)]

    def _spawn(self, pe: int, port: int) -> subprocess.Popen[bytes]:
        # A lone PE keeps the terminal, for a debugger. Several have no use for one keyboard, and sessions of their own:
        # Ctrl-C reaches them through us, and ending a PE ends what it started.
        alone = self._options.n == 1
        return subprocess.Popen(
            [sys.executable, *self._options.command],
            env=self._environment(pe, port),
            stdin=None if alone else subprocess.DEVNULL,
            stdout=subprocess.PIPE if self._options.prefix else None,
            stderr=None if alone and not self._options.prefix else subprocess.PIPE,
            start_new_session=not alone,
            preexec_fn=_die_with(os.getpid()),
        )

    def _environment(self, pe: int, port: int) -> dict[str, str]:
        n = self._options.n
        share = str(max(1, (os.cpu_count() or 1) // n))
        defaults = {"OMP_NUM_THREADS": share, "TRITON_DIST_NUM_THREADS": share, "OMP_WAIT_POLICY": "passive"}
        world = {"RANK": pe, "LOCAL_RANK": pe, "WORLD_SIZE": n, "LOCAL_WORLD_SIZE": n, "GROUP_RANK": 0}
        world |= {"MASTER_PORT": port, "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_USE_AGENT_STORE": False}
        fixed = {"MASTER_ADDR": "127.0.0.1", BOARD_VARIABLE: f"/proc/{os.getpid()}/fd/{self._board_fd}"}
        unbuffered = {"PYTHONUNBUFFERED": "1"} if self._options.prefix else {}
        return {**defaults, **os.environ, **unbuffered, **fixed, **{name: str(value) for name, value in world.items()}}

    # Waiting and ending

    def _wait(self) -> None:
        running = set(range(self._options.n))
        deadline: float | None = None
        while running:
            for pe in sorted(running):
                code = self._pes[pe].poll()
                if code is not None:
                    running.discard(pe)
                    self._ended(pe, code)
            ending = self._signal is not None or self._failed
            if ending and deadline is None:
                deadline = time.monotonic() + self._options.grace
            if deadline is not None and time.monotonic() > deadline:
                self._terminate(running)
                return
            time.sleep(_POLL_SECONDS)

    def _ended(self, pe: int, code: int) -> None:
        self._board.set(pe, code)
        if code != 0:
            self._failed.append(pe)

    def _terminate(self, running: set[int]) -> None:
        self._end(signal.SIGTERM)
        deadline = time.monotonic() + _KILL_SECONDS
        while any(self._pes[pe].poll() is None for pe in running) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _end(self, number: int) -> None:
        """Send a signal to each PE that runs, and what it started; with SIGKILL, wait for it."""
        for process in self._pes:
            if process.poll() is None:
                self._send(process, number)
                if number == signal.SIGKILL:
                    process.wait()

    def _send(self, process: subprocess.Popen[bytes], number: int) -> None:
        try:
            if self._options.n == 1:
                process.send_signal(number)
            else:
                os.killpg(process.pid, number)
        except ProcessLookupError:
            pass

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._signal is not None:  # the second Ctrl-C: no more patience
            self._end(signal.SIGKILL)
            return
        self._signal = number
        # From a terminal, a lone PE gets the signal itself.
        if not (self._options.n == 1 and number == signal.SIGINT and os.isatty(0)):
            self._end(number)

    # Telling

    def _report(self) -> int:
        for output in self._outputs:
            output.finish()
        if self._signal is not None:
            print(f"triton-dist run: ended by {signal.Signals(self._signal).name}", file=sys.stderr)
            return 128 + self._signal
        if not self._failed:
            return 0
        pe = self._culprit()
        code = self._pes[pe].returncode
        error = self._outputs[pe].error()
        print(f"\ntriton-dist run: PE {pe} of {self._options.n} {describe_exit(code)}", file=sys.stderr)
        if error:
            print(f"its error (the traceback is above): {error}", file=sys.stderr)
        return code if code > 0 else 128 - code

    def _culprit(self) -> int:
        """The PE that failed first, and not because of another: those that end within one look are all seen at once."""
        return next((pe for pe in self._failed if not self._outputs[pe].blames_peer()), self._failed[0])


_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


def _die_with(parent: int) -> Callable[[], None]:
    """What a child does before its script: ask the kernel for SIGKILL when the launcher ends, SIGKILL included."""
    prctl = ctypes.CDLL(None).prctl

    def apply() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before we asked
            os._exit(1)

    return apply


def _reserve_port() -> socket.socket:
    """A port for the store of PE 0: bound but not listening, so nobody else is given it, and PE 0 can still bind it."""
    reserved = socket.socket()
    # As the store's own socket has it too, Linux lets both bind as long as neither listens yet.
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
