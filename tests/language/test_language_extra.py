# SPDX-License-Identifier: MIT
"""language_extra on the host: one thread a program, atomics as Triton has them."""

from __future__ import annotations

import pytest

from triton_dist import errors

EXTRA = "language_extra"


def test_a_program_is_one_thread(lower):
    text = lower(f"if {EXTRA}.tid(0) + {EXTRA}.laneid() == 0:\n    {EXTRA}.__syncthreads()\n    dl.notify(sig, n)")
    assert "distributed.notify" in text
    loop = lower(f"for i in range({EXTRA}.tid(axis=0), n, {EXTRA}.ntid(axis=0)):\n    dl.notify(sig, i)", optimize=True)
    assert "to %arg" in loop
    assert "step %c1_i32" in loop


@pytest.mark.parametrize(("scope", "word"), [("gpu", "gpu"), ("sys", "sys"), ("cta", "cta")])
@pytest.mark.parametrize("order", ["relaxed", "acquire"])
def test_ld(lower, scope, word, order):
    text = lower(f'tl.store(sig, {EXTRA}.ld(sig, scope="{scope}", semantic="{order}"))')
    assert f"tt.atomic_rmw or, {order}, {word}" in text


@pytest.mark.parametrize("order", ["relaxed", "release"])
def test_st(lower, order):
    assert f"tt.atomic_rmw exch, {order}, sys" in lower(f'{EXTRA}.st(sig32, 5, semantic="{order}", scope="sys")')


def test_float_load_and_store_go_through_integers(lower):
    text = lower(f"{EXTRA}.st(data, {EXTRA}.ld(out))")
    assert "tt.atomic_rmw or, relaxed, gpu" in text
    assert "tt.bitcast" in text
    assert "f32) -> f32" not in text.split("tt.atomic_rmw")[1]


def test_ld_polls_in_a_loop(lower):
    text = lower(f'while {EXTRA}.ld_acquire(sig, "sys") != 1:\n    pass', optimize=True)
    body = text.split("scf.while")[1]
    assert "tt.atomic_rmw or, acquire, sys" in body


def test_atomics(lower):
    text = lower(
        f'tl.store(sig, {EXTRA}.atomic_add(sig, 1, "sys", "acq_rel"))\n'
        f'tl.store(sig, {EXTRA}.atomic_cas(sig, 0, 1, scope="sys", semantic="acquire"))\n'
        f'{EXTRA}.red_release(sig, 1, "sys")'
    )
    assert "tt.atomic_rmw add, acq_rel, sys" in text
    assert "tt.atomic_cas acquire, sys" in text
    assert "tt.atomic_rmw add, release, sys" in text


@pytest.mark.parametrize(
    ("call", "name", "text"),
    [
        ("tid(3)", "UnknownChoice", "axis = 3 is unknown. Valid: 0, 1, 2"),
        ("ntid(n)", "NotConstexpr", "axis must be an integer"),
        ("ld(sig, semantic='release')", "UnknownChoice", "semantic = 'release' is unknown.*Valid: relaxed, acquire"),
        ("st(sig, 1, semantic='acquire')", "UnknownChoice", "Valid: relaxed, release"),
        ("ld(sig, scope='device')", "UnknownChoice", "Valid: gpu, cta, sys"),
        ("ld(sig + tl.arange(0, 4))", "NotAScalarPointer", "ptr must be a scalar pointer"),
        ("ld(half)", "UnknownChoice", "32 or 64 bits"),
        ("atomic_add(fixed, 1)", "ReadOnlyPointer", "const"),
        ("atomic_cas(sig, 0, 1, n)", "NotConstexpr", "scope"),
    ],
)
def test_wrong_arguments(reject, call, name, text):
    error, _ = reject(f"{EXTRA}.{call}")
    assert type(error) is getattr(errors, name)
    with pytest.raises(errors.ArgumentError, match=text):
        raise error


def test_names_can_be_imported_one_by_one(kernel_of, ttir):
    before = "from triton_dist.language.extra.language_extra import __syncthreads, tid\n\n\n"
    kernel = kernel_of("if tid(0) == 0:\n    dl.notify(sig, 0)\n__syncthreads()", "sig", before)
    assert "distributed.notify" in ttir(kernel, {"sig": "*i64"})
