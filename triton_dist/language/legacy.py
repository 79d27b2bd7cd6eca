# SPDX-License-Identifier: MIT
"""Triton before 3.4, on which triton-ascend 3.2 is built: builtins get a `_builder`, and semantic functions take it.

`LegacySemantic` offers those of them that our builtins call in today's form, where they are methods.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl


class LegacySemantic:
    """Today's `TritonSemantic`, as far as it is needed, over a builder."""

    def __init__(self, builder: Any) -> None:
        from triton.language import semantic

        self.builder, self._functions = builder, semantic

    def to_tensor(self, value: Any) -> Any:
        value = value.value if isinstance(value, tl.constexpr) else value
        return value if isinstance(value, tl.tensor) else self._functions.to_tensor(value, self.builder)

    def scalar_constant(self, value: Any, type_: Any) -> Any:
        return self._functions.full([], value, type_, self.builder)

    def cast(self, value: Any, type_: Any) -> Any:
        return self._functions.cast(value, type_, self.builder)

    def bitcast(self, value: Any, type_: Any) -> Any:
        return self._functions.bitcast(value, type_, self.builder)

    def add(self, left: Any, right: Any, sanitize_overflow: bool) -> Any:
        return self._functions.add(left, right, sanitize_overflow, self.builder)

    def sub(self, left: Any, right: Any, sanitize_overflow: bool) -> Any:
        return self._functions.sub(left, right, sanitize_overflow, self.builder)

    def minimum(self, left: Any, right: Any, propagate_nan: Any) -> Any:
        return self._functions.minimum(left, right, propagate_nan, self.builder)

    def mul(self, left: Any, right: Any, sanitize_overflow: bool) -> Any:
        return self._functions.mul(left, right, sanitize_overflow, self.builder)
