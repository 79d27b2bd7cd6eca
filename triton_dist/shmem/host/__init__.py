# SPDX-License-Identifier: MIT
"""What the host engine's runtime adapter is made of: PEs that share memory on one machine."""
