# SPDX-License-Identifier: MIT
"""The stand-in's classes and enumerations."""

from __future__ import annotations

import enum
import operator
from dataclasses import dataclass
from typing import Any, ClassVar


class OpEngineType(enum.IntFlag):
    """What moves data between PEs."""

    MTE = 1
    SDMA = 2
    ROCE = 4
    UDMA = 8


class InitStatus(enum.IntEnum):
    NOT_INITIALIZED = 0
    SHM_CREATED = 1
    INITIALIZED = 2
    INVALID = 2**31 - 1


class SignalOp(enum.IntEnum):
    SIGNAL_SET = 0
    SIGNAL_ADD = 1


class CmpOp(enum.IntEnum):
    CMP_EQ = 0
    CMP_NE = 1
    CMP_GT = 2
    CMP_GE = 3
    CMP_LT = 4
    CMP_LE = 5


class MemType(enum.IntEnum):
    HOST_SIDE = 0
    DEVICE_SIDE = 1


class _Checked:
    """Fields as the package's compiled classes have them: no others, and each of its type."""

    _kinds: ClassVar[dict[str, type]]

    def __setattr__(self, name: str, value: Any) -> None:
        owner = type(self).__name__
        if name not in self._kinds:
            raise AttributeError(f"{owner} has no attribute {name!r}; it has {', '.join(self._kinds)}")
        object.__setattr__(self, name, _as(self._kinds[name], value, f"{owner}.{name}"))


def _as(kind: type, value: Any, what: str) -> Any:
    try:
        if issubclass(kind, int):
            return kind(operator.index(value))
    except TypeError:
        pass
    if not isinstance(value, kind):
        raise TypeError(f"{what} must be a {kind.__name__}, not {value!r}")
    # The package keeps 63 characters of an address.
    return value[:63] if isinstance(value, str) else value


class OptionalAttr(_Checked):
    """Settings with defaults; times are in seconds."""

    _kinds = {
        "version": int, "data_op_engine_type": OpEngineType, "shm_init_timeout": int, "shm_create_timeout": int,
        "control_operation_timeout": int, "sockFd": int,
    }  # fmt: skip

    def __init__(self) -> None:
        self.version, self.data_op_engine_type, self.sockFd = 1, OpEngineType.MTE, -1
        self.shm_init_timeout = self.shm_create_timeout = self.control_operation_timeout = 120


class InitAttr(_Checked):
    """What `aclshmem_init` is told. The package leaves rank and sizes unset; here they are values that it refuses."""

    _kinds = {"my_rank": int, "n_ranks": int, "local_mem_size": int, "ip_port": str, "option_attr": OptionalAttr}

    def __init__(self) -> None:
        self.my_rank, self.n_ranks, self.local_mem_size, self.ip_port = -1, 0, 0, ""
        self.option_attr = OptionalAttr()


@dataclass
class TeamConfig:
    """What `aclshmem_team_get_config` tells."""

    num_contexts: int = 0


UniqueId = bytes
