# SPDX-License-Identifier: MIT
"""The device library of one module: wrappers of NVSHMEM's functions, and what they need of NVSHMEM.

A wrapper lets one thread, one warp or the whole block call, as the function demands, and keeps the order of the
program around it: a CTA barrier before, so that what other threads wrote is written, and one after, so that
nobody goes on before it is done. A result goes to all threads through shared memory.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerType

from triton_dist.backends.cuda import bitcode, libdevice, library, symbols
from triton_dist.backends.cuda.assembled import assembled
from triton_dist.backends.cuda.bitcode import Pieces, Signature
from triton_dist.backends.cuda.symbols import Wrapper
from triton_dist.backends.cuda.templates import release
from triton_dist.errors import DeviceLibraryMissing, NvshmemMismatch, UndefinedDeviceFunction
from triton_dist.ir.seen import Remembered

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

BARRIER = '  call void asm sideeffect "bar.sync 0;", "~{memory}"() convergent nounwind\n'
_THREAD = '  %thread = call i32 asm "mov.u32 $0, %tid.x;", "=r"()\n'
_SLOT = "@triton_dist_result = internal addrspace(3) global i64 undef, align 8\n"
_NOTIFY_NEEDS = ("nvshmem_fence", "nvshmemx_signal_op")
_NEVER_CALLED = '  call void asm sideeffect "trap;", ""()\n  unreachable'
_NOTHING_TO_DO = '  call void asm sideeffect "fence.acq_rel.sys;", "~{memory}"()\n  ret void'
WITHOUT_NETWORK = {
    r"nvshmemi_transfer_(rma|put_signal|amo)": _NEVER_CALLED,
    r"nvshmemi_transfer_(fence|quiet)": _NOTHING_TO_DO,
}
"""NVSHMEM's functions that use a network are most of its code; where there is none, nothing of it is needed."""
_LIMIT = {"one": 1, "warp": 32}


@dataclass(frozen=True)
class Called:
    """A function as the module calls it."""

    name: str
    operands: tuple[str, ...]
    result: str
    op: Operation = field(compare=False)

    @property
    def where(self) -> str:
        from triton_dist.ir import location

        return str(location(self.op) or "unknown location")


def device_libraries(module: ModuleOp, arch: int, given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Triton's (key, path) pairs for a converted module."""
    vendor: dict[str, Called] = {}
    others: dict[str, str] = {}
    for op in module.walk():
        if op.name != "tt.extern_elementwise":
            continue
        name, path = _text(op, "libname"), _text(op, "libpath")
        if name in (symbols.VENDOR, symbols.WRAPPERS):
            vendor.setdefault(_text(op, "symbol"), _called(op))
        elif path:
            others[name] = path
        elif name not in given and not (_text(op, "symbol").startswith(libdevice.PREFIX) and libdevice.KEY in given):
            raise DeviceLibraryMissing(where=_called(op).where, symbol=_text(op, "symbol"), library=name)
    found = list(others.items())
    if vendor:
        found.append((symbols.VENDOR, str(make(list(vendor.values()), arch, given.get(symbols.VENDOR)))))
    return found


def _text(op: Operation, name: str) -> str:
    return op.properties[name].data  # pyright: ignore


def _called(op: Operation) -> Called:
    operands = tuple(_llvm_type(value.type) for value in op.operands)
    return Called(_text(op, "symbol"), operands, _llvm_type(op.results[0].type), op)


def _llvm_type(type: Any) -> str:
    if isinstance(type, IntegerType):
        return f"i{type.width.data}"
    text = str(type)
    return {"f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat"}.get(text, text)


def make(called: Sequence[Called], arch: int, given: str | None = None) -> Path:
    """The file with all that is called; kept by what it holds."""
    path = Path(given) if given else library.installed().file_for(arch)
    pieces = bitcode.pieces_of(path, all_functions())
    without_network = library.without_network()
    key = (*((call.name, call.operands, call.result) for call in called), path, pieces, arch, without_network)
    if (found := _contents.get(key)) is None:
        found = _content(called, path, pieces, arch, without_network)
        _contents.put(key, found)
    digest, content = found
    target = bitcode.cache_dir() / f"triton_dist_device_{digest}.ll"
    if not target.exists():
        bitcode.write(target, content)
    return target


_contents: Remembered[tuple[str, bytes]] = Remembered(64)


def _content(called: Sequence[Called], path: Path, pieces: Pieces, arch: int, alone: bool) -> tuple[str, bytes]:
    """What the file holds, and a hash of it. `alone`: there is no network."""
    roots, texts = _roots(called, path, pieces)
    stubs = WITHOUT_NETWORK if alone else None
    for call in called:
        others = [root for root in roots if root != call.name]
        # Unless another function of the library needs it as it is.
        needed = call.name not in symbols.POINTERS or f"@{call.name}" in pieces.closure(others, stubs)
        made = None if needed else assembled(call.name, call.operands, call.result, pieces, arch)
        if made is not None:
            roots, texts = others, [*texts, made]
    body = pieces.extract(dict.fromkeys(roots), stubs)
    slot = _SLOT if any("@triton_dist_result" in text for text in texts) else ""
    content = "\n".join([slot, *texts, body]).encode()
    return hashlib.sha256(content).hexdigest()[:32], content


@functools.cache
def all_functions() -> tuple[str, ...]:
    """Every function of NVSHMEM that `libshmem_device` may call."""
    return tuple(dict.fromkeys(["nvshmem_ptr", *_NOTIFY_NEEDS, *symbols.scopes()]))


def _roots(called: Sequence[Called], path: Path, pieces: Pieces) -> tuple[list[str], list[str]]:
    """NVSHMEM's functions that are needed, and the text of the wrappers."""
    roots: list[str] = []
    texts: list[str] = []
    for call in called:
        wrapper = Wrapper.of(call.name)
        needs = _needs(wrapper, call)
        _check(call, needs, path, pieces)
        roots += needs
        if wrapper:
            texts.append(_wrapper(wrapper, call, pieces))
    return roots, texts


def _needs(wrapper: Wrapper | None, call: Called) -> tuple[str, ...]:
    if wrapper is None:
        return (call.name,)
    if wrapper.symbol in symbols.NOTIFY.values():
        return () if library.without_network() else _NOTIFY_NEEDS
    return (wrapper.symbol,)


def _check(call: Called, needs: Iterable[str], path: Path, pieces: Pieces) -> None:
    for name in needs:
        if name not in pieces:
            close = difflib.get_close_matches(name, pieces.functions(), n=1, cutoff=0.6)
            hint = f" The nearest it has is {close[0]}." if close else ""
            raise UndefinedDeviceFunction(where=call.where, symbol=name, library=path, hint=hint)
        if missing := pieces.undefined([name]):
            hint = f" It needs {', '.join(missing)}."
            raise UndefinedDeviceFunction(where=call.where, symbol=name, library=path, hint=hint)


def _wrapper(wrapper: Wrapper, call: Called, pieces: Pieces) -> str:
    if wrapper.symbol in symbols.NOTIFY.values():
        return _notify(wrapper)
    lines, value = _call(call, wrapper.symbol, pieces.signature(wrapper.symbol))
    parameters = ", ".join(f"{type} %a{i}" for i, type in enumerate(call.operands))
    head = f"define {call.result} @{wrapper.name}({parameters}) alwaysinline convergent nounwind {{\n"
    if wrapper.mode == "each":
        return f"{head}{lines}  ret {call.result} {value or 0}\n}}\n"
    if wrapper.mode == "block":
        return f"{head}{BARRIER}{lines}{BARRIER}  ret {call.result} {value or 0}\n}}\n"
    return head + _elected(_LIMIT[wrapper.mode], lines, call.result, value)


def _elected(threads: int, lines: str, result: str, value: str) -> str:
    """The body of a wrapper in which the first threads call, and all get the result."""
    slot = "ptr addrspace(3) @triton_dist_result"
    keep = f"  store {result} {value}, {slot}, align 8\n" if value else ""
    fetch = f"  %all = load {result}, {slot}, align 8\n{BARRIER}" if value else ""
    return (
        f"{BARRIER}{_THREAD}  %chosen = icmp ult i32 %thread, {threads}\n"
        f"  br i1 %chosen, label %call, label %done\n"
        f"call:\n{lines}{keep}  br label %done\n"
        f"done:\n{BARRIER}{fetch}  ret {result} {'%all' if value else 0}\n}}\n"
    )


def _call(call: Called, symbol: str, signature: Signature) -> tuple[str, str]:
    """The call itself, operands and result converted; and the name of the result, empty for none."""
    if len(signature.parameters) != len(call.operands):
        raise _differs(call, symbol, signature)
    lines, operands = "", []
    for i, (have, want) in enumerate(zip(call.operands, signature.parameters, strict=True)):
        text, name = _converted(f"%a{i}", have, want, f"%b{i}")
        if name is None:
            raise _differs(call, symbol, signature)
        lines += text
        operands.append(f"{want} {name}")
    target = f"{signature.result} @{symbol}({', '.join(operands)})"
    if signature.result == "void":
        return f"{lines}  call {target}\n", ""
    text, name = _converted("%r", signature.result, call.result, "%v")
    if name is None:
        raise _differs(call, symbol, signature)
    return f"{lines}  %r = call {target}\n{text}", name


def _converted(value: str, have: str, want: str, name: str) -> tuple[str, str | None]:
    """A line that makes `want` of `have`, and the name of what it gives; None if there is no way."""
    if have == want:
        return "", value
    how = {("i64", "ptr"): "inttoptr", ("ptr", "i64"): "ptrtoint"}.get((have, want))
    if how is None and have[0] == want[0] == "i":
        how = "trunc" if int(have[1:]) > int(want[1:]) else "sext"
    return (f"  {name} = {how} {have} {value} to {want}\n", name) if how else ("", None)


def _differs(call: Called, symbol: str, signature: Signature) -> NvshmemMismatch:
    have = f"{signature.result} ({', '.join(signature.parameters)})"
    want = f"{call.result} ({', '.join(call.operands)})"
    return NvshmemMismatch(
        detail=f"{call.where}: {symbol} is {have} in this library, but is called as {want}",
        fix="The library's version does not fit this version of triton_dist, or the call's types are wrong.",
    )


def _notify(wrapper: Wrapper) -> str:
    """Signal a PE: by a store if its memory can be reached, which is fast; otherwise through NVSHMEM.

    `%at` is the signal's address here, `%remote` there, as seen from here: 0 if it cannot be reached.
    """
    add = wrapper.symbol == symbols.NOTIFY["add"]
    one = wrapper.mode == "one"
    head = (
        f"define i32 @{wrapper.name}(i64 %at, i64 %remote, i64 %value, i32 %pe) "
        f"alwaysinline convergent nounwind {{\n{BARRIER if one else ''}"
    )
    if library.without_network():
        # Not a branch to the trap: what is straight compiles faster.
        return f"{head}{_signal_near(add, one, '@!p trap; ')}  ret i32 0\n}}\n"
    return f"{head}{_signal_near(add, one)}{_signal_far(add, one)}"


def _signal_near(add: bool, one: bool, first: str = "") -> str:
    """Store to the peer, if its memory can be reached; `first` is done before, where p says whether it can."""
    # Predicated, not branched round: thread 0 would have to meet the others again.
    elect = "mov.u32 i, %tid.x; setp.eq.and.u32 p, i, 0, p; " if one else ""
    return (
        f'  call void asm sideeffect "{{ .reg .pred p; .reg .b32 i; setp.ne.s64 p, $0, 0; {first}{elect}'
        f'@p {release("sys", "add" if add else "set")}64 [$0], $1; }}", "l,l,~{{memory}}"'
        "(i64 %remote, i64 %value) convergent nounwind\n"
    )


def _signal_far(add: bool, one: bool) -> str:
    """Ask NVSHMEM, if the peer's memory cannot be reached; and return."""
    chosen = (
        f"{_THREAD}  %chosen = icmp eq i32 %thread, 0\n  br i1 %chosen, label %signal, label %done\n"
        if one
        else "  br label %signal\n"
    )
    return (
        "  %far = icmp eq i64 %remote, 0\n  br i1 %far, label %network, label %done\n"
        f"network:\n{chosen}signal:\n  %p = inttoptr i64 %at to ptr\n  call void @nvshmem_fence()\n"
        f"  call void @nvshmemx_signal_op(ptr %p, i64 %value, i32 {10 if add else 9}, i32 %pe)\n"
        "  br label %done\ndone:\n  ret i32 0\n}\n"
    )
