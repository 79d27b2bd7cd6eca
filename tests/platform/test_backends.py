# SPDX-License-Identifier: MIT
"""The registry of back ends, and what each says of itself."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from triton_dist import backends, knobs, platform, shmem
from triton_dist.backends.base import Backend, Limits
from triton_dist.errors import BackendClash, BrokenBackend, NotInThisVersion, UnknownBackend
from triton_dist.testing import run_pes

ROOT = Path(__file__).parents[2]


class Acme(Backend):
    name = "acme"
    title = "Acme"
    smi = "acme-smi"
    device_module = extra_module = "acme.device"
    conversion_passes = ()
    limits = Limits()

    def adapter(self):
        raise NotImplementedError


class Unfinished(Backend):
    name = "acme"


@pytest.fixture
def installed(monkeypatch):
    """`installed("acme=module:Class", ...)`: other packages' entry points, beside ours."""

    def install(*lines: str) -> None:
        found = [EntryPoint(*line.split("="), backends.GROUP) for line in lines]
        ours = [EntryPoint(name, target, backends.GROUP) for name, target in backends.BUILT_IN.items()]
        monkeypatch.setattr(backends, "entry_points", lambda group: [*ours, *found])
        backends.reset()
        platform.reset()
        monkeypatch.setitem(sys.modules, "acme_plugin", sys.modules[__name__])

    return install


def test_built_in_table_is_that_of_pyproject():
    text = (ROOT / "pyproject.toml").read_text()
    section = text.split('[project.entry-points."triton_dist.backends"]\n')[1].split("\n\n")[0]
    declared = dict(line.replace('"', "").split(" = ") for line in section.splitlines())
    assert declared == backends.BUILT_IN


@pytest.mark.parametrize("name", backends.BUILT_IN)
def test_every_backend_loads_and_agrees_with_the_probe(name):
    backend = backends.get(name)
    assert backend is backends.get(name)
    assert backend.name == name
    assert backend.smi == platform.SMI_TOOLS.get(name)
    assert set(backend.limits.signal_ops) <= backend.limits.wait_dtypes


@pytest.mark.parametrize("name", ["hip", "maca"])
def test_what_is_not_there_yet_says_so(name):
    backend = backends.get(name)
    with pytest.raises(NotInThisVersion, match=f"the runtime adapter of the {name} back end .*TRITON_DIST_BACKEND=cpu"):
        backend.adapter()
    told = rf"cannot run on the {name} back end \({backend.title}\), not even simulated.*TRITON_DIST_BACKEND=cpu"
    with knobs.scope(backend=name):
        # Before a kernel is compiled, so with a short traceback.
        for begin in (backend.pipeline, shmem.init, lambda: run_pes(lambda: None, 1)):
            with pytest.raises(NotInThisVersion, match=told):
                begin()


def test_the_host_has_its_pass():
    assert backends.get("cpu").pipeline() == ("convert-triton-distributed-to-host",)


def test_unknown_name():
    with pytest.raises(UnknownBackend, match=r"'hipp'.*did you mean hip\?.*ascend, cpu, cuda, hip, maca"):
        backends.get("hipp")


def test_active_follows_the_setting():
    for name in backends.names():
        with knobs.scope(backend=name):
            assert backends.active().name == name


def test_another_package_adds_one(installed, tools):
    installed("acme=acme_plugin:Acme")
    assert backends.names() == ["acme", "ascend", "cpu", "cuda", "hip", "maca"]
    tools("acme-smi")
    assert platform.current().backend == "acme"
    assert platform.current().mode == "hardware"
    tools("acme-smi", "npu-smi")
    with pytest.raises(Exception, match="acme-smi"):
        platform.current()


def test_name_clash(installed):
    installed("cpu=acme_plugin:Acme")
    with pytest.raises(BackendClash, match=r"'cpu': triton_dist.backends.cpu:CpuBackend and acme_plugin:Acme"):
        backends.names()


def test_the_same_entry_twice_is_no_clash(installed):
    installed("acme=acme_plugin:Acme", "acme=acme_plugin:Acme")
    assert "acme" in backends.names()


@pytest.mark.parametrize(
    ("target", "detail"),
    [
        ("acme_plugin:Nowhere", "AttributeError"),
        ("no_such_package:Acme", "ModuleNotFoundError"),
        ("acme_plugin:ROOT", "no subclass"),
        ("acme_plugin:Unfinished", "does not define adapter"),
    ],
)
def test_broken_entries(installed, target, detail):
    installed(f"acme={target}")
    with pytest.raises(BrokenBackend, match=detail):
        backends.get("acme")


def test_name_and_class_disagree(installed):
    installed("other=acme_plugin:Acme")
    with pytest.raises(BrokenBackend, match="says its name is 'acme'"):
        backends.get("other")


def test_works_from_a_source_tree(tmp_path):
    """Without installation metadata, the package still knows its own back ends."""
    code = "from triton_dist import backends as b; print(b.names(), b.get('cpu').title)"
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == "['ascend', 'cpu', 'cuda', 'hip', 'maca'] the host", done.stderr
