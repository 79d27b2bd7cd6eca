# SPDX-License-Identifier: MIT
"""How our passes get into the vendors' compilers: Triton's stage inspection hook and its load hook.

Triton's NVIDIA and AMD back ends offer their stages to a hook before they run. Ours wraps "ttir", their first: a module
with carriers is raised and converted there, and goes on as plain TTIR. A module without any goes on as it is.

From Triton 3.7 on the hook also answers, for the cache, what it stands for. Triton 3.6 does not ask, so there what the
compiler says of itself for the cache is extended.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triton_dist import __version__, backends, knobs, platform
from triton_dist.compiler.garbage import uncollected

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from triton_dist.backends.base import Backend

_CARRIER = '"distributed"'
_TRITON_NAMES = {"cuda": "nvidia", "hip": "amd"}
"""Triton's target -> its package of the back end. The targets are named as our back ends are."""

Stage = Callable[[Any, dict[str, Any]], Any]
_earlier: list[Any] = []
"""The hook that was there before ours, if any."""
_installed: list[bool] = []


def install() -> None:
    """Put the hooks in place, once. Importing `triton_dist.language` does it: nothing without that has carriers."""
    if _installed:
        return
    _installed.append(True)
    _install_in_triton_ascend()
    try:
        from triton import knobs as triton_knobs
    except ImportError:  # triton-ascend 3.2
        return
    if not hasattr(triton_knobs.runtime, "add_stages_inspection_hook"):  # triton-ascend 3.5
        return
    earlier = triton_knobs.runtime.add_stages_inspection_hook
    if earlier is not None:
        _earlier.append(earlier)
    # Typed as a hook that is never asked for a key; Triton's own code asks.
    setattr(triton_knobs.runtime, "add_stages_inspection_hook", inspect_stages)  # noqa: B010
    triton_knobs.runtime.kernel_load_end_hook.add(on_load)
    if hasattr(triton_knobs.runtime, "kernel_unload_hook"):
        triton_knobs.runtime.kernel_unload_hook.add(on_unload)
    if not _asks_for_key():
        _extend_compiler_hashes()


def _install_in_triton_ascend() -> None:
    """That package is a Triton of its own, without Triton's hook."""
    import triton.backends

    if "ascend" in triton.backends.backends:
        from triton_dist.backends.ascend.hook import install

        install()


def inspect_stages(
    self: Any = None, stages: Any = None, options: Any = None, language: Any = None, capability: Any = None
) -> tuple[str, str] | None:
    """Triton's hook. Without arguments it is asked, at each launch, for its part of the cache key."""
    if stages is None:
        return _key_of_all() if _earlier else _key()
    for hook in _earlier:
        hook(self, stages, options, language, capability)
    target = self.target
    if target.backend in _TRITON_NAMES and "ttir" in stages:
        stages["ttir"] = _converting(stages["ttir"], options, target)
    return None


def _converting(stage: Stage, options: Any, target: Any) -> Stage:
    def run(module: Any, metadata: dict[str, Any]) -> Any:
        module = stage(module, metadata)
        text = str(module)
        return convert(text, module.context, options, target) if _CARRIER in text else module

    return run


@uncollected()
def convert(text: str, context: Any, options: Any, target: Any) -> Any:
    """A libtriton module of what the target's back end makes of TTIR with carriers; its libraries go into `options`."""
    backend = backends.get(target.backend)
    # Whoever looks on sees each conversion.
    make = _conversion.__wrapped__ if knobs.debug_ir else _conversion
    module, converted = make(text, ("raise-distributed-carriers", *backend.pipeline()))
    _link(backend, module, options, target)
    return parse_text(converted, context)


@functools.lru_cache(maxsize=16)
def _conversion(text: str, passes: tuple[str, ...]) -> tuple[ModuleOp, str]:
    """What the passes make of a module, and its text. A tuner's variants that differ in warps and stages share it."""
    from triton_dist import ir

    module = ir.parse(text)
    # libtriton verifies what it reads, and reads it next.
    ir.run_passes(module, passes, verify=False)
    return module, ir.print_module(module)


def _link(backend: Backend, module: ModuleOp, options: Any, target: Any) -> None:
    given = dict(options.extern_libs or ())
    needed = dict(backend.device_libraries(module, target, given))
    if needed:
        spared = backend.spared_libraries(module)
        kept = {key: path for key, path in {**given, **needed}.items() if key not in spared}
        # Frozen, but the later stages read this very object.
        object.__setattr__(options, "extern_libs", tuple(kept.items()))


def parse_text(text: str, context: Any) -> Any:
    """The module that `text` says, by libtriton, which reads files only."""
    from triton._C.libtriton import ir

    with os.fdopen(os.memfd_create("triton_dist.ttir"), "w") as file:
        file.write(text)
        file.flush()
        try:
            module = ir.parse_mlir_module(f"/proc/self/fd/{file.fileno()}", context)
        except RuntimeError as error:
            raise RuntimeError(f"{error} It is kept as {_kept(text)}.") from error
    module.context = context
    return module


def _kept(text: str) -> str:
    """A file with `text`, which libtriton has refused: its diagnostic names lines."""
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", prefix="triton-dist-", delete=False) as file:
        file.write(text)
    return file.name


def on_load(module: Any, function: Any, name: str, metadata_group: dict[str, str], hash: str) -> None:
    """Triton's hook: device code was loaded and not launched yet."""
    del function, hash
    if platform.current().mode == "hardware":
        backends.active().on_kernel_load(module, name, metadata_group)


def on_unload(module: Any, function: Any, name: str, metadata_group: dict[str, str], hash: str) -> None:
    """Triton's hook (from 3.8 on): device code is about to be unloaded."""
    del function, name, metadata_group, hash
    if platform.current().mode == "hardware":
        backends.active().on_kernel_unload(module)


# The cache


@functools.cache
def _key() -> tuple[str, str]:
    """What decides how carriers are lowered: our own code, the choice of back end, and the vendor's library."""
    chosen = platform.current()
    text = "-".join(["triton_dist", __version__, _code(), chosen.key, backends.get(chosen.backend).compile_key()])
    return text, hashlib.sha256(text.encode()).hexdigest()


def _key_of_all() -> tuple[str, str]:
    pairs = [_key(), *(pair for hook in _earlier if (pair := hook()) is not None)]
    return "".join(key for key, _ in pairs), "".join(value for _, value in pairs)


@functools.cache
def _code() -> str:
    """A hash of the sources that lower a kernel: an edit must not find what was compiled before it."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    # The front end too: Triton's key of a kernel has no builtins in it.
    for folder in ("ir", "language", "compiler", "backends"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _asks_for_key() -> bool:
    """Whether this Triton calls the hook for its part of the cache key."""
    import triton

    major, minor = triton.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (3, 7)


def _extend_compiler_hashes() -> None:
    from triton.backends import backends as of_triton

    for name in _TRITON_NAMES.values():
        if name in of_triton:
            compiler = of_triton[name].compiler
            setattr(compiler, "hash", _extended(compiler.hash))  # noqa: B010


def _extended(hash: Callable[[Any], str]) -> Callable[[Any], str]:
    @functools.wraps(hash)
    def extended(self: Any) -> str:
        return f"{hash(self)}-{_key()[0]}"

    return extended
