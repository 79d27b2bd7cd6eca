# SPDX-License-Identifier: MIT
"""What the package keeps in its inner module."""

from triton_dist.backends.ascend.standin.host import *  # noqa: F403
from triton_dist.backends.ascend.standin.typed import *  # noqa: F403
from triton_dist.backends.ascend.standin.types import (
    CmpOp as CmpOp,
)
from triton_dist.backends.ascend.standin.types import (
    InitAttr as InitAttr,
)
from triton_dist.backends.ascend.standin.types import (
    InitStatus as InitStatus,
)
from triton_dist.backends.ascend.standin.types import (
    MemType as MemType,
)
from triton_dist.backends.ascend.standin.types import (
    OpEngineType as OpEngineType,
)
from triton_dist.backends.ascend.standin.types import (
    OptionalAttr as OptionalAttr,
)
from triton_dist.backends.ascend.standin.types import (
    SignalOp as SignalOp,
)
from triton_dist.backends.ascend.standin.types import (
    TeamConfig as TeamConfig,
)
from triton_dist.backends.ascend.standin.types import (
    UniqueId as UniqueId,
)
