# SPDX-License-Identifier: MIT
"""Functions of the device library as inline PTX, which LLVM makes once: not again for each kernel that calls them.

Inlined as LLVM IR, the branches of `nvshmem_ptr` took a tenth of the time that a small kernel takes to compile.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from triton_dist.backends.cuda.bitcode import Signature
from triton_dist.backends.cuda.peephole import faster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from triton_dist.backends.cuda.bitcode import Pieces

_FUNCTION = re.compile(r"\.func\s+\(\.param \.b\d+ func_retval0\) \w+\([^)]*\)\n\{\n(.*?)\n\}", re.DOTALL)
_PARAMETER = re.compile(r"ld\.param\.(\w+) (\w+), \[\w+_param_(\d+)\]")
_RESULT = re.compile(r"st\.param\.(\w+) \[func_retval0\], (\w+)")
_REGISTER = re.compile(r"%(p|rs|r|rd|f|fd)(?=[0-9<])")
_LABEL = re.compile(r"\$L__BB")
_SYMBOL = re.compile(r"\[(\w+)(?:\+\d+)?\]")
_FOREIGN = re.compile(r'[%"\\]|\$(?!\d)|\b(?:ret|call\w*|param|local|shared|bar)\b')
"""What has no place in such a block."""
_LOOK_UPS = ("nvshmem_ptr",)
"""Whose loads are harmless: of a table by PE, the same for every address that can be reached."""
_LETTERS = {"i64": "l", "i32": "r"}
_FLAGS = ("nvptx-mad-wide-opt",)
"""Triton's own, which stay set once it has compiled a kernel: the text must not depend on whether it has."""


def assembled(function: str, operands: Sequence[str], result: str, pieces: Pieces, arch: int) -> str | None:
    """LLVM IR of a pure function of the library as one inline assembly; None if it is not of the kind that can be.

    `operands` and `result` are the types that it is called with.
    """
    declared = pieces.signature(function).of_integers()
    if declared != Signature(result, tuple(operands)) or not {result, *operands} <= _LETTERS.keys():
        return None
    text = _assembly(function, pieces, arch)
    if text is None:
        return None
    constraints = ",".join([f"={_LETTERS[result]}", *(_LETTERS[type] for type in operands)])
    parameters = ", ".join(f"{type} %a{i}" for i, type in enumerate(operands))
    return (
        f"define {result} @{function}({parameters}) alwaysinline nounwind {{\n"
        f'  %r = call {result} asm "{text}", "{constraints}"({parameters})\n'
        f"  ret {result} %r\n}}\n"
    )


@functools.lru_cache
def _assembly(function: str, pieces: Pieces, arch: int) -> str | None:
    from triton._C.libtriton import llvm

    if any(name[1:] in pieces for name in pieces.closure([function]) if name != f"@{function}"):
        return None
    llvm.init_targets()
    proc = f"sm_{arch}{'a' if arch >= 90 else ''}"
    arguments = pieces.extract([function]), "nvptx64-nvidia-cuda", proc, "", [*_FLAGS], True, False
    try:
        ptx = llvm.translate_to_asm(*arguments)
    except TypeError:  # From Triton 3.9 on there is one more: whether to canonicalise addresses.
        ptx = llvm.translate_to_asm(*arguments, False)
    block = _inline(ptx, known=pieces.closure([]))
    return None if block is None else f"{{ {faster(block, straight=function in _LOOK_UPS)}}}"


def _inline(ptx: str, known: Sequence[str]) -> str | None:
    """The statements of a function's PTX, as LLVM takes them for an inline assembly."""
    found = _FUNCTION.search(ptx)
    if found is None:
        return None
    body = re.sub(r"//[^\n]*", "", found[1])
    # Names of the block's own: those of operands are of the same kind.
    body = _LABEL.sub("BB", _REGISTER.sub(r"own_\1", body))
    statements = " ".join(body.split())
    if not statements.endswith("ret;"):
        return None
    statements = _PARAMETER.sub(lambda m: f"mov.{m[1]} {m[2]}, ${int(m[3]) + 1}", statements.removesuffix("ret;"))
    statements = _RESULT.sub(r"mov.\1 $0, \2", statements)
    named = {f"@{name}" for name in _SYMBOL.findall(statements) if not name.startswith("own_")}
    if not named <= set(known) or _FOREIGN.search(statements):
        return None
    return statements
