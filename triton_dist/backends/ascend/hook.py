# SPDX-License-Identifier: MIT
"""Our one place in triton-ascend: the very beginning of its stage "ttadapter".

Versions differ in what comes after. 3.2 turns TTIR into Linalg in a program of its own, which knows no hivm.custom, so
that the calls travel as placeholders (see `placeholders`). Newer versions know it: the module is handed on as it is.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from triton_dist import __version__, knobs
from triton_dist.errors import TritonAscendRefused, UnknownTritonAscend

Stage = Callable[[Any, dict[str, Any]], Any]
STAGE = "ttadapter"
CARRIER = '"distributed"'
PASSES = ("raise-distributed-carriers", "convert-triton-distributed-to-hivm")
_MARK = "_triton_dist"


def install() -> bool:
    """Hook into triton-ascend if this process has it; says whether it does."""
    compiler = compiler_class()
    if compiler is None:
        return False
    if not hasattr(compiler, _MARK):
        setattr(compiler, _MARK, True)
        compiler.add_stages = _with_our_stage(compiler.add_stages)
        compiler.hash = _with_our_version(compiler.hash)
    return True


def compiler_class() -> Any:
    """triton-ascend's compiler, or None. Triton loads back ends by path: the class in its table is not the one that
    an import of the module gives."""
    from triton.backends import backends

    entry = backends.get("ascend")
    return getattr(entry, "compiler", None)


def version() -> tuple[int, int]:
    """triton-ascend's version, as far as it decides about the way; (0, 0) if it says none that can be read."""
    found = re.match(r"(\d+)\.(\d+)", _version_text())
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _with_our_stage(add_stages: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(add_stages)
    def wrapper(self: Any, stages: dict[str, Any], options: Any, *rest: Any) -> None:
        add_stages(self, stages, options, *rest)
        if STAGE in stages:
            stages[STAGE] = distributed_first(stages[STAGE], route())
        else:
            stages.update({name: _refusing(stage) for name, stage in stages.items()})

    return wrapper


def _with_our_version(hash_: Callable[[Any], str]) -> Callable[[Any], str]:
    """Triton's cache key: an edit of our passes must not find old binaries."""

    @functools.wraps(hash_)
    def wrapper(self: Any) -> str:
        return f"{hash_(self)}-triton_dist-{__version__}-{_sources()}-{knobs.dot_free_cores}"

    return wrapper


@functools.cache
def _sources(root: Path = Path(__file__).resolve().parents[2]) -> str:  # noqa: B008
    import hashlib

    digest = hashlib.sha256()
    # The front end too: Triton's key of a kernel has no builtins in it.
    for folder in ("ir", "language", "compiler", "backends/ascend"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


Route = Callable[[str, Any, Stage, dict[str, Any]], Any]


def distributed_first(stage: Stage, way: Route) -> Stage:
    """The stage, with distributed ops converted before it. A module without any goes through untouched."""

    @functools.wraps(stage)
    def wrapper(module: Any, metadata: dict[str, Any]) -> Any:
        text = str(module)
        if CARRIER not in text:
            return stage(module, metadata)
        return way(text, module, stage, metadata)

    return wrapper


def _refusing(stage: Stage) -> Stage:
    """Where there is no ttadapter (force_simt_only), distributed ops have no way."""

    @functools.wraps(stage)
    def wrapper(module: Any, metadata: dict[str, Any]) -> Any:
        if CARRIER in str(module):
            raise UnknownTritonAscend(version=_version_text(), detail="these options have no stage ttadapter")
        return stage(module, metadata)

    return wrapper


def route() -> Route:
    """The way of this triton-ascend; an unknown version is an error when a distributed kernel is compiled."""
    found = version()
    if found == (3, 2):
        return by_placeholders
    if found >= (3, 5) and _dialects_know_custom():
        return by_module
    return _unknown


def _dialects_know_custom() -> bool:
    try:
        from triton._C.libtriton import ascend
    except ImportError:
        return False
    return hasattr(ascend.ir, "ascendnpu_ir_builder")


def _version_text() -> str:
    import triton

    return triton.__version__


def _unknown(text: str, module: Any, stage: Stage, metadata: dict[str, Any]) -> Any:
    detail = "known are 3.2, and 3.5 and later with the hivm dialect"
    raise UnknownTritonAscend(version=_version_text(), detail=detail)


def converted(text: str) -> Any:
    """TTIR with custom ops, as an xDSL module."""
    from triton_dist import ir

    module = ir.parse(text)
    ir.run_passes(module, PASSES)
    return module


def by_placeholders(text: str, module: Any, stage: Stage, metadata: dict[str, Any]) -> str:
    """triton-ascend 3.2: its own stage sees placeholders, and what it returns gets the calls back."""
    del module
    from triton_dist.backends.ascend import placeholders

    ttir = placeholders.replaced(converted(text))
    try:
        linalg = stage(ttir, metadata)
    except subprocess.CalledProcessError as error:
        # Its message is the command line.
        raise TritonAscendRefused(version=_version_text(), detail=_first_error(error)) from error
    return placeholders.restore(linalg)


def _first_error(error: subprocess.CalledProcessError) -> str:
    """The line that says what is wrong, of all that the program printed."""
    printed = error.stderr or error.output or b""
    text = printed.decode(errors="replace") if isinstance(printed, bytes) else printed
    lines = [line for line in text.splitlines() if "error:" in line or "Assertion" in line]
    return lines[0].strip() if lines else f"it ended with status {error.returncode}"


def by_module(text: str, module: Any, stage: Stage, metadata: dict[str, Any]) -> Any:
    """Later versions: their dialects know hivm.custom, so the stage takes the module."""
    from triton._C.libtriton import ir as triton_ir

    from triton_dist.ir.printer import print_text

    context = module.context
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ttir.mlir"
        path.write_text(print_text(converted(text)))
        parsed = triton_ir.parse_mlir_module(str(path), context)
    parsed.context = context
    return stage(parsed, metadata)
