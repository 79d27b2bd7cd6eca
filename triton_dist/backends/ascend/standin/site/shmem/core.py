# SPDX-License-Identifier: MIT
"""The package's interface in the style of nvshmem4py."""

from triton_dist.backends.ascend.standin.core import *  # noqa: F403
