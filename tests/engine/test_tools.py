# SPDX-License-Identifier: MIT
"""Triton's own tools on the host engine: autotuner, heuristics, timing, warmup, stages, cache, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from triton_dist import errors, knobs
from triton_dist.backends.cpu.native import launch


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


tuned = triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256}, num_warps=8)], key=["n"])(
    add
)
chosen = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})(add)


def inputs(n: int = 1000) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(n), torch.randn(n), torch.zeros(n)


def test_autotune() -> None:
    x, y, out = inputs()
    tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, out, 1000)
    assert torch.equal(out, x + y)
    assert tuned.best_config.kwargs["BLOCK"] in (64, 256)


@triton.jit
def add_up(x, total, n, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets) if WHOLE else tl.load(x + offsets, mask=offsets < n)
    tl.store(x + offsets, values + 1, mask=offsets < n)
    tl.atomic_add(total + offsets, values, mask=offsets < n)


def _tuner(**more: Any) -> Any:
    configs = [triton.Config({"BLOCK": size}, num_stages=size // 32) for size in (32, 64, 128)]
    of = triton.heuristics({"WHOLE": lambda args: args["n"] % args["BLOCK"] == 0})(add_up)
    return triton.autotune(configs=configs, key=["n"], **more)(of)


def test_what_the_autotuner_tries_leaves_no_traces(capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(triton.knobs.autotuning, "print", True)
    kernel = _tuner(reset_to_zero=["total"], restore_value=["x"])
    x, total = torch.arange(1000.0), torch.zeros(1000)
    kernel[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, total, 1000)
    assert torch.equal(total, torch.arange(1000.0))
    assert torch.equal(x, torch.arange(1000.0) + 1)
    printed = capfd.readouterr().out
    assert "Triton autotuning for function add_up" in printed
    assert "best config selected: BLOCK: " in printed


def test_the_autotuner_prunes_and_calls_hooks() -> None:
    called: list[int] = []
    prune = {"early_config_prune": lambda configs, arguments, **_: configs[1:2]}
    kernel = _tuner(prune_configs_by=prune, reset_to_zero=["total"], restore_value=["x"])
    kernel.configs[1].pre_hook = lambda arguments: called.append(arguments["BLOCK"])
    x, total = torch.arange(100.0), torch.zeros(100)
    kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, total, 100)
    assert set(called) == {64}
    assert torch.equal(total, torch.arange(100.0))


def test_perf_report(tmp_path: Path) -> None:
    def measured(n: int, provider: str) -> float:
        x, y, out = inputs(n)
        return triton.testing.do_bench(lambda: add[(1,)](x, y, out, n, BLOCK=256), warmup=1, rep=1)

    benchmark = triton.testing.Benchmark(
        x_names=["n"], x_vals=[128, 256], line_arg="provider", line_vals=["host"], line_names=["Host"],
        plot_name="adding", args={},
    )  # fmt: skip
    triton.testing.perf_report(benchmark)(measured).run(save_path=str(tmp_path))
    assert (tmp_path / "adding.csv").exists()


def test_heuristics() -> None:
    x, y, out = inputs()
    chosen[(1,)](x, y, out, 1000)
    assert torch.equal(out, x + y)


def test_do_bench() -> None:
    x, y, out = inputs()
    milliseconds = triton.testing.do_bench(lambda: add[(4,)](x, y, out, 1000, BLOCK=256), warmup=2, rep=5)
    assert 0 < milliseconds < 1000


def test_warmup_compiles_and_does_not_run() -> None:
    x, y, out = inputs()
    kernel = add.warmup(x, y, out, 1000, BLOCK=128, grid=(8,))
    assert out.abs().sum() == 0
    assert list(kernel.asm) == ["source", "ttir", "distributed", "llir", "asm", "obj"]
    assert "tt.func" in kernel.asm["ttir"]
    assert "define i32 @" in kernel.asm["llir"]
    assert ".text" in kernel.asm["asm"]


def test_grids() -> None:
    x, y, out = inputs()
    add[(0,)](x, y, out, 1000, BLOCK=256)
    assert out.abs().sum() == 0
    add[(4, 1, 1)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)


@pytest.mark.parametrize("grid", [(2**31,), (1, 2**31), (2**40,), (-1, -1), (2**22, 2**21, 2**21)], ids=str)
def test_a_grid_that_nothing_can_run_is_an_error(grid: tuple[int, ...]) -> None:
    with pytest.raises(errors.BadGrid, match="0 to 2147483647 programs"):
        add[grid](torch.zeros(4), torch.zeros(4), torch.zeros(4), 4, BLOCK=4)


def test_launch_hooks_are_called() -> None:
    calls: list[str] = []

    def enter(metadata: object) -> None:
        calls.append("enter")

    triton.knobs.runtime.launch_enter_hook.add(enter)
    try:
        x, y, out = inputs()
        add[(4,)](x, y, out, 1000, BLOCK=256)
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(enter)
    assert calls == ["enter"]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads(threads: int) -> None:
    with knobs.scope(num_threads=threads):
        assert launch.threads() == threads
        x, y, out = inputs(100_000)
        add[(triton.cdiv(100_000, 64),)](x, y, out, 100_000, BLOCK=64)
    assert torch.equal(out, x + y)


@triton.jit
def which_thread(out):
    # Enough work that no worker takes every program before the others start.
    total = 0.0
    for i in range(200_000):
        total += i * 0.5
    tl.store(out + tl.program_id(0), total)


def test_a_grid_runs_on_that_many_threads() -> None:
    from triton_dist.backends.cpu import trace

    out = torch.zeros(32)
    with knobs.scope(num_threads=3), trace.capture() as events:
        which_thread[(32,)](out)
    assert {e.worker for e in events if e.kind == "program"} <= {0, 1, 2}
    assert len([e for e in events if e.kind == "program"]) == 32


def test_avx2_only() -> None:
    x, y, out = inputs()
    with knobs.scope(simd="avx2"):
        kernel = add[(4,)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)
    assert "zmm" not in kernel.asm["asm"]


def test_another_simd_is_an_error() -> None:
    x, y, out = inputs()
    with knobs.scope(simd="sse9"), pytest.raises(errors.BadKnobValue, match="avx2"):
        add[(4,)](x, y, out, 1000, BLOCK=512)


def test_tensors_elsewhere_are_an_error() -> None:
    x, y, _ = inputs()
    with pytest.raises(errors.WrongDevice, match="meta"):
        add[(4,)](x, y, torch.zeros(1000, device="meta"), 1000, BLOCK=256)


@triton.jit
def gpu_assembly(out):
    value = tl.inline_asm_elementwise("mov.u32 $0, %tid.x;", "=r", [], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out, value)


def test_an_unknown_operation_names_itself_and_the_line() -> None:
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "mov.u32" in text)
    # Simulated CUDA knows some assembly.
    with knobs.scope(backend="cpu"), pytest.raises(errors.UnsupportedOpError) as caught:
        gpu_assembly[(1,)](torch.zeros(1, dtype=torch.int32))
    assert f"test_tools.py:{line}" in str(caught.value)
    assert "tt.elementwise_inline_asm" in str(caught.value)


SECOND = """
    import sys, torch, triton, triton.language as tl

    @triton.jit
    def double(x, out, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.store(out + offsets, tl.load(x + offsets) * 2)

    x, out = torch.randn(64), torch.zeros(64)
    double[(1,)](x, out, BLOCK=64)
    assert torch.equal(out, 2 * x)
    print("llvmlite" in sys.modules, "xdsl" in sys.modules)
"""


def test_a_second_process_runs_no_compiler(tmp_path: Path) -> None:
    script = tmp_path / "double.py"
    script.write_text(textwrap.dedent(SECOND))
    env = os.environ | {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.run(
            [sys.executable, str(script)], env=env, capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert runs == ["True True", "False False"]


def test_many_threads_compile_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def one(block: int) -> None:
        try:
            x, y, out = inputs()
            add[(triton.cdiv(1000, block),)](x, y, out, 1000, BLOCK=block)
            assert torch.equal(out, x + y)
        except BaseException as error:
            failures.append(error)

    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(tmp_path)
        threads = [threading.Thread(target=one, args=(2 ** (3 + i % 4),)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


FORKS = """
    import os, threading, torch, triton
    import triton.language as tl

    @triton.jit
    def ordered(out, FACTOR: tl.constexpr, SIZE: tl.constexpr):
        i = tl.arange(0, SIZE)
        tl.store(out + i, tl.sort((i * FACTOR + 7) % 61))

    def compile(factor):
        out = torch.zeros(64, dtype=torch.int32)
        ordered[(1,)](out, FACTOR=factor, SIZE=64)
        assert out.tolist() == sorted((i * factor + 7) % 61 for i in range(64))

    def others():
        factor = 100
        while not done:
            factor += 1
            compile(factor)

    done = False
    compile(1)
    thread = threading.Thread(target=others)
    thread.start()
    for n in range(8):
        child = os.fork()
        if child == 0:
            compile(n + 2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    done = True
    thread.join()
    print("good")
"""


def test_a_fork_while_a_thread_compiles(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text(textwrap.dedent(FORKS))
    env = os.environ | {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)], env=env, capture_output=True, text=True, timeout=100
    )
    assert ran.stdout.strip() == "good", ran.stderr


def test_a_trace_folder_that_cannot_be_written() -> None:
    x, y, out = inputs()
    with knobs.scope(trace="/proc/nope"), pytest.raises(errors.BadKnobValue, match="a folder that can be written"):
        add[(4,)](x, y, out, 1000, BLOCK=256)


def test_a_trace_is_written_when_the_process_ends(tmp_path: Path) -> None:
    script = tmp_path / "double.py"
    script.write_text(textwrap.dedent(SECOND))
    env = os.environ | {"TRITON_DIST_TRACE": str(tmp_path / "trace")}
    subprocess.run([sys.executable, str(script)], env=env, capture_output=True, check=True)
    assert {p.name for p in (tmp_path / "trace").iterdir()} == {"pe0.json", "pe0.svg"}


def test_a_cache_that_keeps_no_machine_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_STORE_BINARY_ONLY", "1")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # nothing is compiled yet
    with pytest.raises(errors.ContradictoryKnobs, match=r"TRITON_STORE_BINARY_ONLY is set; .* Unset it"):
        triton.jit(add.fn).warmup(*inputs(17), 17, BLOCK=8, grid=(3,))


def test_a_cache_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    script = tmp_path / "double.py"
    script.write_text(textwrap.dedent(SECOND))
    env = os.environ | {"TRITON_CACHE_DIR": str(tmp_path / "file" / "cache")}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "Triton keeps compiled kernels in" in last
    assert last.endswith("Set TRITON_CACHE_DIR to a folder that can be written.")
