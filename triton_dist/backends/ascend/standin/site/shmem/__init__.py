# SPDX-License-Identifier: MIT
"""The stand-in under the name that scripts import: `import shmem as ash`."""

from triton_dist.backends.ascend.standin import host as _host
from triton_dist.backends.ascend.standin import types as _types
from triton_dist.backends.ascend.standin.host import *  # noqa: F403
from triton_dist.backends.ascend.standin.types import InitAttr, InitStatus, OpEngineType, OptionalAttr

__all__ = [*_host.__all__, "InitAttr", "InitStatus", "OpEngineType", "OptionalAttr"]
aclshmem_finialize = _host.aclshmem_finalize
"""Deprecated spelling, kept as the package keeps it."""
del _types
