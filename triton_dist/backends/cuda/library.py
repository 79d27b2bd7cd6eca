# SPDX-License-Identifier: MIT
"""Where NVSHMEM's device bitcode is, and which file fits a GPU.

Released packages have one `libnvshmem_device.bc`, or `libnvshmem_device_sm_<arch>.bc` for some architectures.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triton_dist.errors import NvshmemMismatch, NvshmemNotFound

NAME = "libnvshmem_device"
_PER_ARCH = re.compile(rf"{NAME}_sm_(\d+)[af]?\.bc")
_PACKAGES = ("nvidia-nvshmem-cu13", "nvidia-nvshmem-cu12")


@dataclass(frozen=True)
class Installed:
    """One installation of NVSHMEM's device library."""

    folder: Path
    version: str

    @functools.lru_cache  # noqa: B019  (there are few installations)
    def file_for(self, arch: int) -> Path:
        """The bitcode for a GPU: of exactly its architecture, else of the highest below it, else the plain file."""
        by_arch = {int(m[1]): path for path in sorted(self.folder.iterdir()) if (m := _PER_ARCH.fullmatch(path.name))}
        fitting = [known for known in by_arch if known <= arch]
        if fitting:
            return by_arch[max(fitting)]
        plain = self.folder / f"{NAME}.bc"
        if plain.exists():
            return plain
        have = ", ".join(f"sm_{known}" for known in sorted(by_arch)) or "no bitcode at all"
        raise NvshmemNotFound(detail=f"{self.folder} (NVSHMEM {self.version}) has {have}, none for sm_{arch}")


def installed() -> Installed:
    """The installation in use: NVSHMEM_HOME, else the Python package."""
    return _installed(os.environ.get("NVSHMEM_HOME"))


@functools.lru_cache
def _installed(home: str | None) -> Installed:
    looked = []
    for folder in _folders(home):
        looked.append(str(folder))
        if folder.is_dir() and any(folder.glob(f"{NAME}*.bc")):
            return Installed(folder, _version_of(folder))
    places = f" in {', '.join(looked)}" if looked else ""
    raise NvshmemNotFound(detail=f"there is no {NAME}*.bc{places}")


def _folders(home: str | None) -> Iterator[Path]:
    if home:
        yield Path(home) / "lib"
        return
    try:
        spec = importlib.util.find_spec("nvidia.nvshmem")
    except ModuleNotFoundError:
        return
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place) / "lib"


def _version_of(folder: Path) -> str:
    header = folder.parent / "include" / "non_abi" / "nvshmem_version.h"
    if header.exists():
        text = header.read_text(encoding="utf-8")
        numbers = [re.search(rf"NVSHMEM_VENDOR_{part}_VERSION\s+(\d+)", text) for part in ("MAJOR", "MINOR", "PATCH")]
        if all(numbers):
            return ".".join(number[1] for number in numbers if number)
    return "of unknown version"


def check_packages() -> None:
    """Two packages of NVSHMEM share a folder: whichever was installed last wins, file by file."""
    if os.environ.get("NVSHMEM_HOME"):
        return
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    if len(set(found.values())) > 1:
        listed = " and ".join(f"{package} {version}" for package, version in found.items())
        raise NvshmemMismatch(
            detail=f"{listed} are installed into one folder, so their files are mixed",
            fix="Uninstall both, then install the one for your CUDA version.",
        )


def without_network() -> bool:
    """Whether NVSHMEM was told to use no network: then all PEs reach each other by loads and stores."""
    return os.environ.get("NVSHMEM_REMOTE_TRANSPORT", "").lower() == "none"


def identity() -> str:
    """What tells one installation from another, for the cache of kernels."""
    try:
        found = installed()
        files = sorted(found.folder.glob(f"{NAME}*.bc"))
    except NvshmemNotFound:
        return "no NVSHMEM"
    stats = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return f"NVSHMEM {found.version} {stats}{' no network' if without_network() else ''}"
