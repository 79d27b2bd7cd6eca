# SPDX-License-Identifier: MIT
"""`tl.extra.libdevice` on the host. The functions are not there yet in this version."""
