# SPDX-License-Identifier: MIT
"""NVIDIA's path on the host engine: converted kernels, NVSHMEM's symbols and our PTX templates run there."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

import triton_dist
import triton_dist.language as dl
from triton_dist import knobs, shmem
from triton_dist.backends.cuda import simulate, templates
from triton_dist.errors import BadComparisonInKernel, NullPointerInKernel, OutOfBounds, UnsupportedOpError
from triton_dist.kernels.gemm_reduce_scatter import Tiles
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import (
    __syncthreads,
    atomic_add,
    atomic_cas,
    laneid,
    ld,
    ld_acquire,
    ntid,
    red_release,
    st,
    tid,
)
from triton_dist.testing import run_pes

ROOT = Path(__file__).parents[2]
PES = (1, 2, 3, 4, 8)


@pytest.fixture(autouse=True)
def simulated() -> Iterator[None]:
    with knobs.scope(backend="cuda", simulate=True):
        yield


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = {
    "all_gather": lambda check: check(4097, rounds=4),
    "producer_consumer": lambda check: check(23, 700, 4, calls=3),
    "all_gather_gemm": lambda check: check(65, 70, 33, torch.float32, rounds=3),
    "gemm_all_reduce": lambda check: check(65, 70, 33, torch.float32, rounds=3),
}


@pytest.mark.parametrize("pes", PES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, pes: int) -> None:
    check = load(ROOT / "examples" / f"{name}.py").check
    run_pes(lambda: EXAMPLES[name](check), pes)


@triton_dist.jit
def words_at(words, at, WHICH: tl.constexpr):
    pointer = words + at
    if WHICH == "notify, set":
        dl.notify(pointer, 0, signal=1, sig_op="set", comm_scope="gpu")
    elif WHICH == "notify, add":
        dl.notify(pointer, 0, signal=1, sig_op="add", comm_scope="gpu")
    elif WHICH == "wait":
        dl.wait(pointer, 1, "gpu", "acquire", waitValue=0)
    elif WHICH == "ld":
        ld(pointer, "gpu", "acquire")
    elif WHICH == "st":
        st(pointer, 1, "gpu", "release")
    elif WHICH == "atomic_add":
        atomic_add(pointer, 1, "gpu", "relaxed")
    elif WHICH == "atomic_cas":
        atomic_cas(pointer, 0, 1, "gpu", "relaxed")
    else:
        red_release(pointer, 1, "gpu")


WORDS = ("notify, set", "notify, add", "wait", "ld", "st", "atomic_add", "atomic_cas", "red_release")


@pytest.mark.parametrize("which", WORDS)
def test_words_at_null_and_outside(which: str) -> None:
    """An error, not a crash; outside a tensor with checked bounds."""
    with pytest.raises(NullPointerInKernel, match="the pointer is null"):
        words_at[(1,)](torch.zeros(0, dtype=torch.int64), 0, WHICH=which)
    words = torch.zeros(4, dtype=torch.int64)
    with knobs.scope(check_bounds=True):
        words_at[(1,)](words, 3, WHICH=which)
        with pytest.raises(OutOfBounds, match="of 8 bytes at element 4 of argument 'words', past the end"):
            words_at[(1,)](words, 4, WHICH=which)


@pytest.fixture(scope="module")
def functions() -> ModuleType:
    return load(ROOT / "benchmarks" / "h200" / "functions.py")


@pytest.mark.parametrize("pes", [2, 3])
def test_every_function_of_libshmem_device(functions: ModuleType, pes: int) -> None:
    kernels = functions.load_kernels()

    def run() -> dict[str, int]:
        return {name: functions.check(kernels, name, 3) for name in functions.names()}

    for found in run_pes(run, pes, timeout=100):
        assert len(found) >= 100
        assert not {name: bad for name, bad in found.items() if bad}


@pytest.fixture(scope="module")
def collectives() -> ModuleType:
    return load(ROOT / "benchmarks" / "h200" / "collectives.py")


@pytest.mark.parametrize("pes", [2, 3])
def test_what_is_checked_on_gpus(collectives: ModuleType, pes: int) -> None:
    def run() -> tuple[int, list[str]]:
        told: list[str] = []
        return collectives.check_all(3, told.append), told

    for wrong, told in run_pes(run, pes, timeout=100):
        assert wrong == 0, told
        assert len(told) >= 20


@pytest.fixture(scope="module")
def gemm() -> ModuleType:
    return load(ROOT / "benchmarks" / "h200" / "gemm.py")


@pytest.mark.parametrize("pes", [1, 2, 3])
def test_gemms_in_one_kernel(gemm: ModuleType, pes: int) -> None:
    tiles = Tiles(32, 32, 16, group=4)
    for error in run_pes(lambda: gemm.check(64, 80, 64, torch.float32, 4, tiles), pes):
        assert error < 1e-6


@triton_dist.jit
def typed_collectives(x, y, gathered):
    libshmem_device.broadcast(libshmem_device.TEAM_WORLD, y, x, 5, 1)
    libshmem_device.fcollect_block(libshmem_device.TEAM_WORLD, gathered, x, 5)


DTYPES = [torch.int8, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_typed_collectives_count_elements(dtype: torch.dtype) -> None:
    def run(pe: int) -> tuple[list[float], list[float]]:
        x, y = shmem.create_tensor((6,), dtype), shmem.create_tensor((6,), dtype)
        gathered = shmem.create_tensor((2, 5), dtype)
        x.copy_(torch.arange(6) + 10 * pe)
        typed_collectives[(1,)](x, y, gathered)
        shmem.barrier_all()
        return y.tolist(), gathered.flatten().tolist()

    first = list(range(5))
    second = [10 + n for n in first]
    assert run_pes(run, 2) == [([*second, 0], [*first, *second])] * 2


@triton_dist.jit
def words(x, out):
    st(x, 5, "sys", "release")
    tl.store(out, ld(x, "gpu", "acquire"))
    red_release(x, 2, "gpu")
    tl.store(out + 1, atomic_add(x, 10, "sys", "acq_rel"))
    tl.store(out + 2, atomic_cas(x, 17, 40, "gpu", "relaxed"))
    tl.store(out + 3, ld_acquire(x))
    __syncthreads()
    tl.store(out + 4, tid(0) + 10 * ntid(1) + 100 * laneid())


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_language_extra(dtype: torch.dtype) -> None:
    def run() -> list[int]:
        x, out = torch.zeros(1, dtype=dtype), torch.zeros(5, dtype=dtype)
        words[(1,)](x, out)
        return out.tolist()

    assert run_pes(run, 1) == [[5, 7, 17, 40, 10]]


@triton_dist.jit
def by_threads(flags, n):
    i = tid(0)
    if i < n:
        libshmem_device.signal_op(flags + dl.rank(), 7, libshmem_device.SIGNAL_SET, (dl.rank() + 1) % dl.num_ranks())


def test_code_of_threads(functions: ModuleType) -> None:
    def run(pe: int) -> list[int]:
        flags = shmem.create_signals(3)
        by_threads[(1,)](flags, 1)
        shmem.barrier_all()
        return flags.tolist()

    assert run_pes(run, 3) == [[0, 0, 7], [7, 0, 0], [0, 7, 0]]


@triton_dist.jit
def angles_to_the_right(x, y, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = libdevice.atan2(tl.load(x + offsets), tl.load(x + offsets) + 1.0)
    tl.store(dl.symm_at(y, (dl.rank() + 1) % dl.num_ranks()) + offsets, value)


def test_libdevice_beside_distributed_operations() -> None:
    def run() -> torch.Tensor:
        x, y = torch.arange(64.0), shmem.create_tensor((64,), torch.float32)
        angles_to_the_right[(1,)](x, y, BLOCK=64)
        shmem.barrier_all()
        return y.clone()

    x = torch.arange(64.0)
    for y in run_pes(run, 2):
        torch.testing.assert_close(y, torch.atan2(x, x + 1))


@triton.jit
def foreign_asm(x):
    tl.store(x, tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [3], tl.int32, True, 1))


@triton_dist.jit
def wait_until(signal, comparison, out):
    tl.store(out, libshmem_device.signal_wait_until(signal, comparison, 5))


def test_a_comparison_that_is_known_at_run_time_only() -> None:
    def main() -> None:
        signal, out = shmem.create_signals(1), torch.zeros(1, dtype=torch.int64)
        signal.fill_(5)
        for comparison in (libshmem_device.CMP_EQ, libshmem_device.CMP_GE, libshmem_device.CMP_LE):
            wait_until[(1,)](signal, comparison.value, out.zero_())
            assert out.item() == 5
        with pytest.raises(BadComparisonInKernel, match=r"test_simulated\.py:\d+: comparison 77 is none"):
            wait_until[(1,)](signal, 77, out)

    run_pes(main, 1)


def test_other_asm_says_that_it_cannot_run() -> None:
    def run() -> str:
        message = r"inline assembly for a device cannot run on the host: 'popc\.b32"
        with pytest.raises(UnsupportedOpError, match=message) as caught:
            foreign_asm[(1,)](torch.zeros(1, dtype=torch.int32))
        return str(caught.value)

    assert f"test_simulated.py:{foreign_asm.starting_line_number + 2}" in run_pes(run, 1)[0]


def test_templates_are_all_different_and_all_known() -> None:
    texts = [asm.text for asm in templates.every()]
    # Zero of a register and zero of a token, a release store of one thread: none may be another's text.
    assert len(texts) == len(set(texts))
    assert set(texts) <= set(simulate.symbols())
