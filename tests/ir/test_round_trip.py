# SPDX-License-Identifier: MIT
"""TTIR survives: libtriton prints, we parse and print, libtriton parses that and prints the same text."""

from __future__ import annotations

import pytest

from tests import corpus
from tests.corpus import build
from triton_dist import ir

ENTRIES = corpus.entries()


@pytest.mark.parametrize("optimise", [True, False], ids=["optimised", "plain"])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_same_text(entry: corpus.Entry, optimise: bool):
    # Names of block arguments that libtriton prints without a location are lost by its own parser too, so the
    # text to keep is that of a module it has parsed.
    text = build.normalise(build.ttir(entry, optimise))
    module = ir.parse(text)
    module.verify()
    assert build.normalise(ir.print_module(module)) == text


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_our_text_is_a_fixed_point(entry: corpus.Entry):
    text = ir.print_module(ir.parse(build.ttir(entry)))
    assert ir.print_module(ir.parse(text)) == text


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_without_locations(entry: corpus.Entry):
    module = ir.parse(build.ttir(entry))
    text = ir.print_module(module, debuginfo=False)
    assert "loc(" not in text
    assert build.normalise(text)


def test_corpus_is_large_enough():
    assert len(ENTRIES) >= 60


def test_corpus_has_the_ops_of_the_front_end():
    """What the corpus does not reach is listed here, so that a gap is a decision."""
    from triton_dist.ir.dialects.tt import Tt

    seen = {op.name for entry in ENTRIES for plain in (True, False) for op in ir.parse(build.ttir(entry, plain)).walk()}
    known = {op.name for op in Tt.operations}
    # Gone from Triton 3.9, or new in it; and what only other front ends make.
    versioned = {"tt.make_tensor_ptr", "tt.advance", "tt.atomic_load", "tt.atomic_store", "tt.atomic_poll"}
    unreached = {"tt.approx_divf", "tt.grid_dependency_wait", "tt.grid_dependency_launch_dependents"}
    unreached |= {"tt.map_elementwise.return"} - seen
    assert known - seen - versioned <= unreached
