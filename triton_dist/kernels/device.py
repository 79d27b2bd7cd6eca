# SPDX-License-Identifier: MIT
"""What a device has."""

from __future__ import annotations

from typing import Any

import torch


def properties_of(device: torch.device) -> Any:
    return torch.get_device_module(device).get_device_properties(device)


def multiprocessors_of(device: torch.device) -> int:
    """How many programs run at least at the same time; Ascend has cores instead."""
    properties = properties_of(device)
    known = (getattr(properties, name, 0) for name in ("multi_processor_count", "vector_core_num"))
    return next(filter(None, known), 1)
