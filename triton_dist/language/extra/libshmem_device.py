# SPDX-License-Identifier: MIT
"""The vendors' SHMEM device libraries behind one set of names: `from triton_dist.language.extra import
libshmem_device`.

Every function of `records.py` is here, and calls the one of the active back end's device module. One that the back
end lacks is an error where the kernel calls it, which names the nearest alternative. Numbers of signal operations,
comparisons and teams are NVSHMEM's on every back end, which translates them; use the names below.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

from triton_dist.language.extra import records as _records
from triton_dist.language.extra.dispatch import ActiveModule

SIGNAL_SET = NVSHMEM_SIGNAL_SET = tl.constexpr(9)
SIGNAL_ADD = NVSHMEM_SIGNAL_ADD = tl.constexpr(10)

CMP_EQ = NVSHMEM_CMP_EQ = tl.constexpr(0)
CMP_NE = NVSHMEM_CMP_NE = tl.constexpr(1)
CMP_GT = NVSHMEM_CMP_GT = tl.constexpr(2)
CMP_LE = NVSHMEM_CMP_LE = tl.constexpr(3)
CMP_LT = NVSHMEM_CMP_LT = tl.constexpr(4)
CMP_GE = NVSHMEM_CMP_GE = tl.constexpr(5)

TEAM_INVALID = NVSHMEM_TEAM_INVALID = tl.constexpr(-1)
TEAM_WORLD = NVSHMEM_TEAM_WORLD = tl.constexpr(0)
TEAM_SHARED = NVSHMEM_TEAM_SHARED = tl.constexpr(1)
TEAM_NODE = NVSHMEMX_TEAM_NODE = tl.constexpr(2)
TEAM_SAME_MYPE_NODE = NVSHMEMX_TEAM_SAME_MYPE_NODE = tl.constexpr(3)
TEAM_SAME_GPU = NVSHMEMI_TEAM_SAME_GPU = tl.constexpr(4)
TEAM_GPU_LEADERS = NVSHMEMI_TEAM_GPU_LEADERS = tl.constexpr(5)

active_module = ActiveModule("device_module", _records.nearest)
"""The ModuleProxy of the active back end's device module."""


def _declare(record: _records.Record) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any: ...

    function.__name__ = function.__qualname__ = record.name
    function.__module__ = __name__
    function.__doc__ = f"{record.signature}: {record.meaning}.\n\nCalled by a whole {record.scope}."
    return active_module.dispatch(function)


for _record in _records.records().values():
    globals()[_record.name] = _declare(_record)


def __getattr__(name: str) -> Any:
    """A function that only the active back end has, or the error that says it has none."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(active_module(), name)
