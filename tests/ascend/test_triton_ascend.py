# SPDX-License-Identifier: MIT
"""Real kernels through stock triton-ascend 3.2, and on through the vendor's compiler to its last step.

triton-ascend is a Triton of its own, so this needs its own environment: `tox run -e triton-ascend`.
"""

from __future__ import annotations

import pytest
import triton
import triton.backends
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import knobs
from triton_dist.backends.ascend import hook, offline, tools
from triton_dist.errors import TritonAscendRefused, TritonDistError, UnknownTritonAscend, VendorToolFailed
from triton_dist.language.extra import language_extra
from triton_dist.language.extra import libshmem_device as lib

HAS = "ascend" in triton.backends.backends
pytestmark = pytest.mark.skipif(not HAS, reason="triton-ascend is not installed (tox run -e triton-ascend)")


@pytest.fixture(autouse=True)
def on_ascend():
    with knobs.scope(backend="ascend"):
        yield


@triton_dist.jit
def notify_wait_kernel(data, sig, out, n, BLOCK: tl.constexpr):
    me, pes = dl.rank(), dl.num_ranks()
    right = (me + 1) % pes
    i = tl.arange(0, BLOCK)
    for step in range(n):
        x = tl.load(data + i, mask=i < n)
        tl.store(dl.symm_at(data, right) + BLOCK + i, x)
        dl.notify(sig + me * 16, right, signal=step, sig_op="set")
        token = dl.wait(sig + 16 * ((me + pes - 1) % pes), 1, "gpu", "acquire", waitValue=step)
        one = dl.consume_token(data, token)
        many = dl.consume_token(data + BLOCK + i, token)
        tl.store(out + i, tl.load(one + i) + tl.load(many))
    lib.barrier_all()


@triton_dist.jit
def put_get_kernel(dest, source, sig, size):
    right = (lib.my_pe() + 1) % lib.n_pes()
    lib.putmem_nbi(dest, source, size, right)
    lib.quiet()
    lib.signal_op(sig, 1, lib.SIGNAL_ADD, right)
    lib.signal_wait_until(sig, lib.CMP_GE, 1)
    lib.putmem_signal(dest, source, size, sig, 2, lib.SIGNAL_SET, right)
    lib.signal_wait_until(sig, lib.CMP_EQ, 2)
    lib.getmem(source, dest, size, right)
    lib.barrier_all_vec()


def _kernels():
    from triton_dist.kernels import all_gather, all_gather_gemm, gemm_all_reduce, producer_consumer

    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
    queues = {"PRODUCERS": 1, "CONSUMERS": 1, "SLOTS": 2, "BLOCK": 256}
    numbers = dict.fromkeys(("M", "N", "K", "epoch", "count", "chunk", "first", "items", "length", "size", "n"), "i32")
    half = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr", "gathered_ptr"), "*fp16")
    words = dict.fromkeys(("signal_ptr", "ready_ptr", "free_ptr"), "*i64")
    single = dict.fromkeys(("partial_ptr", "shard_ptr", "x_ptr", "y_ptr", "queue_ptr", "data", "out"), "*fp32")
    types = {**numbers, **half, **words, **single, "sig": "*i32", "scale": "fp32", "dest": "*bf16", "source": "*bf16"}
    gathered = {
        **types, "stage_ptr": "*fp32", "out_ptr": "*fp32", "count_ptr": "*i64", "piece": "i32", "pieces": "i32",
    }  # fmt: skip
    whole = {"DIRECT": False, "BLOCK": 256, "PES": 2}
    both = (".cube", ".vector")
    identity = [f"aclshmem_{name}{core}" for name in ("my_pe", "n_pes") for core in both]
    return {
        "notify_wait": (notify_wait_kernel, types, {"BLOCK": 64}, [
            "aclshmem_my_pe", "aclshmem_n_pes", "aclshmem_ptr_float", "aclshmemx_signal_op", "aclshmem_wait_int32",
            "aclshmem_consume_token_float_ptr_1d", "aclshmem_barrier_all",
        ]),
        "put_get": (put_get_kernel, types, {}, [
            "aclshmem_my_pe", "aclshmem_n_pes", "aclshmem_bfloat16_putmem_nbi", "aclshmem_quiet", "aclshmemx_signal_op",
            "aclshmem_signal_wait_until", "aclshmem_bfloat16_putmem_signal", "aclshmem_bfloat16_getmem",
            "aclshmemx_barrier_all_vec",
        ]),
        "all_gather": (all_gather.push_all_gather_kernel, gathered, whole, [
            "aclshmem_my_pe", "aclshmem_ptr_float", "aclshmem_int64_p", "aclshmem_wait_int64",
            "aclshmem_consume_token_float_ptr_1d",
        ]),
        "producer_consumer": (producer_consumer.producer_consumer_kernel, types, queues, [
            "aclshmem_my_pe", "aclshmem_n_pes", "aclshmem_ptr_float", "aclshmem_int64_p", "aclshmem_wait_int64",
            "aclshmem_consume_token_float_ptr_1d",
        ]),
        "all_gather_gemm": (all_gather_gemm.all_gather_gemm_kernel, types, {"PUSHERS": 1, **blocks}, [
            *identity, *(f"aclshmem_ptr_half{core}" for core in both), *(f"aclshmem_wait_int64{core}" for core in both),
            *(f"aclshmem_consume_token_half_ptr_1d{core}" for core in both), "aclshmem_int64_p.vector",
        ]),
        "gemm_all_reduce": (gemm_all_reduce.gemm_all_reduce_kernel, types, blocks, [
            *identity, *(f"aclshmem_ptr_float{core}" for core in both),
            *(f"aclshmem_wait_int64{core}" for core in both),
            "aclshmem_consume_token_float_ptr_1d.vector", "aclshmem_int64_p.vector",
        ]),
    }  # fmt: skip


NAMES = ("notify_wait", "put_get", "all_gather", "producer_consumer", "all_gather_gemm", "gemm_all_reduce")


@pytest.mark.parametrize("name", NAMES)
def test_kernel_compiles_to_the_last_step(name: str) -> None:
    kernel, types, constants, expected = _kernels()[name]
    signature = {argument: types[argument] for argument in kernel.arg_names if argument not in constants}
    dumps = offline.stages(kernel, signature, constants)
    assert "distributed." in dumps["distributed"]
    assert "distributed." not in dumps["hivm"]
    assert "extern_elementwise" not in dumps["linalg"]
    assert "tt." not in dumps["linalg"].replace("tt.tensor_kind", "").replace("tt.divisibility", "")
    if tools.find("bishengir-compile") is None:
        pytest.skip("the package ascendnpu-ir is not installed")
    assert offline.calls(dumps["linalg"]) == {f"_mlir_ciface_{symbol}" for symbol in expected}


@triton_dist.jit
def plain_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def test_a_kernel_without_distributed_ops_passes_untouched() -> None:
    seen = []
    stage = hook.distributed_first(lambda module, metadata: seen.append(module) or "linalg", hook.by_placeholders)
    module = "module {}"
    assert stage(module, {}) == "linalg"
    assert seen == [module]
    dumps = offline.stages(plain_kernel, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 64})
    assert list(dumps) == ["ttir", "linalg"]


def test_the_cache_key_has_our_version() -> None:
    compiler = hook.compiler_class()
    from triton.backends.compiler import GPUTarget

    hook.install()
    assert f"triton_dist-{triton_dist.__version__}" in compiler(GPUTarget("npu", offline.ARCH, 64)).hash()


def test_an_unknown_version_is_an_error_for_distributed_kernels_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "version", lambda: (3, 4))
    stage = hook.distributed_first(lambda module, metadata: "linalg", hook.route())
    assert stage("module {}", {}) == "linalg"
    with pytest.raises(UnknownTritonAscend, match=r"distributed operations have no way through it: known are 3\.2"):
        stage('libname = "distributed"', {})


@triton_dist.jit
def tensor_of_loaded_pointers_kernel(table, sig):
    pointers = tl.load(table + tl.arange(0, 4)).to(tl.pointer_type(tl.float32))
    token = dl.wait(sig, 1, "gpu", "acquire")
    tl.store(dl.consume_token(pointers, token), 1.0)


def test_pointers_without_a_base_are_an_error_with_the_users_line() -> None:
    with pytest.raises(TritonDistError, match=r"test_triton_ascend.py:\d+: .*made of one pointer"):
        offline.stages(tensor_of_loaded_pointers_kernel, {"table": "*i64", "sig": "*i32"})


def test_the_dumps_of_the_docs_are_real(bishengir: None) -> None:
    from tests.ascend import dumps

    text = dumps.PAGE.read_text(encoding="utf-8")
    assert dumps.render(text) == text, "run: python -m tests.ascend.dumps"


@triton_dist.jit
def barrier_kernel(data, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(dl.symm_at(data, dl.rank()) + i))
    lib.barrier_all()


@triton_dist.jit
def cast_kernel(data, out, n, BLOCK: tl.constexpr):
    there = dl.symm_at(data, 1).to(tl.pointer_type(tl.float16))
    here = dl.symm_at(data.to(tl.pointer_type(tl.int8)), 1)
    i = tl.arange(0, BLOCK)
    tl.store(there + i, 1.0)
    tl.store(here + n + i, 2)


@triton_dist.jit
def carried_kernel(data, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    there = dl.symm_at(data, 1)
    for _ in range(n):
        tl.store(there + i, 1.0)
        there += BLOCK
    if n > 3:  # noqa: SIM108
        chosen = dl.symm_at(data, 2)
    else:
        chosen = data
    tl.store(chosen + i, 2.0)


@triton_dist.jit
def odd_types_kernel(data, wide, sig, n, BLOCK: tl.constexpr):
    lib.putmem(wide, wide, n, 1)
    dl.notify(sig, 1, signal=2, sig_op="set")
    rows = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    token = dl.wait(sig, n.to(tl.int32), "sys", "acquire", waitValue=5)
    tl.store(data + rows, tl.load(dl.consume_token(data + rows, token)) + language_extra.sub_vec_id().to(tl.int8))


PROBES = {
    "cast": (cast_kernel, {"data": "*fp32", "out": "*fp32", "n": "i32"}, {"ptr_float", "ptr_int8"}),
    "carried": (carried_kernel, {"data": "*fp32", "out": "*fp32", "n": "i32"}, {"ptr_float"}),
    "odd_types": (
        odd_types_kernel, {"data": "*i8", "wide": "*fp64", "sig": "*u64", "n": "i64"},
        {"int64_putmem", "uint64_p", "wait_int64", "consume_token_int8_ptr_1d"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBES)
def test_pointers_and_types_that_need_care(name: str, bishengir: None) -> None:
    kernel, signature, expected = PROBES[name]
    dumps = offline.stages(kernel, signature, {"BLOCK": 16})
    assert offline.calls(dumps["linalg"]) == {f"_mlir_ciface_aclshmem_{symbol}" for symbol in expected}


@triton_dist.jit
def block_pointer_kernel(data, out, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(dl.symm_at(data, 1), (64, 64), (64, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    tl.store(block, tl.zeros((BLOCK, BLOCK), tl.float32))


def test_a_block_pointer_on_a_peer_is_an_error_with_the_users_line() -> None:
    with pytest.raises(TritonDistError, match=r"test_triton_ascend.py:\d+: .*makes no block pointer"):
        offline.stages(block_pointer_kernel, {"data": "*fp32", "out": "*fp32"}, {"BLOCK": 16})


@triton_dist.jit
def offset_numbers_kernel(table, sig):
    pointers = tl.load(table + tl.arange(0, 4)).to(tl.pointer_type(tl.float32))
    dl.notify(sig, 1)
    tl.store(pointers + 3, 1.0)


def test_what_the_program_refuses_names_its_error() -> None:
    with pytest.raises(TritonAscendRefused, match=r"triton-ascend 3\.2\.0 cannot compile .*: .*(error|Assertion)"):
        offline.stages(offset_numbers_kernel, {"table": "*i64", "sig": "*i32"})


@pytest.mark.parametrize("cores", ["vector", "both", "table"])
def test_cores_without_a_dot(cores: str, bishengir: None) -> None:
    """The table of prefixes mixes cores in such a kernel, and the published compiler crashes on it: hence the option.
    When this fails for "table", the crash is gone."""
    with knobs.scope(dot_free_cores=cores):
        dumps = offline.stages(barrier_kernel, {"data": "*fp32", "out": "*fp32"}, {"BLOCK": 64})
    if cores == "table":
        with pytest.raises(VendorToolFailed, match="status -"):
            offline.calls(dumps["linalg"])
        return
    suffixes = [""] if cores == "vector" else [".cube", ".vector"]
    names = ("my_pe", "ptr_float", "barrier_all")
    expected = {f"_mlir_ciface_aclshmem_{name}{suffix}" for name in names for suffix in suffixes}
    assert offline.calls(dumps["linalg"]) == expected
