# SPDX-License-Identifier: MIT
"""Loading an object file: sections into executable memory, relocations applied, no linker and no LLVM needed.

Only what LLVM emits for our modules on x86-64 (position-independent, small code model) is handled; anything else,
and any other processor, goes through LLVM's own loader. Relocation types: System V ABI, AMD64 supplement, table 4.9.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import mmap
import platform
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

ALLOC, EXECINSTR, NOBITS, SYMTAB, RELA = 2, 4, 8, 2, 4
R_64, R_PC32, R_PLT32, R_GOTPCREL, R_32S, R_PC64, R_GOTPCRELX, R_REX_GOTPCRELX = 1, 2, 4, 9, 11, 24, 41, 42
GOT = frozenset({R_GOTPCREL, R_GOTPCRELX, R_REX_GOTPCRELX})
STUB = struct.Struct("<6B2xQ")
"""jmp *2(%rip); 2 bytes of padding; the address."""

Resolve = Callable[[str], int]


class LoadError(RuntimeError):
    """The object cannot be loaded here."""


@dataclass
class _Section:
    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    address: int = 0


@dataclass
class Image:
    """Loaded code. Keep it as long as its functions may be called."""

    memory: object
    symbols: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.symbols[name]


@functools.lru_cache(1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@functools.lru_cache(1)
def _libm() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")


def libc_symbol(name: str) -> int:
    """The address of a function of the C library or its math part."""
    for library in (_libc(), _libm()):
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    raise LoadError(f"the C library has no {name}")


def load(code: bytes, extra: Mapping[str, int] | None = None) -> Image:
    """Make an object file's functions callable; `extra` gives addresses of symbols it needs, before the C library's."""
    known = dict(extra or {})

    def resolve(name: str) -> int:
        return known[name] if name in known else libc_symbol(name)

    if platform.machine() in ("x86_64", "AMD64"):
        return _Loader(code, resolve).run()
    return _load_with_llvm(code, known)


def _load_with_llvm(code: bytes, known: Mapping[str, int]) -> Image:
    import llvmlite.binding as llvm

    from .target import native

    native()
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name, address in known.items():
        builder = builder.import_symbol(name, address)
    names = [s.name for s in _symbols(code, _sections(code)) if s.defined and s.binding]
    for name in names:
        builder = builder.export_symbol(name)
    lljit = llvm.create_lljit_compiler()
    tracker = builder.link(lljit, f"triton_dist_{id(code):x}")
    return Image((lljit, tracker), {name: tracker[name] for name in names})


@dataclass
class _Symbol:
    name: str
    binding: int
    section: int
    value: int
    type: int

    @property
    def defined(self) -> bool:
        return 0 < self.section < 0xFF00


def _string(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _sections(code: bytes) -> list[_Section]:
    if code[:5] != b"\x7fELF\x02":
        raise LoadError("not a 64-bit ELF object")
    (start,) = struct.unpack_from("<Q", code, 40)
    size, count, names = struct.unpack_from("<HHH", code, 58)
    raw = [struct.unpack_from("<IIQQQQIIQQ", code, start + i * size) for i in range(count)]
    table = code[raw[names][4] : raw[names][4] + raw[names][5]]
    return [_Section(_string(table, r[0]), r[1], r[2], r[4], r[5], r[6], r[7], max(1, r[8])) for r in raw]


def _symbols(code: bytes, sections: list[_Section]) -> list[_Symbol]:
    table = next((s for s in sections if s.type == SYMTAB), None)
    if table is None:
        return []
    names = sections[table.link]
    text = code[names.offset : names.offset + names.size]
    found = []
    for i in range(table.size // 24):
        name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", code, table.offset + 24 * i)
        found.append(_Symbol(_string(text, name), info >> 4, section, value, info & 15))
    return found


class _Loader:
    """One object, from bytes to an image. Layout: sections, then stubs for outside functions, then the GOT."""

    def __init__(self, code: bytes, resolve: Resolve) -> None:
        self.code, self.resolve = code, resolve
        self.sections = _sections(code)
        self.symbols = _symbols(code, self.sections)
        self.stubs: dict[str, int] = {}
        self.got: dict[int, int] = {}

    def run(self) -> Image:
        size = self._lay_out()
        memory = mmap.mmap(-1, size, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for s in self.sections:
            if s.flags & ALLOC and s.type != NOBITS:
                memory[s.address : s.address + s.size] = self.code[s.offset : s.offset + s.size]
        self.memory = memory
        for s in self.sections:
            if s.type == RELA and self.sections[s.info].flags & ALLOC:
                self._relocate(s)
        if _libc().mprotect(ctypes.c_void_p(self.base), ctypes.c_size_t(size), 1 | 4):
            raise LoadError("the system does not allow executable memory (mprotect failed)")
        names = {
            s.name: self.base + self.sections[s.section].address + s.value for s in self.symbols if s.defined and s.name
        }
        return Image(memory, names)

    def _lay_out(self) -> int:
        at = 0
        for s in self.sections:
            if s.flags & ALLOC:
                at = (at + s.align - 1) // s.align * s.align
                s.address, at = at, at + s.size
        outside = [s.name for s in self.symbols if not s.section and s.name]
        self.stub_start = (at + 15) // 16 * 16
        self.got_start = self.stub_start + STUB.size * len(outside)
        self.names = {name: i for i, name in enumerate(outside)}
        size = self.got_start + 8 * len(self.symbols)
        return (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE

    def _address(self, symbol: _Symbol) -> int:
        if symbol.defined:
            return self.base + self.sections[symbol.section].address + symbol.value
        return self._stub(symbol.name)

    def _stub(self, name: str) -> int:
        """A jump to an outside function, near enough for a 32-bit displacement."""
        if name not in self.stubs:
            at = self.stub_start + STUB.size * self.names[name]
            STUB.pack_into(self.memory, at, 0xFF, 0x25, 2, 0, 0, 0, self.resolve(name))
            self.stubs[name] = self.base + at
        return self.stubs[name]

    def _got_entry(self, index: int) -> int:
        if index not in self.got:
            symbol = self.symbols[index]
            value = self._address(symbol) if symbol.defined else self.resolve(symbol.name)
            at = self.got_start + 8 * index
            struct.pack_into("<Q", self.memory, at, value)
            self.got[index] = self.base + at
        return self.got[index]

    def _relocate(self, table: _Section) -> None:
        target = self.sections[table.info]
        for i in range(table.size // 24):
            offset, info, addend = struct.unpack_from("<QQq", self.code, table.offset + 24 * i)
            kind, index = info & 0xFFFFFFFF, info >> 32
            where = target.address + offset
            self._apply(kind, index, where, addend)

    def _apply(self, kind: int, index: int, where: int, addend: int) -> None:
        place = self.base + where
        if kind in GOT:
            struct.pack_into("<i", self.memory, where, self._got_entry(index) + addend - place)
        elif kind in (R_PC32, R_PLT32):
            struct.pack_into("<i", self.memory, where, self._address(self.symbols[index]) + addend - place)
        elif kind == R_64:
            struct.pack_into("<Q", self.memory, where, (self._address(self.symbols[index]) + addend) & (2**64 - 1))
        elif kind == R_PC64:
            struct.pack_into("<q", self.memory, where, self._address(self.symbols[index]) + addend - place)
        else:
            raise LoadError(f"relocation type {kind} is not handled")
