# SPDX-License-Identifier: MIT
"""The command line: doctor, backends, and what it forwards."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from triton_dist import cli, doctor


@pytest.fixture
def invoke(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *args: CliRunner().invoke(cli.app, list(args))


def by_name(findings):
    return {(f.section, f.name): f for f in findings}


def test_doctor_shows_all_sections(invoke, tools):
    tools()
    result = invoke("doctor")
    for word in ("versions", "python", "llvmlite", "back end", "cpu (the host)", "nvidia-smi", "settings", "cores"):
        assert word in result.stdout
    assert "TRITON_DIST_WAIT_TIMEOUT" in result.stdout
    assert "60.0 (default)" in result.stdout
    assert result.exit_code == 0


def test_doctor_says_why(tools):
    tools("mx-smi")
    found = by_name(doctor.examine())
    assert found["back end", "chosen"].value == "maca (MetaX)"
    assert found["back end", "because"].value == "mx-smi is on PATH"
    assert "not yet how to compile for it" in found["back end", "lowering"].fix
    assert found["probes", "mx-smi"].value.endswith("/mx-smi")


def test_doctor_with_two_vendors_says_how_to_choose(invoke, tools):
    tools("npu-smi", "mx-smi")
    found = by_name(doctor.examine())
    assert "TRITON_DIST_BACKEND=ascend|maca|cpu" in found["back end", "chosen"].fix
    assert invoke("doctor").exit_code == 1


def test_doctor_with_bad_settings(monkeypatch, tools):
    tools()
    monkeypatch.setenv("TRITON_DIST_TRASE", "1")
    monkeypatch.setenv("TRITON_DIST_HEAP_SIZE", "lots")
    found = by_name(doctor.examine())
    assert found["settings", "TRITON_DIST_TRASE"].fix == "unset TRITON_DIST_TRASE (did you mean TRITON_DIST_TRACE?)"
    assert "number of bytes" in found["settings", "TRITON_DIST_HEAP_SIZE"].fix
    assert found["settings", "TRITON_DIST_TRACE"].ok


@pytest.mark.parametrize(
    ("version", "ok"), [("3.6.0", True), ("3.10.1+git12", True), ("3.5.1", False), ("4", True), ("2.9rc1", False)]
)
def test_doctor_compares_versions(monkeypatch, version, ok):
    monkeypatch.setattr(doctor, "version", lambda package: version)
    finding = doctor._package("triton", (3, 6))
    assert finding.ok is ok
    assert finding.fix == ("" if ok else "pip install 'triton>=3.6'")


def test_doctor_names_a_missing_package(monkeypatch):
    finding = doctor._package("no-such-package-at-all", ())
    assert (finding.value, finding.fix) == ("not installed", "pip install 'no-such-package-at-all'")


def test_backends_lists_all(invoke):
    result = invoke("backends")
    for word in ("ascend", "cpu", "the host", "NVIDIA", "convert-triton-distributed-to-host", "not in this version"):
        assert word in result.stdout


@pytest.mark.parametrize(
    ("command", "module"), [("run", "triton_dist.shmem.launcher"), ("opt", "triton_dist.compiler.opt")]
)
def test_forwarding_passes_everything_on(invoke, monkeypatch, command, module):
    seen = []

    def main(arguments):
        seen.append(arguments)
        return 3

    monkeypatch.setitem(sys.modules, module, SimpleNamespace(main=main))
    result = invoke(command, "-n", "4", "--help", "script.py", "--x=1")
    assert seen == [["-n", "4", "--help", "script.py", "--x=1"]]
    assert result.exit_code == 3


def test_unknown_command(invoke):
    assert invoke("frobnicate").exit_code == 2
    assert invoke().exit_code in (0, 2)


def test_our_errors_are_one_line(monkeypatch, capsys):
    monkeypatch.setenv("TRITON_DIST_TRASE", "1")

    def main(arguments):
        from triton_dist import knobs

        knobs.check_environment()

    monkeypatch.setitem(sys.modules, "triton_dist.compiler.opt", SimpleNamespace(main=main))
    monkeypatch.setattr(sys, "argv", ["triton-dist", "opt"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("triton-dist: TRITON_DIST_TRASE is not a setting")
