# SPDX-License-Identifier: MIT
"""Choosing a module at run time: `ModuleProxy`, and functions that look themselves up in it."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import triton.language as tl
from triton.runtime.jit import JITFunction

from triton_dist import backends, platform
from triton_dist.errors import MissingFunction, NoActiveModule, SeveralActiveModules
from triton_dist.language.builtin import builtin

F = TypeVar("F", bound=Callable[..., Any])
Candidate: TypeAlias = tuple[Callable[[], bool], ModuleType | str]
Nearest: TypeAlias = Callable[[str, str], str | None]

_FIX = "TRITON_DIST_BACKEND names the back end; `triton-dist doctor` shows what was found."


class ModuleProxy:
    """Stands for the one module whose predicate holds.

    Args:
        candidates: `(predicate, module)` pairs; a module may be its import path, and is imported only if it is
            chosen. The predicates are evaluated here, once: exactly one must hold.
        nearest: `nearest(function, backend)` names an alternative to a function that the module lacks.

    Attributes are read from and written to the module. The module's `BACKEND` is the name its errors use.
    """

    def __init__(self, candidates: Sequence[Candidate], nearest: Nearest | None = None) -> None:
        active = [module for predicate, module in candidates if predicate()]
        if not active:
            raise NoActiveModule(modules=", ".join(_name(m) for _, m in candidates) or "(none given)", fix=_FIX)
        if len(active) > 1:
            raise SeveralActiveModules(active=", ".join(map(_name, active)), fix=_FIX)
        module = importlib.import_module(active[0]) if isinstance(active[0], str) else active[0]
        # Past our own __setattr__, which writes to the module.
        self.__dict__.update(_module=module, _nearest=nearest)

    def __getattr__(self, name: str) -> Any:
        module = self._module
        if hasattr(module, name):
            return getattr(module, name)
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise self._missing(name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._module, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._module), "dispatch"})

    def __repr__(self) -> str:
        return f"<ModuleProxy of {_name(self._module)}>"

    def dispatch(self, func: F) -> F:
        """Make `func` the module's function of the same name, looked up at each call. Its body never runs."""
        return _dispatcher(func, lambda: self)

    def _missing(self, name: str) -> MissingFunction:
        module = self._module
        backend = getattr(module, "BACKEND", module.__name__)
        other = self._nearest(name, backend) if self._nearest else None
        hint = f". The nearest it has: {other}" if other else ", nor one like it"
        short = module.__name__.rsplit(".", 1)[-1]
        return MissingFunction(module=short, function=name, backend=backend, hint=hint)


class ActiveModule:
    """The ModuleProxy over the back ends' modules of one sort, made anew when the choice of a back end changes.

    Args:
        attribute: where a `Backend` says which module it is: "device_module" or "extra_module".
    """

    def __init__(self, attribute: str, nearest: Nearest | None = None) -> None:
        self._attribute, self._nearest = attribute, nearest
        self._proxies: dict[str, ModuleProxy] = {}

    def __call__(self) -> ModuleProxy:
        chosen = platform.current().backend
        if chosen not in self._proxies:
            candidates = [self._candidate(name, chosen) for name in backends.names()]
            self._proxies[chosen] = ModuleProxy(candidates, self._nearest)
        return self._proxies[chosen]

    def _candidate(self, name: str, chosen: str) -> Candidate:
        # Only the chosen back end is imported; of the others the name is enough.
        path = getattr(backends.get(name), self._attribute) if name == chosen else name
        return functools.partial(str.__eq__, name, chosen), path

    def dispatch(self, func: F) -> F:
        """Like ModuleProxy.dispatch, in the module of whichever back end is active at the call."""
        return _dispatcher(func, self)


def _dispatcher(func: Any, proxy: Callable[[], ModuleProxy]) -> Any:
    def wrapper(*args: Any, _semantic: Any = None, _generator: Any = None, **kwargs: Any) -> Any:
        target = getattr(proxy(), func.__name__)
        return call(target, args, kwargs, _semantic, _generator)

    functools.update_wrapper(wrapper, func)
    # Or the wrapped function's signature would hide `_semantic` from the code generator.
    wrapper.__dict__.pop("__wrapped__")
    return builtin(wrapper)


def call(target: Any, args: Sequence[Any], kwargs: dict[str, Any], semantic: Any, generator: Any) -> Any:
    """Call a device function from a builtin, whatever it is: a builtin, a jitted function, plain Python."""
    if isinstance(target, JITFunction) and generator is not None:
        return generator.call_JitFunction(target, list(args), kwargs)
    if tl.core.is_builtin(target):
        kwargs = {**kwargs, "_semantic": semantic}
        if "_generator" in inspect.signature(target).parameters:
            kwargs["_generator"] = generator
    return target(*args, **kwargs)


def _name(module: ModuleType | str) -> str:
    return module if isinstance(module, str) else module.__name__
