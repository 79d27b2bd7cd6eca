# SPDX-License-Identifier: MIT
"""Reading attributes of xDSL operations, whichever form the dialect gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def get(op: Any, name: str) -> Any:
    """An attribute by name (a property or a discardable attribute), or None."""
    found = op.properties.get(name)
    return op.attributes.get(name) if found is None else found


def enum(op: Any, name: str, keywords: Sequence[str] | Mapping[int, str]) -> str:
    """An enumeration attribute as its keyword: integers index `keywords`."""
    attr = get(op, name)
    value = getattr(attr, "value", None)
    if value is not None and hasattr(value, "data"):
        return keywords[int(value.data)]
    data: Any = getattr(attr, "data", attr)
    return keywords[data] if isinstance(data, int) else str(getattr(data, "value", data))


def integer(op: Any, name: str, default: int | None = None) -> int:
    """An integer attribute's value."""
    attr = get(op, name)
    if attr is None:
        if default is None:
            raise KeyError(f"{op.name} has no attribute {name}")
        return default
    return int(attr.value.data)


def integers(op: Any, name: str) -> tuple[int, ...]:
    """An integer array attribute's values."""
    attr = get(op, name)
    if hasattr(attr, "get_values"):
        return tuple(int(v) for v in attr.get_values())
    return tuple(int(getattr(v, "value", v).data) for v in attr.data)
