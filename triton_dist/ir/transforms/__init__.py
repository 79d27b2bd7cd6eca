# SPDX-License-Identifier: MIT
"""The passes that know no vendor, one file each: name -> "module:Class", imported when used."""

from __future__ import annotations

PASSES: dict[str, str] = {
    "raise-distributed-carriers": ("triton_dist.ir.transforms.raise_distributed_carriers:RaiseDistributedCarriers"),
}
