# SPDX-License-Identifier: MIT
"""What the package keeps in its inner module."""

from triton_dist.backends.ascend.standin.host import *  # noqa: F403
from triton_dist.backends.ascend.standin.typed import *  # noqa: F403
from triton_dist.backends.ascend.standin.types import (
    CmpOp as CmpOp,
    InitAttr as InitAttr,
    InitStatus as InitStatus,
    MemType as MemType,
    OpEngineType as OpEngineType,
    OptionalAttr as OptionalAttr,
    SignalOp as SignalOp,
    TeamConfig as TeamConfig,
    UniqueId as UniqueId,
)
