# SPDX-License-Identifier: MIT
"""What `shmem.info` tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from triton_dist.backends.base import RuntimeAdapter


class Info(BaseModel):
    """This PE and its heap, in bytes."""

    model_config = ConfigDict(frozen=True)

    backend: str
    mode: Literal["hardware", "simulated", "host"]
    pe: int
    n_pes: int
    pes_are: Literal["processes", "threads", "devices"]
    heap_bytes: int
    free_bytes: int
    tensors: int


def info_of(adapter: RuntimeAdapter) -> Info:
    from triton_dist import platform

    selection = platform.current()
    return Info(backend=selection.backend, mode=selection.mode, **adapter.info())
