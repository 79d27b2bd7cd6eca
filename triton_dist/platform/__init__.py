# SPDX-License-Identifier: MIT
"""Which back end this process uses: one visible decision, with its reason.

Hardware is found by the vendor's smi tool on PATH, and by nothing else. `TRITON_DIST_BACKEND` overrides the probes;
a back end without its hardware runs simulated, on the host engine. `triton-dist doctor` prints the decision.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Literal

from triton_dist import knobs
from triton_dist.errors import ContradictoryKnobs, SeveralBackends

HOST = "cpu"
SMI_TOOLS = {"ascend": "npu-smi", "cuda": "nvidia-smi", "hip": "rocm-smi", "maca": "mx-smi"}

Mode = Literal["hardware", "simulated", "host"]


def is_ascend() -> bool:
    """Whether this machine has an Ascend NPU: `npu-smi` is on PATH."""
    return shutil.which("npu-smi") is not None


def is_cuda() -> bool:
    """Whether this machine has an NVIDIA GPU: `nvidia-smi` is on PATH."""
    return shutil.which("nvidia-smi") is not None


def is_hip() -> bool:
    """Whether this machine has an AMD GPU: `rocm-smi` is on PATH."""
    return shutil.which("rocm-smi") is not None


def is_maca() -> bool:
    """Whether this machine has a MetaX GPU: `mx-smi` is on PATH."""
    return shutil.which("mx-smi") is not None


@dataclass(frozen=True)
class Selection:
    """The back end in use. `mode`: on its hardware, simulated by the host engine, or the host itself."""

    backend: str
    mode: Mode
    reason: str

    @property
    def key(self) -> str:
        """What of the choice belongs in a kernel's cache key."""
        return f"{self.backend}:{self.mode}"


@dataclass(frozen=True)
class Probe:
    """One look for a vendor's tool; `path` is None where it is not on PATH."""

    backend: str
    tool: str
    path: str | None


def probes() -> list[Probe]:
    """Look for the tool of every back end that has one: ours, then those of other packages."""
    tools = dict(SMI_TOOLS)
    from triton_dist import backends

    for name in backends.external_names():
        if (smi := backends.get(name).smi) is not None:
            tools[name] = smi
    return [Probe(name, tool, shutil.which(tool)) for name, tool in tools.items()]


_selections: dict[tuple[str | None, bool | None], Selection] = {}


def current() -> Selection:
    """The back end in use. Decided once for each setting of the two knobs; `reset()` looks again."""
    wanted = knobs.backend, knobs.simulate
    selection = _selections.get(wanted)
    if selection is None:
        selection = _selections[wanted] = select(*wanted)
    return selection


def reset() -> None:
    """Forget the decision: the next `current()` probes PATH again."""
    _selections.clear()


def select(override: str | None, simulate: bool | None) -> Selection:
    """Decide from an override and a wish to simulate (None: not said) and from the tools on PATH."""
    found = {probe.backend: probe.tool for probe in probes() if probe.path is not None}
    name, reason = _choose(override, found)
    if name == HOST:
        if simulate:
            raise ContradictoryKnobs(
                detail=f"TRITON_DIST_SIMULATE=1, but the back end is {HOST} ({reason}): nothing to simulate.",
                fix=f"Name what to simulate: TRITON_DIST_BACKEND={'|'.join(_names(but=HOST))}.",
            )
        return Selection(HOST, "host", reason)
    return _with_mode(name, reason, SMI_TOOLS.get(name), name in found, simulate)


def _with_mode(name: str, reason: str, tool: str | None, present: bool, simulate: bool | None) -> Selection:
    if simulate:
        return Selection(name, "simulated", f"{reason}; TRITON_DIST_SIMULATE=1")
    if present:
        return Selection(name, "hardware", reason)
    missing = f"{tool or 'its tool'} is not on PATH"
    if simulate is False:
        raise ContradictoryKnobs(
            detail=f"TRITON_DIST_BACKEND={name} with TRITON_DIST_SIMULATE=0, but {missing}.",
            fix=f"Drop TRITON_DIST_SIMULATE=0 to simulate {name} here, or put its tool on PATH.",
        )
    return Selection(name, "simulated", f"{reason}; {missing}")


def _choose(override: str | None, found: dict[str, str]) -> tuple[str, str]:
    if override is not None:
        from triton_dist import backends

        if override not in backends.names():
            raise backends.unknown(override, "TRITON_DIST_BACKEND")
        return override, f"TRITON_DIST_BACKEND={override}"
    if len(found) > 1:
        listed = ", ".join(f"{tool} ({name})" for name, tool in found.items())
        raise SeveralBackends(found=listed, choices="|".join([*found, HOST]))
    for name, tool in found.items():
        return name, f"{tool} is on PATH"
    return HOST, "no vendor's tool is on PATH"


def _names(but: str | None = None) -> list[str]:
    from triton_dist import backends

    return [name for name in backends.names() if name != but]
