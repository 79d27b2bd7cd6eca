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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerType

from triton_dist.backends.cuda import bitcode, libdevice, library, symbols
from triton_dist.backends.cuda.assembled import assembled
from triton_dist.backends.cuda.bitcode import Pieces, Signature
from triton_dist.backends.cuda.symbols import WrapperName
from triton_dist.backends.cuda.templates import release
from triton_dist.errors import DeviceLibraryFile, DeviceLibraryMissing, NvshmemMismatch, UndefinedDeviceFunction
from triton_dist.ir.dialects.tt import PointerType
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
_GLOBAL = "ptr addrspace(1)"
_LOOK_UP = "nvshmem_ptr"


@dataclass(frozen=True)
class ExternCall:
    """A call of a function, as the module makes it."""

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
    vendor: dict[str, ExternCall] = {}
    others: dict[str, str] = {}
    for op in module.walk():
        if op.name != "tt.extern_elementwise":
            continue
        name, path = _text(op, "libname"), _text(op, "libpath")
        if name in (symbols.VENDOR, symbols.WRAPPERS):
            vendor.setdefault(_text(op, "symbol"), _extern_call(op))
        elif path:
            if not Path(path).is_file():
                where, symbol = _extern_call(op).where, _text(op, "symbol")
                raise DeviceLibraryFile(where=where, symbol=symbol, library=name, path=path)
            # Several files may be parts of one library.
            others.setdefault(path, f"{name} {path}" if name in others.values() else name)
        elif name not in given and not (_text(op, "symbol").startswith(libdevice.PREFIX) and libdevice.KEY in given):
            raise DeviceLibraryMissing(where=_extern_call(op).where, symbol=_text(op, "symbol"), library=name)
    found = [(name, path) for path, name in others.items()]
    if vendor:
        found.append((symbols.VENDOR, str(make(list(vendor.values()), arch, given.get(symbols.VENDOR)))))
    return found


def _text(op: Operation, name: str) -> str:
    return op.properties[name].data  # pyright: ignore


def _extern_call(op: Operation) -> ExternCall:
    operands = tuple(_llvm_type(value.type) for value in op.operands)
    return ExternCall(_text(op, "symbol"), operands, _llvm_type(op.results[0].type), op)


def _llvm_type(type: Any) -> str:
    if isinstance(type, IntegerType):
        return f"i{type.width.data}"
    if isinstance(type, PointerType):
        return _GLOBAL
    text = str(type)
    return {"f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat"}.get(text, text)


def make(calls: Sequence[ExternCall], arch: int, given: str | None = None) -> Path:
    """The file with all that is called; kept by what it holds."""
    path = Path(given) if given else library.installed().file_for(arch)
    pieces = bitcode.pieces_of(path, all_functions())
    without_network = library.without_network()
    key = (*((call.name, call.operands, call.result) for call in calls), path, pieces, arch, without_network)
    if (found := _contents.get(key)) is None:
        found = _content(calls, path, pieces, arch, without_network)
        _contents.put(key, found)
    digest, content = found
    target = bitcode.cache_dir() / f"triton_dist_device_{digest}.ll"
    if not target.exists():
        bitcode.write(target, content)
    return target


_contents: Remembered[tuple[str, bytes]] = Remembered(64)


def _content(
    calls: Sequence[ExternCall], path: Path, pieces: Pieces, arch: int, without_network: bool
) -> tuple[str, bytes]:
    """What the file holds, and a hash of it."""
    roots = _roots(calls, path, pieces)
    stubs = WITHOUT_NETWORK if without_network else None
    inlined = _inlined(calls, roots, pieces, stubs, arch)
    own = [(wrapper, call) for call in calls if (wrapper := WrapperName.of(call.name))]
    texts = [*(_wrapper_text(wrapper, call, pieces, inlined.keys()) for wrapper, call in own), *inlined.values()]
    body = pieces.extract([root for root in roots if root not in inlined], stubs)
    slot = _SLOT if any("@triton_dist_result" in text for text in texts) else ""
    content = "\n".join([slot, *texts, body]).encode()
    return hashlib.sha256(content).hexdigest()[:32], content


@functools.cache
def all_functions() -> tuple[str, ...]:
    """Every function of NVSHMEM that `libshmem_device` may call."""
    return tuple(dict.fromkeys(["nvshmem_ptr", *_NOTIFY_NEEDS, *symbols.scopes()]))


def _roots(calls: Sequence[ExternCall], path: Path, pieces: Pieces) -> list[str]:
    """NVSHMEM's functions that are needed."""
    roots: dict[str, None] = {}
    for call in calls:
        needs = _needs(call)
        _check_defined(call, needs, path, pieces)
        roots |= dict.fromkeys(needs)
    return list(roots)


def _needs(call: ExternCall) -> tuple[str, ...]:
    wrapper = WrapperName.of(call.name)
    if wrapper is None:
        return (call.name,)
    if not _signals(wrapper):
        return (wrapper.symbol,)
    looked_up = (_LOOK_UP,) if wrapper.symbol in symbols.NOTIFY.values() else ()
    return looked_up if library.without_network() else (*looked_up, *_NOTIFY_NEEDS)


def _signals(wrapper: WrapperName) -> bool:
    return wrapper.symbol in (*symbols.NOTIFY.values(), *symbols.NOTIFY_THERE.values())


def _inlined(
    calls: Sequence[ExternCall], roots: Sequence[str], pieces: Pieces, stubs: Mapping[str, str] | None, arch: int
) -> dict[str, str]:
    """The functions that all who call them take as inline assembly, of integers; and its text."""
    found: dict[str, str] = {}
    for name in [root for root in roots if root in symbols.POINTERS]:
        declared = pieces.signature(name).of_integers()
        # Nor may another function of the library need it as it is.
        needed = f"@{name}" in pieces.closure([root for root in roots if root != name], stubs)
        if not needed and all(name not in _needs(call) or _takes_integers(call, declared) for call in calls):
            made = assembled(name, declared.parameters, declared.result, pieces, arch)
            found |= {name: made} if made else {}
    return found


def _takes_integers(call: ExternCall, declared: Signature) -> bool:
    wrapper = WrapperName.of(call.name)
    if wrapper is None:
        return Signature(call.result, call.operands) == declared
    return _signals(wrapper) or wrapper.mode in symbols.BETWEEN.values()


def _check_defined(call: ExternCall, needs: Iterable[str], path: Path, pieces: Pieces) -> None:
    for name in needs:
        if name not in pieces:
            close = difflib.get_close_matches(name, pieces.functions(), n=1, cutoff=0.6)
            hint = f" The nearest it has is {close[0]}." if close else ""
            raise UndefinedDeviceFunction(where=call.where, symbol=name, library=path, hint=hint)
        if missing := pieces.undefined([name]):
            hint = f" It needs {', '.join(missing)}."
            raise UndefinedDeviceFunction(where=call.where, symbol=name, library=path, hint=hint)


def _wrapper_text(wrapper: WrapperName, call: ExternCall, pieces: Pieces, inlined: Collection[str]) -> str:
    if _signals(wrapper):
        return _notify_text(wrapper, call, pieces, inlined)
    if wrapper.mode in symbols.BETWEEN.values():
        return _between_text(wrapper, call, pieces, inlined)
    lines, value = _call_lines(call, wrapper.symbol, pieces.signature(wrapper.symbol))
    parameters = ", ".join(f"{type} %a{i}" for i, type in enumerate(call.operands))
    head = f"define {call.result} @{wrapper.text}({parameters}) alwaysinline convergent nounwind {{\n"
    if wrapper.mode == "each":
        return f"{head}{lines}  ret {call.result} {value or 0}\n}}\n"
    if wrapper.mode == "block":
        return f"{head}{BARRIER}{lines}{BARRIER}  ret {call.result} {value or 0}\n}}\n"
    return head + _elected(_LIMIT[wrapper.mode], lines, call.result, value)


def _between_text(wrapper: WrapperName, call: ExternCall, pieces: Pieces, inlined: Collection[str]) -> str:
    """How far a symmetric address is from its counterpart, in elements."""
    operands, names = list(call.operands), [f"%a{i}" for i in range(len(call.operands))]
    parameters = ", ".join(map(" ".join, zip(operands, names, strict=True)))
    at = next(i for i, type in enumerate(operands) if type in (_GLOBAL, "i64"))
    made = _integer(operands[at], names[at], "%at")
    operands[at], names[at] = "i64", "%at"
    asked = ExternCall(call.name, tuple(operands), call.result, call.op)
    lines, remote = _call_lines(asked, wrapper.symbol, _signature(wrapper.symbol, pieces, inlined), names)
    size = next(size for size, mode in symbols.BETWEEN.items() if mode == wrapper.mode)
    # Exactly: both are addresses of such elements, or the peer cannot be reached.
    return (
        f"define i64 @{wrapper.text}({parameters}) alwaysinline nounwind {{\n{made}{lines}"
        f"  %bytes = sub i64 {remote}, %at\n  %elements = ashr exact i64 %bytes, {size.bit_length() - 1}\n"
        f"  ret i64 %elements\n}}\n"
    )


def _integer(type: str, pointer: str, name: str) -> str:
    """A line that makes an i64 of a pointer, or of what is one already."""
    return f"  {name} = {'ptrtoint' if type == _GLOBAL else 'bitcast'} {type} {pointer} to i64\n"


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


def _call_lines(call: ExternCall, symbol: str, signature: Signature, names: Sequence[str] = ()) -> tuple[str, str]:
    """The call itself, operands and result converted; and the name of the result, empty for none.

    The operands are `names`, or %a0, %a1 and so on.
    """
    if len(signature.parameters) != len(call.operands):
        raise _differs(call, symbol, signature)
    lines, operands = "", []
    for i, (have, want) in enumerate(zip(call.operands, signature.parameters, strict=True)):
        text, name = _converted(names[i] if names else f"%a{i}", have, want, f"%b{i}")
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


def _differs(call: ExternCall, symbol: str, signature: Signature) -> NvshmemMismatch:
    have = f"{signature.result} ({', '.join(signature.parameters)})"
    want = f"{call.result} ({', '.join(call.operands)})"
    return NvshmemMismatch(
        detail=f"{call.where}: {symbol} is {have} in this library, but is called as {want}",
        fix="The library's version does not fit this version of triton_dist, or the call's types are wrong.",
    )


def _notify_text(wrapper: WrapperName, call: ExternCall, pieces: Pieces, inlined: Collection[str]) -> str:
    """Signal a PE: by a store if its memory can be reached, which is fast; otherwise through NVSHMEM.

    `%at` is the signal's address here; there, as seen from here, it is 0 if it cannot be reached.
    """
    add = wrapper.symbol in (symbols.NOTIFY["add"], symbols.NOTIFY_THERE["add"])
    one = wrapper.mode == "one"
    if wrapper.symbol in symbols.NOTIFY_THERE.values():
        addresses, lines, remote = "i64 %at, i64 %remote", "", "%remote"
    else:
        addresses = f"{call.operands[0]} %here"
        lines, remote = _looked_up(call, pieces, inlined)
    head = (
        f"define i32 @{wrapper.text}({addresses}, i64 %value, i32 %pe) "
        f"alwaysinline convergent nounwind {{\n{lines}{BARRIER if one else ''}"
    )
    if library.without_network():
        # Who cannot be reached is at 0, where a store is an illegal access: nothing to look at before.
        return f"{head}{_signal_near(remote, add, one, anywhere=False)}  ret i32 0\n}}\n"
    return f"{head}{_signal_near(remote, add, one, anywhere=True)}{_signal_far(remote, add, one)}"


def _looked_up(call: ExternCall, pieces: Pieces, inlined: Collection[str]) -> tuple[str, str]:
    """Lines that make `%at` of `%here` and look for it on `%pe`, and the name of what they find."""
    asked = ExternCall(call.name, ("i64", "i32"), "i64", call.op)
    lines, remote = _call_lines(asked, _LOOK_UP, _signature(_LOOK_UP, pieces, inlined), ("%at", "%pe"))
    return _integer(call.operands[0], "%here", "%at") + lines, remote


def _signature(name: str, pieces: Pieces, inlined: Collection[str]) -> Signature:
    """Of the library's own function, or of what there is in its place."""
    declared = pieces.signature(name)
    return declared.of_integers() if name in inlined else declared


def _signal_near(remote: str, add: bool, one: bool, anywhere: bool) -> str:
    """Store to the peer; if it may be `anywhere`, only if its memory can be reached."""
    return (
        f'  call void asm sideeffect "{{ .reg .pred p; .reg .b32 i; {_WHEN[anywhere, one]}'
        f'{release("sys", "add" if add else "set")}64 [$0], $1; }}", '
        f'"l,l,~{{memory}}"(i64 {remote}, i64 %value) convergent nounwind\n'
    )


_WHEN = {
    (True, True): "setp.ne.s64 p, $0, 0; mov.u32 i, %tid.x; setp.eq.and.u32 p, i, 0, p; @p ",
    (True, False): "setp.ne.s64 p, $0, 0; @p ",
    (False, True): "mov.u32 i, %tid.x; setp.eq.u32 p, i, 0; @p ",
    (False, False): "",
}
"""Which threads signal near: (the PE may be anywhere, one thread does it for all). Predicated, not branched round:
thread 0 would have to meet the others again."""


def _signal_far(remote: str, add: bool, one: bool) -> str:
    """Ask NVSHMEM, if the peer's memory cannot be reached; and return."""
    chosen = (
        f"{_THREAD}  %chosen = icmp eq i32 %thread, 0\n  br i1 %chosen, label %signal, label %done\n"
        if one
        else "  br label %signal\n"
    )
    return (
        f"  %far = icmp eq i64 {remote}, 0\n  br i1 %far, label %network, label %done\n"
        f"network:\n{chosen}signal:\n  %p = inttoptr i64 %at to ptr\n  call void @nvshmem_fence()\n"
        f"  call void @nvshmemx_signal_op(ptr %p, i64 %value, i32 {10 if add else 9}, i32 %pe)\n"
        "  br label %done\ndone:\n  ret i32 0\n}\n"
    )
