# SPDX-License-Identifier: MIT
"""What a PE of `run_processes` runs. Imported in the fork server, hence torch at the top."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import torch  # noqa: F401

from triton_dist import shmem
from triton_dist.backends.cpu import atomics  # noqa: F401
from triton_dist.shmem import config  # noqa: F401


@dataclass(frozen=True)
class Task:
    file: str
    name: str
    args: tuple[Any, ...]
    env: dict[str, str]
    init: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    result: Any = None
    error: BaseException | None = None
    traceback: str = ""


def main(connection: Connection, task: Task) -> None:
    """Be one PE: run the task's function between init and finalize, report, exit with 0 or 1."""
    os.environ.update(task.env)
    report = _run(task)
    connection.send(report)
    connection.close()
    if report.error is not None:
        sys.exit(1)


def _run(task: Task) -> Report:
    try:
        fn = _load(task)
        shmem.init(**task.init)
        result = fn(*task.args)
        if shmem.initialized():
            shmem.finalize()
        return Report(result)
    except BaseException as error:
        if shmem.initialized():
            shmem.adapter().abandon(f"{type(error).__name__}: {error}")
        return Report(None, _portable(error), traceback.format_exc())


def _load(task: Task) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("pe_task", task.file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {task.file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["pe_task"] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in task.name.split("."):
        found = getattr(found, part)
    return found


def _portable(error: BaseException) -> BaseException:
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
