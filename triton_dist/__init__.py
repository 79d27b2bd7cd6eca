# SPDX-License-Identifier: MIT
"""Multi-device kernels written once in Triton."""

__version__ = "0.1.0"
