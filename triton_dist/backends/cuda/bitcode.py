# SPDX-License-Identifier: MIT
"""Parts of a device library, quickly: its functions as separate pieces of LLVM IR.

NVSHMEM's library is 30 to 50 MB of bitcode; reading it takes seconds for each kernel that links it. So it is taken
apart once: what our functions need is linked into one module by Triton's own LLVM (whose version then fits), its
text is cut at top level into pieces, and kept with the pieces each one refers to. A kernel links the few it needs.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from triton_dist.errors import NvshmemMismatch

FORMAT = "2"
"""Of the kept files; part of their names."""
ALWAYS = "@llvm.compiler.used"
"""Keeps the library's state in the module, which the host fills in."""

_NAME = r'(?:"[^"]*"|[-a-zA-Z$._0-9]+)'
_REFERENCE = re.compile(rf"[@%!#$]{_NAME}")
_STARTS = {
    "define": re.compile(rf"@{_NAME}(?=\()"),
    "declare": re.compile(rf"@{_NAME}(?=\()"),
    "attributes": re.compile(r"#\d+"),
}
_DEFINITION = re.compile(rf"[@%!$]{_NAME}(?= = )")

Stubs: TypeAlias = Mapping[str, str]
"""Pattern of a function's name -> LLVM IR of a body that takes the place of its own."""


@dataclass(eq=False)
class Pieces:
    """A library taken apart. `spans`: piece -> (start, end) in the text, and the pieces it refers to."""

    spans: dict[str, tuple[int, int, list[str]]]
    path: Path | None = None
    text: bytes | None = None
    _signatures: dict[str, Signature] = field(default_factory=dict)

    def __contains__(self, function: str) -> bool:
        return f"@{function}" in self.spans and self._kind(f"@{function}") == b"define"

    def functions(self) -> list[str]:
        """The names of all functions it defines."""
        return [name[1:] for name in self.spans if name[0] == "@" and self._kind(name) == b"define"]

    def _kind(self, name: str) -> bytes:
        start, end, _ = self.spans[name]
        return self._read([(start, min(start + 7, end))])[0].split(b" ")[0].rstrip()

    def closure(self, functions: Iterable[str], stubs: Stubs | None = None) -> list[str]:
        """The functions and all that they need, by name; not what those need that have a stub."""
        todo = [f"@{name}" for name in functions]
        if ALWAYS in self.spans:
            todo.append(ALWAYS)
        seen: dict[str, None] = {}
        while todo:
            name = todo.pop()
            if name not in seen:
                seen[name] = None
                todo += [] if self._stub_for(name, stubs) else self.spans[name][2]
        return list(seen)

    def extract(self, functions: Iterable[str], stubs: Stubs | None = None) -> str:
        """LLVM IR of the functions and all that they need."""
        names = self.closure(functions, stubs)
        kept = sorted(self.spans[name][:2] for name in names if not self._stub_for(name, stubs))
        made = [self._stub(name, body) for name in names if (body := self._stub_for(name, stubs))]
        return b"\n".join([*self._read(kept), *made]).decode()

    def _stub_for(self, name: str, stubs: Stubs | None) -> str:
        if not stubs or name[0] != "@" or self._kind(name) != b"define":
            return ""
        return next((body for pattern, body in stubs.items() if re.search(pattern, name)), "")

    def _stub(self, name: str, body: str) -> bytes:
        head = self._head(name[1:])
        # The calling convention must stay; attributes need not.
        convention = "fastcc " if " fastcc " in head else ""
        signature = self.signature(name[1:])
        text = f"define internal {convention}{signature.result} {name}({', '.join(signature.parameters)}) noinline"
        return f"{text} {{\n{body}\n}}".encode()

    def undefined(self, functions: Iterable[str]) -> list[str]:
        """What the functions call that neither the library nor every GPU's driver has."""
        names = [name for name in self.closure(functions) if name[0] == "@"]
        declared = [name[1:] for name in names if self._kind(name) == b"declare"]
        return [name for name in declared if not name.startswith("llvm.") and name not in ("vprintf", "__assertfail")]

    def signature(self, function: str) -> Signature:
        if function not in self._signatures:
            self._signatures[function] = Signature.parse(self._head(function), function)
        return self._signatures[function]

    def _head(self, function: str) -> str:
        """The line that begins the function's definition."""
        start, end, _ = self.spans[f"@{function}"]
        return self._read([(start, end)])[0].split(b"\n", 1)[0].decode()

    def _read(self, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        if self.text is not None:
            return [self.text[start:end] for start, end in spans]
        assert self.path is not None
        with self.path.open("rb") as file:
            return [os.pread(file.fileno(), end - start, start) for start, end in spans]


@dataclass(frozen=True)
class Signature:
    """LLVM types of a function."""

    result: str
    parameters: tuple[str, ...]

    def of_integers(self) -> Signature:
        """The same with i64 for addresses."""
        result, *parameters = (type.replace("ptr", "i64") for type in (self.result, *self.parameters))
        return Signature(result, tuple(parameters))

    @staticmethod
    def parse(head: str, function: str) -> Signature:
        before, _, after = head.partition(f"@{function}(")
        inside = _until_closed(after)
        parameters = tuple(part.split()[0] for part in _split(inside))
        # Linkage and attributes stand before the type, which is the last word, but for attributes with arguments.
        result = before.split()[-1] if before.split() else "void"
        return Signature(result, parameters)


def _until_closed(text: str) -> str:
    depth = 1
    for i, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0:
            return text[:i]
    return text


def _split(text: str) -> list[str]:
    """At the commas that no parenthesis holds."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part for part in parts if part.strip()]


def cut(text: bytes) -> dict[str, tuple[int, int, list[str]]]:
    """The pieces of a module's text, and what each refers to."""
    found = {name: (start, end) for name, start, end in _top_level(text)}
    pieces = {}
    for name, (start, end) in found.items():
        words = dict.fromkeys(_REFERENCE.findall(text[start:end].decode()))
        pieces[name] = (start, end, [word for word in words if word in found and word != name])
    return pieces


def _top_level(text: bytes) -> Iterator[tuple[str, int, int]]:
    at, size = 0, len(text)
    while at < size:
        line_end = text.find(b"\n", at)
        line_end = size if line_end < 0 else line_end
        line = text[at:line_end].decode()
        end = line_end
        if line.startswith("define"):
            end = text.find(b"\n}", at) + 2
        if (name := _piece_name(line)) is not None:
            yield name, at, end
        at = end + 1


def _piece_name(line: str) -> str | None:
    word = line.split(" ", 1)[0]
    pattern = _STARTS.get(word)
    found = pattern.search(line) if pattern else _DEFINITION.match(line)
    name = found[0] if found else None
    # Named metadata lists all functions of the library; kernels need none of it.
    return None if name and name[0] == "!" and not name[1:].isdigit() else name


# Making and keeping


def pieces_of(library: Path, functions: Sequence[str]) -> Pieces:
    """The pieces of a library that `functions` need; kept beside Triton's cache."""
    stat = library.stat()
    return _pieces_of(library, stat.st_size, stat.st_mtime_ns, tuple(functions))


@functools.lru_cache
def _pieces_of(library: Path, size: int, changed: int, functions: tuple[str, ...]) -> Pieces:
    import triton

    what = (FORMAT, triton.__version__, str(library.resolve()), size, changed, sorted(functions))
    key = hashlib.sha256(repr(what).encode()).hexdigest()[:32]
    if library.suffix == ".ll":
        text = library.read_bytes()
        return Pieces(cut(text), text=text)
    folder = cache_dir()
    index, body = folder / f"triton_dist_nvshmem_{key}.json", folder / f"triton_dist_nvshmem_{key}.ll"
    if not index.exists():
        with _only_one(folder / f"triton_dist_nvshmem_{key}.lock"):
            if not index.exists():
                text = linked_text(library, functions).encode()
                write(body, text)
                write(index, json.dumps(cut(text)).encode())
    spans = {name: (start, end, refs) for name, (start, end, refs) in json.loads(index.read_bytes()).items()}
    return Pieces(spans, path=body)


def cache_dir() -> Path:
    from triton import knobs

    folder = Path(knobs.cache.dir)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """PEs start together and all want the same file."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write(path: Path, content: bytes) -> None:
    """Atomically."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(name, path)


def linked_text(library: Path, functions: Sequence[str]) -> str:
    """LLVM IR of `functions` and what they need, as Triton's LLVM reads it from the library."""
    from triton._C.libtriton import ir, llvm

    context = ir.context()
    ir.load_dialects(context)
    declarations = "\n".join(f"llvm.func @{name}()" for name in functions)
    module = _module(f"module {{\n{declarations}\n}}\n", context)
    llvm.init_targets()
    of_llvm = llvm.context()
    linked = llvm.to_module(module, of_llvm)
    try:
        llvm.link_extern_libs(linked, [str(library)])
    except (RuntimeError, ValueError) as error:
        import triton

        raise NvshmemMismatch(
            detail=f"Triton {triton.__version__} cannot read {library} ({error})",
            fix="Its LLVM is older than the one that wrote the library, or the file is damaged. Use a newer Triton, or "
            "an older NVSHMEM (3.4 works with every Triton from 3.6 on), or install NVSHMEM again.",
        ) from error
    return _exported(str(linked), functions)


def _exported(text: str, functions: Sequence[str]) -> str:
    """Triton makes all that it links internal; what kernels call must be found by name."""
    names = "|".join(map(re.escape, functions))
    return re.sub(rf"^define internal (?=[^@\n]*@(?:{names})\()", "define ", text, flags=re.MULTILINE)


def _module(text: str, context: Any) -> Any:
    from triton._C.libtriton import ir

    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module
