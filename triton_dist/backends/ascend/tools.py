# SPDX-License-Identifier: MIT
"""The vendor's command-line tools, from PATH or from the package ascendnpu-ir."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from triton_dist.errors import VendorToolFailed, VendorToolMissing

TOOLS = ("bishengir-opt", "bishengir-opt-a5", "bishengir-compile", "bishengir-compile-a5")
"""Those without a suffix are for A2 and A3 chips, those with one for the 950."""


def find(tool: str) -> Path | None:
    """Where a tool is, or None. One on PATH is taken before the package's."""
    if on_path := shutil.which(tool):
        return Path(on_path)
    spec = importlib.util.find_spec("ascendnpuir")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found = Path(folder) / "bin" / tool
        if found.exists():
            return found
    return None


@dataclass(frozen=True)
class Done:
    """What a tool printed, and how it ended."""

    status: int
    out: str
    err: str


def run(tool: str, arguments: Sequence[str], text: str | None = None, timeout: float = 120.0) -> Done:
    """Run a tool on `text` as its standard input; raises if there is no such tool here."""
    path = find(tool)
    if path is None:
        raise VendorToolMissing(tool=tool)
    command = [str(path), *arguments]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise VendorToolFailed(tool=tool, status="a timeout", detail=f"it ran for {timeout:g} s") from None
    except OSError as error:
        raise VendorToolFailed(tool=tool, status="none", detail=f"{path}: {error.strerror}") from error
    return Done(done.returncode, done.stdout, done.stderr)


def opt(text: str, *arguments: str, tool: str = "bishengir-opt-a5") -> str:
    """What `bishengir-opt` prints for a module; raises with its message if it rejects it."""
    done = run(tool, arguments, text)
    if done.status != 0:
        raise VendorToolFailed(tool=tool, status=done.status, detail=_first_lines(done.err))
    return done.out


def _first_lines(text: str, most: int = 12) -> str:
    return "\n".join(text.strip().splitlines()[:most])
