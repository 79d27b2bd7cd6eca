# SPDX-License-Identifier: MIT
"""The examples' own checks against torch, at every small number of PEs, with sizes that fit no block."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from triton_dist import shmem
from triton_dist.errors import ArgumentError
from triton_dist.kernels import AllGather, AllGatherGemm, GemmAllReduce, ProducerConsumer
from triton_dist.testing import run_pes

EXAMPLES = Path(__file__).parents[2] / "examples"
PES = (1, 2, 3, 4)
GEMM_SIZES = [(64, 64, 32), (1, 1, 1), (100, 130, 70), (65, 7, 33)]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize("elements", [1, 4097, 30_001])
def test_all_gather(pes: int, elements: int) -> None:
    check = example("all_gather").check
    run_pes(lambda: check(elements, rounds=6), pes)


@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize(("rows", "length", "slots"), [(1, 1, 1), (23, 1500, 1), (29, 100, 4), (3, 2048, 7)])
def test_producer_consumer(pes: int, rows: int, length: int, slots: int) -> None:
    check = example("producer_consumer").check
    run_pes(lambda: check(rows, length, slots, calls=4), pes)


@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize("size", GEMM_SIZES)
def test_all_gather_gemm(pes: int, size: tuple[int, int, int]) -> None:
    check = example("all_gather_gemm").check
    run_pes(lambda: check(*size, torch.float32, rounds=5), pes)


@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize("size", GEMM_SIZES)
def test_gemm_all_reduce(pes: int, size: tuple[int, int, int]) -> None:
    check = example("gemm_all_reduce").check
    run_pes(lambda: check(*size, torch.float32, rounds=5), pes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["all_gather_gemm", "gemm_all_reduce"])
def test_gemm_in_half_precision(name: str, dtype: torch.dtype) -> None:
    check = example(name).check
    run_pes(lambda: check(70, 90, 50, dtype, rounds=2), 3)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 1.0])
@pytest.mark.parametrize("name", ["all_gather_gemm", "gemm_all_reduce"])
def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch, name: str, wrong: float) -> None:
    module = example(name)
    operation = {"all_gather_gemm": AllGatherGemm, "gemm_all_reduce": GemmAllReduce}[name]
    right = operation.__call__
    monkeypatch.setattr(operation, "__call__", lambda op, a, b: right(op, a, b) + wrong * (shmem.my_pe() == 1))
    with pytest.raises(AssertionError, match="PE"):
        run_pes(lambda: module.check(20, 30, 10, torch.float32, rounds=2), 2)


@pytest.mark.parametrize("error", [float("nan"), 1.0])
def test_the_demo_sees_a_wrong_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: float
) -> None:
    demo = example("demo")
    monkeypatch.setattr(demo, "relative_error", lambda *_: error if shmem.my_pe() else 0.0)
    arguments = ["-n", "2", "--size", "20", "30", "10", "--repeats", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["demo.py", *arguments])
    with pytest.raises(SystemExit, match="the result is wrong"):
        demo.main()


def test_the_demo_is_of_the_host_where_there_is_other_hardware(tmp_path: Path) -> None:
    for tool in ("nvidia-smi", "npu-smi"):
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment.pop("TRITON_DIST_BACKEND", None)
    arguments = ["-n", "2", "--size", "20", "30", "10", "--repeats", "1", "--out", str(tmp_path)]
    command = [sys.executable, str(EXAMPLES / "demo.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("pushers", "workers"), [(1, 1), (3, 1), (2, 5)])
def test_any_split_of_programs_gathers_and_multiplies(pushers: int, workers: int) -> None:
    def multiply() -> torch.Tensor:
        a = torch.full((90, 20), 1.0 + shmem.my_pe())
        with AllGatherGemm(90, 20, a.dtype, pushers=pushers, workers=workers, blocks=(32, 32, 16)) as op:
            return op(a, torch.ones(20, 40))

    expected = torch.cat([torch.full((90, 40), 20.0 * (1 + pe)) for pe in range(3)])
    for result in run_pes(multiply, 3):
        torch.testing.assert_close(result, expected, rtol=0, atol=0)


def test_all_reduce_has_the_same_bits_on_all_pes_and_in_all_runs() -> None:
    def reduce() -> torch.Tensor:
        generator = torch.Generator().manual_seed(shmem.my_pe())
        a, b = torch.randn(50, 300, generator=generator), torch.randn(300, 60, generator=generator)
        with GemmAllReduce(50, 60, programs=3) as op:
            return op(a, b)

    first, *others = run_pes(reduce, 4) + run_pes(reduce, 4)
    assert all(torch.equal(first, other) for other in others)


def wrong_calls() -> dict[str, object]:
    return {
        "AllGather: shard is 3 x 4 torch.float32; it must be 5 torch.float32": lambda: (
            AllGather((5,), torch.float32)(torch.zeros(3, 4))
        ),
        "ProducerConsumer: rows is 2 x 4 torch.float32; it must be any x 5 torch.float32": lambda: (
            ProducerConsumer(5, torch.float32)(torch.zeros(2, 4))
        ),
        "AllGatherGemm: b is 6 x 3 torch.float16; it must be 6 x any torch.float32": lambda: (
            AllGatherGemm(4, 6, torch.float32)(torch.zeros(4, 6), torch.zeros(6, 3).half())
        ),
        "GemmAllReduce: a is 3 torch.float32; it must be 4 x any": lambda: (
            GemmAllReduce(4, 6)(torch.zeros(3), torch.zeros(6, 3))
        ),
    }


@pytest.mark.parametrize("message", wrong_calls())
def test_wrong_operands_say_what_is_wrong(message: str) -> None:
    def call() -> str:
        with pytest.raises(ArgumentError) as caught:
            wrong_calls()[message]()  # type: ignore[operator]
        return str(caught.value)

    assert run_pes(call, 1) == [message]


SCRIPTS = {
    "all_gather": ["--elements", "5001", "--rounds", "5"],
    "producer_consumer": ["--rows", "31", "--length", "700"],
    "all_gather_gemm": ["--size", "70", "90", "50"],
    "gemm_all_reduce": ["--size", "70", "90", "50"],
}


def run_script(*command: str) -> str:
    environment = {**os.environ, "TRITON_DIST_WAIT_TIMEOUT": "30"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_with_threads(name: str) -> None:
    assert "torch" in run_script(sys.executable, str(EXAMPLES / f"{name}.py"), "-n", "3", *SCRIPTS[name])


COUNTS = [(name, option) for name, options in SCRIPTS.items() for option in ["-n", *options] if option[0] == "-"]


@pytest.mark.parametrize("number", ["0", "-1", "two"])
@pytest.mark.parametrize(("name", "option"), [*COUNTS, ("demo", "-n"), ("demo", "--repeats"), ("demo", "--size")])
def test_counts_of_nothing_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, option: str, number: str
) -> None:
    """Not that nothing was right."""
    monkeypatch.setattr(sys, "argv", [f"{name}.py", option, number, "1", "1"])
    with pytest.raises(SystemExit) as raised:
        example(name).main()
    assert raised.value.code == 2
    said = capsys.readouterr().err.replace("-n/--pes", "-n")
    assert f"{option}: {number!r} is not a whole number of 1 or more" in said


@pytest.mark.processes
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_with_processes(name: str) -> None:
    launcher = [sys.executable, "-m", "triton_dist.cli", "run", "-n", "3"]
    assert "torch" in run_script(*launcher, str(EXAMPLES / f"{name}.py"), *SCRIPTS[name])


@pytest.mark.processes
def test_script_under_torchrun() -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    name = "all_gather_gemm"
    assert "torch" in run_script(*launcher, str(EXAMPLES / f"{name}.py"), *SCRIPTS[name])
