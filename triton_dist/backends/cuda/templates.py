# SPDX-License-Identifier: MIT
"""The inline PTX that our lowering emits, and the only inline asm that the simulation knows.

Each template says what it does on a GPU (its text) and which native function of the host does the same. Braces make
labels and registers local, so that a pass may copy the block.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

WIDTHS = (32, 64)
SCOPES = ("cta", "gpu", "sys")
PAGE = 4096
"""The heaps of all PEs begin at multiples of this."""


@dataclass(frozen=True)
class Asm:
    """One template: PTX, LLVM's constraint string, and the host's function for it."""

    text: str
    constraints: str
    native: str
    pure: bool = False
    result: str = "i32"
    may_block: bool = False


def letter(width: int) -> str:
    """The register class of an integer."""
    return "l" if width == 64 else "r"


@functools.cache
def wait(width: int, scope: str, semantic: str, warp: bool) -> Asm:
    """Poll n neighbouring words until each equals the value.

    `warp`: the lanes of a warp share the words, and meet afterwards. Every warp polls for itself, so that no CTA
    barrier is needed: one would end software pipelining. Otherwise each thread that comes here polls all of them.
    """
    first = "mov.u32 i, %tid.x; and.b32 i, i, 31;" if warp else "mov.b32 i, 0;"
    step = 32 if warp else 1
    meet = "bar.warp.sync 0xffffffff; " if warp else ""
    text = (
        f"{{ .reg .pred p; .reg .b32 i; .reg .b64 at; .reg .b{width} seen; {first} "
        f"EACH: setp.ge.s32 p, i, $2; @p bra DONE; mul.wide.s32 at, i, {width // 8}; add.s64 at, at, $1; "
        f"POLL: ld.{semantic}.{scope}.global.b{width} seen, [at]; setp.ne.b{width} p, seen, $3; @p bra POLL; "
        f"add.s32 i, i, {step}; bra EACH; DONE: {meet}mov.b32 $0, 0; }}"
    )
    return Asm(text, f"=r,l,r,{letter(width)},~{{memory}}", f"host_wait_i{width}", may_block=True)


@functools.cache
def wait_one(width: int, scope: str, semantic: str) -> Asm:
    """Poll one word until it equals the value. Every thread does; the lanes of a warp share each load.

    The operands are those of `wait`, of which the number of words is not looked at.
    """
    text = (
        f"{{ .reg .pred p; .reg .b{width} seen; POLL: ld.{semantic}.{scope}.global.b{width} seen, [$1]; "
        f"setp.ne.b{width} p, seen, $3; @p bra POLL; mov.b32 $0, 0; }}"
    )
    return Asm(text, f"=r,l,r,{letter(width)},~{{memory}}", f"host_wait_i{width}", may_block=True)


def release(scope: str, action: str) -> str:
    """The instruction of a signal, but for its width. A fence would empty the L1 cache as well."""
    return f"red.release.{scope}.global.add.u" if action == "add" else f"st.release.{scope}.global.b"


@functools.cache
def notify(width: int, scope: str, action: str, guard: str) -> Asm:
    """Set a word or add to it, after what the CTA wrote before: a release, which the barrier makes one of all threads.

    `guard`: "barrier" meets the CTA and lets thread 0 signal, "thread0" does the latter only (a barrier stands before
    it), "each" signals from each thread that comes here.
    """
    meet = "bar.sync 0; " if guard == "barrier" else ""
    choose = "" if guard == "each" else "mov.u32 i, %tid.x; setp.eq.u32 p, i, 0; "
    when = "" if guard == "each" else "@p "
    text = (
        f"{{ .reg .pred p; .reg .b32 i; {meet}{choose}{when}{release(scope, action)}{width} [$1], $2; "
        "mov.b32 $0, 0; }"
    )
    return Asm(text, f"=r,l,{letter(width)},~{{memory}}", f"host_signal_here_{action}_i{width}")


ONE = Asm("mov.b32 $0, 1;", "=r", "cuda_one", pure=True)
"""A true condition that no pass can see through."""
ZERO_OF = Asm("mov.b32 $0, 0;", "=r,r", "cuda_zero_of", pure=True)
"""Zero, made to depend on a token."""
PROXY_FENCE = Asm("fence.proxy.async.global; mov.b32 $0, 0;", "=r,r,~{memory}", "cuda_zero_of")
"""Zero, made to depend on a token; the bulk copy engine reads after it what other threads wrote before it."""


@functools.cache
def register(name: str) -> Asm:
    """A special register of the thread: "tid.x", "ntid.x", "laneid", ..."""
    return Asm(f"mov.u32 $0, %{name};", "=r", "cuda_one" if name.startswith("ntid") else "cuda_zero", pure=True)


REGISTERS = (*(f"{kind}.{axis}" for kind in ("tid", "ntid") for axis in "xyz"), "laneid")
THREAD_REGISTERS = ("%tid.", "%laneid", "%warpid", "%clock", "%globaltimer")
"""What may differ between the threads of a program."""


@functools.cache
def load(width: int, scope: str, semantic: str) -> Asm:
    text = f"ld.{semantic}.{scope}.global.b{width} $0, [$1];"
    return Asm(text, f"={letter(width)},l,~{{memory}}", f"cuda_load_i{width}", result=f"i{width}")


@functools.cache
def store(width: int, scope: str, semantic: str) -> Asm:
    text = f"st.{semantic}.{scope}.global.b{width} [$1], $2; mov.b32 $0, 0;"
    return Asm(text, f"=r,l,{letter(width)},~{{memory}}", f"host_signal_here_set_i{width}")


@functools.cache
def reduce(width: int, scope: str) -> Asm:
    text = f"red.release.{scope}.global.add.u{width} [$1], $2; mov.b32 $0, 0;"
    return Asm(text, f"=r,l,{letter(width)},~{{memory}}", f"host_signal_here_add_i{width}")


@functools.cache
def fetch_add(width: int, scope: str, semantic: str) -> Asm:
    text = f"atom.{semantic}.{scope}.global.add.u{width} $0, [$1], $2;"
    w = letter(width)
    return Asm(text, f"={w},l,{w},~{{memory}}", f"cuda_fetch_add_i{width}", result=f"i{width}")


@functools.cache
def compare_and_swap(width: int, scope: str, semantic: str) -> Asm:
    text = f"atom.{semantic}.{scope}.global.cas.b{width} $0, [$1], $2, $3;"
    w = letter(width)
    return Asm(text, f"={w},l,{w},{w},~{{memory}}", f"cuda_cas_i{width}", result=f"i{width}")


def every() -> Iterator[Asm]:
    """All templates."""
    yield from (ONE, ZERO_OF, PROXY_FENCE)
    yield from map(register, REGISTERS)
    for width in WIDTHS:
        for scope in SCOPES:
            yield from _of_memory(width, scope)


def _of_memory(width: int, scope: str) -> Iterator[Asm]:
    for semantic in ("relaxed", "acquire"):
        yield from (wait(width, scope, semantic, warp) for warp in (False, True))
        yield wait_one(width, scope, semantic)
        yield load(width, scope, semantic)
    for action in ("set", "add"):
        yield from (notify(width, scope, action, guard) for guard in ("barrier", "thread0", "each"))
    yield from (store(width, scope, semantic) for semantic in ("relaxed", "release"))
    yield reduce(width, scope)
    for semantic in ("relaxed", "acquire", "release", "acq_rel"):
        yield fetch_add(width, scope, semantic)
        yield compare_and_swap(width, scope, semantic)
