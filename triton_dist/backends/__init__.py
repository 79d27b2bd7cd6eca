# SPDX-License-Identifier: MIT
"""The back ends, found through the entry-point group `triton_dist.backends`.

    from triton_dist import backends

    backends.names()            # ['ascend', 'cpu', 'cuda', 'hip', 'maca', ...]
    backends.get("cpu")         # its Backend, made once
    backends.active()           # the one that triton_dist.platform chose

A back end is imported when it is first asked for. Ours are also known when the package runs from a source tree
that was never installed. Two packages that register one name are an error.
"""

from __future__ import annotations

import functools
import inspect
from importlib.metadata import EntryPoint, entry_points

from triton_dist.backends.base import Backend
from triton_dist.errors import BackendClash, BrokenBackend, UnknownBackend

GROUP = "triton_dist.backends"

# The same as in pyproject.toml (a test compares them).
BUILT_IN = {
    "ascend": "triton_dist.backends.ascend:AscendBackend",
    "cpu": "triton_dist.backends.cpu:CpuBackend",
    "cuda": "triton_dist.backends.cuda:CudaBackend",
    "hip": "triton_dist.backends.hip:HipBackend",
    "maca": "triton_dist.backends.maca:MacaBackend",
}


_OTHER_NAMES = {
    "amd": "AMD is hip",
    "rocm": "ROCm is hip",
    "nvidia": "NVIDIA is cuda",
    "metax": "MetaX is maca",
    "npu": "Ascend's NPUs are ascend",
    "huawei": "Huawei's NPUs are ascend",
    "host": "the host is cpu",
}


@functools.cache
def _entries() -> dict[str, EntryPoint]:
    found = {name: EntryPoint(name, target, GROUP) for name, target in BUILT_IN.items()}
    for entry in entry_points(group=GROUP):
        known = found.setdefault(entry.name, entry)
        # One package seen twice (installed, and again on sys.path) is no clash.
        if known.value != entry.value:
            raise BackendClash(name=entry.name, first=known.value, second=entry.value)
    return dict(sorted(found.items()))


def names() -> list[str]:
    """The names of all back ends, sorted; imports none of them."""
    return list(_entries())


def unknown(name: str, source: str) -> UnknownBackend:
    """The error for a name that is none; `source` gave it."""
    from triton_dist.knobs import did_you_mean

    valid, known = names(), _OTHER_NAMES.get(name.lower())
    hint = f" ({known})" if known else did_you_mean(name.lower(), valid)
    return UnknownBackend(source=source, name=name, hint=hint, valid=", ".join(valid))


def external_names() -> list[str]:
    """The names of the back ends that other packages ship."""
    return [name for name in _entries() if name not in BUILT_IN]


@functools.cache
def get(name: str) -> Backend:
    """The back end of this name, imported at the first call."""
    entries = _entries()
    if name not in entries:
        raise unknown(name, "the caller")
    return _load(name, entries[name])


def _load(name: str, entry: EntryPoint) -> Backend:
    try:
        cls = entry.load()
    except (ImportError, AttributeError) as error:
        raise BrokenBackend(name=name, source=entry.value, detail=f"{type(error).__name__}: {error}") from error
    if not (inspect.isclass(cls) and issubclass(cls, Backend)):
        raise BrokenBackend(
            name=name, source=entry.value, detail="it is no subclass of triton_dist.backends.base.Backend"
        )
    if missing := sorted(cls.__abstractmethods__):
        raise BrokenBackend(name=name, source=entry.value, detail=f"it does not define {', '.join(missing)}")
    if getattr(cls, "name", None) != name:
        raise BrokenBackend(
            name=name, source=entry.value, detail=f"its class says its name is {getattr(cls, 'name', None)!r}"
        )
    return cls()


def active() -> Backend:
    """The back end in use: what `triton_dist.platform.current()` chose."""
    from triton_dist import platform

    return get(platform.current().backend)


def reset() -> None:
    """Forget what was found and made, so that a package installed meanwhile is seen."""
    _entries.cache_clear()
    get.cache_clear()
