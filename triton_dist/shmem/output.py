# SPDX-License-Identifier: MIT
"""What PEs print: passed on, with or without the PE's number, and the end of stderr kept for the report."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from itertools import dropwhile
from typing import IO, BinaryIO

_KEPT_LINES = 200
_LARGEST_BLOCK = 1 << 16
_PAUSE_MILLISECONDS = 20
_lock = threading.Lock()


class Output:
    """The output of one PE. Streams that it shares with the launcher are left alone."""

    def __init__(self, pe: int, process: subprocess.Popen[bytes], prefix: bool) -> None:
        self._prefix = f"[PE {pe}] ".encode() if prefix else b""
        self._tail: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._threads: list[threading.Thread] = []
        if process.stdout is not None:
            self._pump(process.stdout, sys.stdout, None)
        if process.stderr is not None:
            self._pump(process.stderr, sys.stderr, self._tail)

    def _pump(self, source: IO[bytes], target: IO[str], keep: deque[bytes] | None) -> None:
        thread = threading.Thread(target=self._copy, args=(source, target, keep), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _copy(self, source: IO[bytes], target: IO[str], keep: deque[bytes] | None) -> None:
        with source:
            for block in _blocks(source.fileno()):
                lines = block.splitlines(keepends=True)
                if keep is not None:
                    keep.extend(lines)
                _write(target, b"".join(self._prefix + line for line in lines) if self._prefix else block)

    def finish(self) -> None:
        """Wait for the rest of the output; not for long, as a process that the PE left behind may hold the pipe."""
        for thread in self._threads:
            thread.join(1.0)

    def traceback(self) -> str:
        """The last traceback on stderr, or its last lines."""
        lines = [line.decode(errors="replace").rstrip("\n") for line in self._tail]
        starts = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
        return "\n".join(lines[starts[-1] :] if starts else lines[-10:])

    def error(self) -> str:
        """What the last traceback on stderr ends with: the exception and its message. (It was passed on in full.)"""
        lines = self.traceback().split("\n")
        if not lines[0].startswith("Traceback"):
            return ""
        return "\n".join(dropwhile(lambda line: line.startswith(("Traceback", " ")), lines))

    def blames_peer(self) -> bool:
        """Whether it ended because another PE did."""
        return "\ntriton_dist.errors.PeerDied: " in self.traceback()


def _blocks(fd: int) -> Iterator[bytes]:
    """What arrives in one go, such as a traceback, as one block; so that those of several PEs do not mix."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    block = b""
    while data := os.read(fd, _LARGEST_BLOCK):
        block += data
        complete = len(block) >= _LARGEST_BLOCK or not poll.poll(_PAUSE_MILLISECONDS)
        if complete:
            yield block
            block = b""
    if block:
        yield block


def _write(target: IO[str], line: bytes) -> None:
    buffer: BinaryIO | None = getattr(target, "buffer", None)
    with _lock:
        if buffer is None:  # replaced by something that takes text only
            target.write(line.decode(errors="replace"))
        else:
            buffer.write(line)
        target.flush()
