# SPDX-License-Identifier: MIT
"""What `triton-dist doctor` looks at. Each finding is fine, or says how to mend it. Nothing heavy is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version

from triton_dist import __version__, backends, knobs, platform
from triton_dist.errors import TritonDistError


@dataclass(frozen=True)
class Finding:
    """One line. `fix` says what to do; empty where all is well."""

    section: str
    name: str
    value: str
    fix: str = ""

    @property
    def ok(self) -> bool:
        return not self.fix


# Package -> the least version that this one works with.
PACKAGES = {"triton": (3, 6), "torch": (2, 6), "numpy": (), "xdsl": (0, 73), "llvmlite": (0, 50), "pydantic": (2,)}


def examine() -> list[Finding]:
    """All findings, in the order to print them."""
    return [*_versions(), *_backend(), *_probes(), *_settings(), *_machine()]


def _versions() -> Iterator[Finding]:
    yield Finding("versions", "triton_dist", __version__)
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("versions", "python", python, "" if sys.version_info >= (3, 10) else "use Python 3.10 or later")
    for package, least in PACKAGES.items():
        yield _package(package, least)


def _package(package: str, least: tuple[int, ...]) -> Finding:
    wanted = f"{package}>={'.'.join(map(str, least))}" if least else package
    fix = f"pip install '{wanted}'"
    try:
        found = version(package)
    except PackageNotFoundError:
        return Finding("versions", package, "not installed", fix)
    return Finding("versions", package, found, fix if _numbers(found) < least else "")


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 13, 0) of "2.13.0+cpu"."""
    parts = text.split("+")[0].split(".")
    numbers = []
    for part in parts:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def _backend() -> Iterator[Finding]:
    try:
        chosen = platform.current()
        title = backends.get(chosen.backend).title
    except TritonDistError as error:
        yield Finding("back end", "chosen", "none", str(error))
        return
    yield Finding("back end", "chosen", f"{chosen.backend} ({title})")
    yield Finding("back end", "mode", chosen.mode)
    yield Finding("back end", "because", chosen.reason)
    try:
        yield Finding("back end", "lowering", ", ".join(backends.get(chosen.backend).pipeline()))
    except TritonDistError as error:
        yield Finding("back end", "lowering", "missing", str(error))
    found = {entry.value for entry in entry_points(group="triton.backends") if entry.name == "cpu"}
    if "triton_dist.backends.cpu.triton" in found:
        yield Finding("back end", "host engine", "registered with Triton")
    else:
        yield Finding("back end", "host engine", "not registered", "install the package: pip install -e .")


def _probes() -> Iterator[Finding]:
    try:
        found = platform.probes()
    except TritonDistError as error:
        yield Finding("probes", "back ends", "unreadable", str(error))
        return
    for probe in found:
        yield Finding("probes", probe.tool, probe.path or "not on PATH")


def _settings() -> Iterator[Finding]:
    valid = [knob.variable for knob in knobs.all_knobs().values()]
    for name in sorted(os.environ):
        if name.startswith(knobs.PREFIX) and name not in valid:
            yield Finding("settings", name, "no such setting", f"unset {name}{knobs.did_you_mean(name, valid)}")
    for knob in knobs.all_knobs().values():
        try:
            value = knob.read()
        except TritonDistError as error:
            yield Finding("settings", knob.variable, "unreadable", str(error))
        else:
            yield Finding("settings", knob.variable, f"{'not set' if value is None else value} ({knob.source()})")


def _machine() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0))
    yield Finding("machine", "cores", str(cores))
    memfd = hasattr(os, "memfd_create")
    yield Finding("machine", "memfd", "yes" if memfd else "no", "" if memfd else "the heap needs Linux 3.17 or later")
