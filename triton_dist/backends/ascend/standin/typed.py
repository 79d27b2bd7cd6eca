# SPDX-License-Identifier: MIT
"""The typed functions of the package's inner module: one value stored at, or read from, a PE."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from triton_dist.backends.ascend.standin import pes

_TYPES = {
    "float": ctypes.c_float, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32,
    "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64, "char": ctypes.c_int8,
}  # fmt: skip


def _p(type_: type) -> Callable[[int, float, int], None]:
    def put(dst: int, value: float, pe: int) -> None:
        # As a compiled function refuses it; ctypes would cut it.
        if type_ is not ctypes.c_float and type_(value).value != value:  # type: ignore[call-arg, attr-defined]
            raise TypeError(f"p: {value!r} does not fit {type_.__name__.removeprefix('c_')}")
        type_.from_address(pes.peer_address("p", dst, pe, ctypes.sizeof(type_))).value = value  # type: ignore[attr-defined]

    return put


def _g(type_: type) -> Callable[[int, int], float]:
    def get(src: int, pe: int) -> float:
        return type_.from_address(pes.peer_address("g", src, pe, ctypes.sizeof(type_))).value  # type: ignore[attr-defined]

    return get


__all__: list[str] = []
for _name, _type in _TYPES.items():
    globals()[f"aclshmem_{_name}_p"], globals()[f"aclshmem_{_name}_g"] = _p(_type), _g(_type)
    __all__ += [f"aclshmem_{_name}_p", f"aclshmem_{_name}_g"]
