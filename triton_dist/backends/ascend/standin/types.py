# SPDX-License-Identifier: MIT
"""The stand-in's classes and enumerations."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


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


@dataclass
class OptionalAttr:
    """Settings with defaults; times are in seconds."""

    version: int = 1
    data_op_engine_type: OpEngineType = OpEngineType.MTE
    shm_init_timeout: int = 120
    shm_create_timeout: int = 120
    control_operation_timeout: int = 120
    sockFd: int = -1


@dataclass
class InitAttr:
    """What `aclshmem_init` is told. The package leaves rank and sizes unset; here they are values that it refuses."""

    my_rank: int = -1
    n_ranks: int = 0
    local_mem_size: int = 0
    ip_port: str = ""
    option_attr: OptionalAttr = field(default_factory=OptionalAttr)

    def __setattr__(self, name: str, value: object) -> None:
        # The package keeps 63 characters.
        super().__setattr__(name, value[:63] if name == "ip_port" and isinstance(value, str) else value)


@dataclass
class TeamConfig:
    """What `aclshmem_team_get_config` tells."""

    num_contexts: int = 0


UniqueId = bytes
