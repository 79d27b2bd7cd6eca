# SPDX-License-Identifier: MIT
"""NVSHMEM's bindings over plain host memory: two PEs whose heaps are mirrored in this process."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any


class _Struct:
    def __init__(self) -> None:
        self.memory = ctypes.create_string_buffer(128)
        self.ptr = ctypes.addressof(self.memory)


class Flags(IntEnum):
    INIT_WITH_UNIQUEID = 8


class FakeBindings:
    """PE 0 of `n_pes`; the others' heaps are memory of this process too. `reachable`: whether they are mapped."""

    Flags = Flags
    uniqueid = _Struct
    InitAttr = _Struct

    def __init__(self, n_pes: int = 2, reachable: bool = True, version: tuple[int, int, int] = (3, 4, 5)) -> None:
        self._n_pes, self.reachable, self._version = n_pes, reachable, version
        self.status, self.calls = 0, []
        self._heaps = [ctypes.create_string_buffer(1 << 16) for _ in range(n_pes)]
        self._used = 0
        self.fail: set[str] = set()

    def _note(self, name: str, *args: Any) -> None:
        self.calls.append((name, *args))
        if name in self.fail:
            raise RuntimeError(f"NVSHMEMError: {name}")

    def init_status(self) -> int:
        return self.status

    def get_uniqueid(self, at: int) -> None:
        self._note("get_uniqueid")
        ctypes.memset(at, 7, 128)

    def set_attr_uniqueid_args(self, pe: int, n_pes: int, uid: int, attributes: int) -> None:
        self._note("set_attr_uniqueid_args", pe, n_pes, ctypes.string_at(uid, 128))

    def hostlib_init_attr(self, flags: int, attributes: int) -> None:
        self._note("hostlib_init_attr", flags)
        self.status = 2

    def hostlib_finalize(self) -> None:
        self._note("hostlib_finalize")
        self.status = 0

    def my_pe(self) -> int:
        return 0

    def n_pes(self) -> int:
        return self._n_pes

    def vendor_get_version_info(self, *parts: int) -> None:
        for at, part in zip(parts, self._version, strict=True):
            ctypes.c_int.from_address(at).value = part

    def malloc(self, size: int) -> int:
        self._note("malloc", size)
        start = self._used
        self._used += (size + 511) // 512 * 512
        return ctypes.addressof(self._heaps[0]) + start if self._used <= 1 << 16 else 0

    def free(self, address: int) -> None:
        self._note("free", address)

    def ptr(self, address: int, pe: int) -> int:
        if not self.reachable and pe != 0:
            return 0
        return address - ctypes.addressof(self._heaps[0]) + ctypes.addressof(self._heaps[pe])

    def barrier_all(self) -> None:
        self._note("barrier_all")

    def barrier_all_on_stream(self, stream: int) -> None:
        self._note("barrier_all_on_stream", stream)

    def quiet_on_stream(self, stream: int) -> None:
        self._note("quiet_on_stream", stream)

    def putmem_on_stream(self, dest: int, source: int, nbytes: int, pe: int, stream: int) -> None:
        self._note("putmem_on_stream", nbytes, pe, stream)

    def getmem_on_stream(self, dest: int, source: int, nbytes: int, pe: int, stream: int) -> None:
        self._note("getmem_on_stream", nbytes, pe, stream)

    def signal_op_on_stream(self, at: int, value: int, op: int, pe: int, stream: int) -> None:
        self._note("signal_op_on_stream", value, op, pe, stream)

    def cumodule_init(self, module: int) -> int:
        self._note("cumodule_init", module)
        return 0

    def cumodule_finalize(self, module: int) -> int:
        self._note("cumodule_finalize", module)
        return 0
