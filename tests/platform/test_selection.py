# SPDX-License-Identifier: MIT
"""Which back end is chosen: fake smi tools on PATH, overrides, contradictions."""

from __future__ import annotations

import pytest

from triton_dist import knobs, platform
from triton_dist.errors import BadKnobValue, ContradictoryKnobs, SeveralBackends, UnknownBackend
from triton_dist.platform import Selection, current

VENDORS = {"ascend": "npu-smi", "cuda": "nvidia-smi", "hip": "rocm-smi", "maca": "mx-smi"}
PREDICATES = {
    "ascend": platform.is_ascend,
    "cuda": platform.is_cuda,
    "hip": platform.is_hip,
    "maca": platform.is_maca,
}


def test_no_tool_is_the_host(tools):
    tools()
    assert current() == Selection("cpu", "host", "no vendor's tool is on PATH")
    assert not any(predicate() for predicate in PREDICATES.values())


@pytest.mark.parametrize("name", VENDORS)
def test_one_tool_is_its_vendor(tools, name):
    tools(VENDORS[name])
    assert current() == Selection(name, "hardware", f"{VENDORS[name]} is on PATH")
    assert {n for n, predicate in PREDICATES.items() if predicate()} == {name}


def test_a_file_that_cannot_be_run_is_no_tool(tools):
    folder = tools("nvidia-smi")
    (folder / "nvidia-smi").chmod(0o644)
    platform.reset()
    assert current().backend == "cpu"


def test_two_tools_say_how_to_choose(tools):
    tools("nvidia-smi", "npu-smi")
    with pytest.raises(SeveralBackends) as error:
        current()
    assert "npu-smi (ascend), nvidia-smi (cuda)" in str(error.value)
    assert "TRITON_DIST_BACKEND=ascend|cuda|cpu" in str(error.value)


@pytest.mark.parametrize("chosen", [*VENDORS, "cpu"])
def test_override_over_every_machine(tools, monkeypatch, chosen):
    monkeypatch.setenv("TRITON_DIST_BACKEND", chosen)
    for present in [(), *[(tool,) for tool in VENDORS.values()], ("nvidia-smi", "npu-smi")]:
        folder = tools(*present)
        selection = current()
        assert selection.backend == chosen
        wanted = "host" if chosen == "cpu" else "hardware" if VENDORS[chosen] in present else "simulated"
        assert selection.mode == wanted
        assert f"TRITON_DIST_BACKEND={chosen}" in selection.reason
        for tool in present:
            (folder / tool).unlink()


def test_override_without_hardware_says_what_is_missing(tools):
    tools()
    with knobs.scope(backend="hip"):
        assert current().reason == "TRITON_DIST_BACKEND=hip; rocm-smi is not on PATH"


def test_simulate_where_the_hardware_is(tools):
    tools("mx-smi")
    with knobs.scope(simulate=True):
        assert current() == Selection("maca", "simulated", "mx-smi is on PATH; TRITON_DIST_SIMULATE=1")
    assert current().mode == "hardware"


@pytest.mark.parametrize("backend", [None, "cpu"])
def test_simulate_the_host_means_nothing(tools, backend):
    tools()
    with (
        knobs.scope(simulate=True, backend=backend),
        pytest.raises(ContradictoryKnobs, match=r"nothing to simulate.*ascend\|cuda\|hip\|maca"),
    ):
        current()


def test_never_simulate_without_hardware(tools):
    tools()
    with (
        knobs.scope(simulate=False, backend="ascend"),
        pytest.raises(ContradictoryKnobs, match="npu-smi is not on PATH"),
    ):
        current()


def test_never_simulate_with_hardware_or_on_the_host(tools):
    tools("npu-smi")
    with knobs.scope(simulate=False):
        assert current().mode == "hardware"
    with knobs.scope(simulate=False, backend="cpu"):
        assert current().mode == "host"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ascent", "(did you mean ascend?)"),
        ("cudda", "(did you mean cuda?)"),
        ("nvidia", "does not exist (NVIDIA is cuda). Back ends"),
        ("amd", "(AMD is hip)"),
        ("metax", "(MetaX is maca)"),
        ("npu", "(Ascend's NPUs are ascend)"),
        ("zebra", "does not exist. Back ends"),
    ],
)
def test_unknown_backend(tools, monkeypatch, name, hint):
    tools()
    monkeypatch.setenv("TRITON_DIST_BACKEND", name)
    with pytest.raises(UnknownBackend) as error:
        current()
    assert hint in str(error.value)
    assert "ascend, cpu, cuda, hip, maca" in str(error.value)


def test_bad_simulate_value(tools, monkeypatch):
    tools()
    monkeypatch.setenv("TRITON_DIST_SIMULATE", "maybe")
    with pytest.raises(BadKnobValue, match="TRITON_DIST_SIMULATE='maybe': expected 1 or 0"):
        current()


def test_the_decision_is_kept_until_reset(tools):
    folder = tools()
    assert current().backend == "cpu"
    (folder / "npu-smi").write_text("#!/bin/sh\n")
    (folder / "npu-smi").chmod(0o755)
    assert current().backend == "cpu"
    platform.reset()
    assert current().backend == "ascend"


def test_key_tells_choices_apart(tools):
    tools("npu-smi")
    keys = {current().key}
    for settings in ({"simulate": True}, {"backend": "cpu"}, {"backend": "cuda"}):
        with knobs.scope(**settings):
            keys.add(current().key)
    assert keys == {"ascend:hardware", "ascend:simulated", "cpu:host", "cuda:simulated"}


def test_probes_show_paths(tools):
    folder = tools("rocm-smi")
    found = {probe.backend: probe.path for probe in platform.probes()}
    assert found == {"ascend": None, "cuda": None, "hip": str(folder / "rocm-smi"), "maca": None}
