# SPDX-License-Identifier: MIT
"""The vendors' device libraries, behind one portable face each: `libshmem_device` and `language_extra`."""
