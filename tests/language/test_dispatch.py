# SPDX-License-Identifier: MIT
"""ModuleProxy: one active module, attributes both ways, dispatch by name at the call, clear errors."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from triton_dist import backends, knobs
from triton_dist.errors import MissingFunction, NoActiveModule, NotInThisVersion, SeveralActiveModules
from triton_dist.language.extra import language_extra, libshmem_device
from triton_dist.language.extra.dispatch import ModuleProxy


def yes() -> bool:
    return True


def no() -> bool:
    return False


@pytest.fixture
def modules() -> tuple[ModuleType, ModuleType]:
    first, second = ModuleType("vendor.first"), ModuleType("vendor.second")
    first.put = lambda: "first"
    second.put = lambda: "second"
    second.BACKEND = "second vendor"
    return first, second


def test_the_active_one_is_used(modules):
    first, second = modules
    assert ModuleProxy([(yes, first), (no, second)]).put() == "first"
    assert ModuleProxy([(no, first), (yes, second)]).put() == "second"


def test_none_active(modules):
    with pytest.raises(NoActiveModule, match=r"vendor.first, vendor.second.*TRITON_DIST_BACKEND"):
        ModuleProxy([(no, modules[0]), (no, modules[1])])


def test_no_candidates():
    with pytest.raises(NoActiveModule, match="none given"):
        ModuleProxy([])


def test_several_active(modules):
    third = ModuleType("vendor.third")
    with pytest.raises(SeveralActiveModules, match=r"vendor.first, vendor.third all hold"):
        ModuleProxy([(yes, modules[0]), (no, modules[1]), (yes, third)])


def test_predicates_run_once_at_construction(modules):
    calls = []
    proxy = ModuleProxy([(lambda: not calls.append(1), modules[0])])
    assert (proxy.put(), proxy.put(), len(calls)) == ("first", "first", 1)


def test_a_path_is_imported_only_if_chosen(modules, monkeypatch):
    monkeypatch.setitem(sys.modules, "vendor_a", modules[0])
    proxy = ModuleProxy([(yes, "vendor_a"), (no, "no_such_module")])
    assert proxy.put() == "first"
    with pytest.raises(ModuleNotFoundError):
        ModuleProxy([(yes, "no_such_module")])


def test_attributes_go_both_ways(modules):
    proxy = ModuleProxy([(yes, modules[0])])
    proxy.level = 3
    assert modules[0].level == 3
    modules[0].level = 4
    assert proxy.level == 4
    assert {"put", "level", "dispatch"} <= set(dir(proxy))
    del proxy.level
    assert not hasattr(proxy, "level")
    assert "vendor.first" in repr(proxy)


def test_missing_function_names_it_and_the_backend(modules):
    proxy = ModuleProxy([(yes, modules[1])], nearest=lambda name, backend: f"{name}_of_{backend}")
    with pytest.raises(MissingFunction) as error:
        _ = proxy.get
    text = "second.get: the second vendor back end has no such function. The nearest it has: get_of_second vendor"
    assert str(error.value) == text
    assert isinstance(error.value, AttributeError)


def test_missing_function_without_alternative(modules):
    with pytest.raises(MissingFunction, match=r"first.get: the vendor.first back end has no such function, nor one"):
        _ = ModuleProxy([(yes, modules[0])]).get


def test_missing_dunder_is_a_plain_attribute_error(modules):
    with pytest.raises(AttributeError) as error:
        _ = ModuleProxy([(yes, modules[0])]).__wrapped__
    assert not isinstance(error.value, MissingFunction)


def test_dispatch_looks_up_at_the_call(modules):
    proxy = ModuleProxy([(yes, modules[0])])

    @proxy.dispatch
    def put(): ...

    assert put(_semantic=object()) == "first"
    modules[0].put = lambda: "changed"
    assert put(_semantic=object()) == "changed"
    del modules[0].put
    with pytest.raises(MissingFunction, match=r"first\.put"):
        put(_semantic=object())


def test_libshmem_device_follows_the_backend():
    for name in backends.names():
        with knobs.scope(backend=name):
            assert name == libshmem_device.active_module().BACKEND
            assert name == language_extra.active_module().BACKEND


def test_a_function_only_the_backend_has(monkeypatch):
    from triton_dist.language.extra.cpu import libshmem_device as host

    monkeypatch.setattr(host, "special", 5, raising=False)
    assert libshmem_device.special == 5
    with knobs.scope(backend="hip"), pytest.raises(MissingFunction, match=r"special: the hip back end"):
        _ = libshmem_device.special


def test_jitted_device_functions_are_called_too(lower, kernel_of, monkeypatch):
    """A device module may hold kernels' helpers, not only builtins."""
    from triton_dist.language.extra.cpu import libshmem_device as host

    helper = kernel_of("tl.store(p, v)", "p, v")
    monkeypatch.setattr(host, "int_p", helper)
    assert "tt.call" in lower("lib.int_p(sig32, n)")


@pytest.mark.parametrize("name", ["hip", "maca"])
def test_language_extra_of_the_vendors_says_it_is_missing(reject, name):
    with knobs.scope(backend=name):
        error, message = reject("language_extra.ld(sig)")
    assert isinstance(error, NotInThisVersion)
    assert f"language_extra.ld of the {name} back end" in message


def test_language_extra_lacks_a_name(reject):
    _, message = reject("language_extra.atomic_ad(sig, 1)")
    assert "the cpu back end has no such function. The nearest it has: atomic_add" in message
