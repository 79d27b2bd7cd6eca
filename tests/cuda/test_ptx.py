# SPDX-License-Identifier: MIT
"""The PTX of converted kernels: widths, pipelining, memory order, scopes, and nothing called that should be inlined."""

from __future__ import annotations

import re

import pytest
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

import triton_dist
import triton_dist.language as dl
from tests.cuda.conftest import Compile, count, instructions, position
from triton_dist.kernels.packets import packet_all_gather_kernel, packet_reduction_kernel
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra.language_extra import tid

CALL = r"^call\b"
WIDE_LOAD, WIDE_STORE = r"ld\.global(\.\w+)*\.v4\.b32", r"st\.global\.v4\.b32"


@triton_dist.jit
def copy_to_peer(x, y, pe, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(dl.symm_at(y, pe) + offsets, tl.load(x + offsets))


@triton_dist.jit
def copy_to_peers_row(x, y, pe, row, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(dl.symm_at(y + row, pe) + offsets, tl.load(x + offsets))


@pytest.mark.parametrize("kernel", [copy_to_peer, copy_to_peers_row])
def test_symm_at_keeps_128_bits(compiled: Compile, kernel: triton.JITFunction) -> None:
    integers = ["i32"] * (len(kernel.arg_names) - 3)
    made = compiled(kernel, "*fp32", "*fp32", *integers, constants={"BLOCK": 1024})
    assert count(made, WIDE_STORE) == 2
    assert count(made, CALL) == 0
    assert "nvshmemi_device_state_d" in made.asm["ptx"]


def test_symm_at_claims_no_more_than_is_known(compiled: Compile) -> None:
    made = compiled(copy_to_peers_row, "*fp32", "*fp32", "i32", "i64", constants={"BLOCK": 1024})
    assert count(made, WIDE_STORE) == 0
    assert count(made, WIDE_LOAD) == 2


@triton_dist.jit
def load_after_wait(x, flags, n, value, out, BLOCK: tl.constexpr, SCOPE: tl.constexpr, SEMANTIC: tl.constexpr):
    token = dl.wait(flags, n, SCOPE, SEMANTIC, waitValue=value)
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(dl.consume_token(x, token) + offsets))


@pytest.mark.parametrize(("signal", "width"), [("*i64", 64), ("*i32", 32)])
@pytest.mark.parametrize("semantic", ["acquire", "relaxed", "acq_rel"])
@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
def test_wait(compiled: Compile, signal: str, width: int, semantic: str, scope: str) -> None:
    constants = {"BLOCK": 1024, "SCOPE": scope, "SEMANTIC": semantic}
    made = compiled(load_after_wait, "*fp32", signal, "i32", signal[1:], "*fp32", constants=constants)
    order = "relaxed" if semantic == "relaxed" else "acquire"
    poll = rf"ld\.{order}\.{scope}\.global\.b{width} seen"
    assert count(made, poll) == 1
    assert count(made, WIDE_LOAD) == 2
    assert position(made, poll) < position(made, WIDE_LOAD)
    assert count(made, r"bar\.sync") == 0


@triton_dist.jit
def load_after_one(x, flags, value, out, BLOCK: tl.constexpr):
    token = dl.wait(flags, 1, "sys", "acquire", waitValue=value)
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(dl.consume_token(x, token) + offsets))


@pytest.mark.parametrize(("signal", "width"), [("*i64", 64), ("*i32", 32)])
def test_one_barrier_is_polled_without_a_loop_over_barriers(compiled: Compile, signal: str, width: int) -> None:
    made = compiled(load_after_one, "*fp32", signal, signal[1:], "*fp32", constants={"BLOCK": 1024})
    poll = rf"POLL: ld\.acquire\.sys\.global\.b{width} seen, \[%rd\d+\]; setp\.ne\.b{width} p, seen, .*; @p bra POLL"
    assert count(made, poll) == 1
    assert count(made, r"EACH|bar\.") == 0
    assert position(made, poll) < position(made, WIDE_LOAD)


def test_more_than_32_barriers_are_all_polled(compiled: Compile) -> None:
    constants = {"BLOCK": 128, "SCOPE": "sys", "SEMANTIC": "acquire"}
    made = compiled(load_after_wait, "*fp32", "*i64", "i32", "i64", "*fp32", constants=constants)
    assert count(made, r"add\.s32 i, i, 32; bra EACH") == 1


@triton_dist.jit
def gemm(a, b, c, flags, K, WAITS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BLOCK):
        left = a
        if WAITS:
            left = dl.consume_token(a, dl.wait(flags + k // BLOCK, 1, "sys", "acquire"))
        x = tl.load(left + rows[:, None] * K + k + inner[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(x, y, total)
        if WAITS == 2:
            dl.notify(flags + k // BLOCK, 0, signal=1, comm_scope="gpu")
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@pytest.mark.parametrize("waits", [1, 2])
def test_a_loop_with_waits_is_pipelined(compiled: Compile, waits: int) -> None:
    """As many asynchronous copies as without, all of 16 bytes, each stage's behind its wait."""
    shape = {"M": 128, "N": 128, "BLOCK": 64}
    types = ("*fp16", "*fp16", "*fp16", "*i64", "i32")
    plain, waiting = (
        compiled(gemm, *types, constants={"WAITS": w, **shape}, num_warps=8, num_stages=3) for w in (0, waits)
    )
    copies = r"cp\.async\.cg\.shared\.global \[.*0x10"
    assert count(plain, copies) > 0
    assert count(waiting, copies) == count(plain, copies)
    assert count(waiting, r"cp\.async\.ca|ld\.global\.b16") == 0
    poll = r"ld\.acquire\.sys\.global\.b64 seen"
    # One for each stage that is started ahead, one in the loop.
    assert count(waiting, poll) == 3
    assert position(waiting, poll) < position(waiting, copies)


@triton_dist.jit
def tell(x, flag, pe, BLOCK: tl.constexpr, OP: tl.constexpr, SCOPE: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, 1.0)
    dl.notify(flag, pe, signal=3, sig_op=OP, comm_scope=SCOPE)


STORES = {"set": r"st\.release\.{}\.global\.b64", "add": r"red\.release\.{}\.global\.add\.u64"}


@pytest.mark.parametrize("op", STORES)
@pytest.mark.parametrize(("scope", "word"), [("gpu", "gpu"), ("intra_node", "sys"), ("inter_node", "sys")])
def test_notify_releases_what_the_cta_wrote(compiled: Compile, op: str, scope: str, word: str) -> None:
    made = compiled(tell, "*fp32", "*i64", "i32", constants={"BLOCK": 1024, "OP": op, "SCOPE": scope})
    signal = STORES[op].format(word)
    assert position(made, WIDE_STORE) < position(made, r"bar\.sync") < position(made, signal)
    # A fence would empty the L1 cache; a release need not.
    assert count(made, r"fence\.") == 0
    assert count(made, signal) == count(made, r"bar\.sync") == 1
    assert count(made, CALL) == 0


@triton_dist.jit
def tell_again_and_again(flag, pe, n, SCOPE: tl.constexpr):
    for number in range(n):
        dl.notify(flag, pe, signal=number, sig_op="set", comm_scope=SCOPE)
        dl.wait(flag, 1, "sys", "acquire", waitValue=number)


@pytest.mark.parametrize("scope", ["intra_node", "inter_node"])
def test_a_peer_is_looked_up_before_the_loop(compiled: Compile, scope: str) -> None:
    made = compiled(tell_again_and_again, "*i64", "i32", "i32", constants={"SCOPE": scope})
    assert count(made, r"ld\.const") >= 1
    lines = instructions(made)
    signal = position(made, STORES["set"].format("sys"))
    # Between the signal and the end of the loop, and from there back to it, nothing asks for the peers' table.
    start = next(i for i, line in enumerate(lines) if "bar.sync" in line)
    assert not [line for line in lines[start:] if line.startswith(("ld.const", "ld.global"))], lines[start:]
    assert start <= signal


def test_notify_may_cross_a_network(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVSHMEM_REMOTE_TRANSPORT")
    made = compiled(tell, "*fp32", "*i64", "i32", constants={"BLOCK": 128, "OP": "set", "SCOPE": "inter_node"})
    # The vendor keeps its network code out of line.
    assert count(made, r"call\.uni _Z23nvshmemi_transfer_fence") == 1
    assert position(made, r"transfer_fence") < position(made, r"transfer_amo")


@triton_dist.jit
def call_thread(x, out):
    libshmem_device.putmem(x, x, 8, 1)
    tl.store(out, libshmem_device.atomic_fetch_add_int64(x, 1, 1))


def test_a_function_of_a_thread_is_called_by_one(compiled: Compile) -> None:
    made = compiled(call_thread, "*i64", "*i64", num_warps=4)
    lines = instructions(made)
    barriers = [i for i, line in enumerate(lines) if line.startswith("bar.sync")]
    put = position(made, r"st\.volatile")
    assert barriers[0] < put < barriers[1]
    assert count(made, r"atom\..*add\.u64") == 1
    # The result goes to all threads through shared memory.
    assert count(made, r"st\.shared\.b64") == 1
    assert count(made, r"ld\.shared\.b64") == 1
    assert count(made, CALL) == 0


@triton_dist.jit
def call_block(x):
    libshmem_device.putmem_block(x, x, 8, 1)


def test_a_function_of_a_block_is_called_by_all(compiled: Compile) -> None:
    made = compiled(call_block, "*i64")
    assert count(made, r"setp") == 0
    assert count(made, r"bar\.sync") == 2
    assert count(made, CALL) == 0


@triton_dist.jit
def call_by_thread(x, n):
    thread = tid(0)
    if thread < n:
        libshmem_device.putmem(x, x, 8, thread)


def test_a_kernel_that_chooses_its_threads_is_left_alone(compiled: Compile) -> None:
    made = compiled(call_by_thread, "*i64", "i32")
    assert count(made, r"bar\.sync") == 0
    assert count(made, r"st\.volatile") == 1


@triton_dist.jit
def narrow(x):
    libshmem_device.char_p(x, -3, 1)


def test_narrow_operands_fit_the_librarys_types(compiled: Compile) -> None:
    assert count(compiled(narrow, "*i8"), r"st\.volatile\.b8") == 1


@triton.jit
def plain(x, y, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.load(x + offsets))


def test_a_plain_kernel_is_untouched(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton import knobs as of_triton

    made = compiled(plain, "*fp32", "*fp32", constants={"BLOCK": 256})
    monkeypatch.setattr(of_triton.runtime, "add_stages_inspection_hook", None)
    stock = compiled(plain, "*fp32", "*fp32", constants={"BLOCK": 256}, num_ctas=1)
    assert made.asm["ttir"] == stock.asm["ttir"]
    assert made.asm["ptx"] == stock.asm["ptx"]


def test_lines_are_the_users(compiled: Compile) -> None:
    made = compiled(call_thread, "*i64", "*i64")
    assert __file__.rsplit("/", 1)[-1] in made.asm["ptx"]
    line = call_thread.starting_line_number + 2
    assert any(text.split()[:3] == [".loc", "1", str(line)] for text in map(str.strip, made.asm["ptx"].splitlines()))


@triton_dist.jit
def peer_sine(x, y, pe, BLOCK: tl.constexpr, WAY: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x + offsets)
    if WAY == "sine":
        value = tl.sin(value.to(tl.float64)).to(tl.float32)
    elif WAY == "remainder":
        value = value % 3.5
    elif WAY == "libdevice":
        value = libdevice.atan2(value, value)
    elif WAY == "high product":
        value += tl.umulhi(offsets, offsets + 7)
    elif WAY == "sum":
        value = tl.sum(value, 0) + tl.zeros((BLOCK,), tl.float32)
    tl.store(dl.symm_at(y, pe) + offsets, value)


@pytest.mark.parametrize("way", ["plain", "sum", "sine", "remainder", "libdevice", "high product"])
def test_libdevice_is_linked_only_where_it_may_be_needed(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    from triton._C.libtriton import llvm

    linked: list[str] = []
    link = llvm.link_extern_libs
    monkeypatch.setattr(llvm, "link_extern_libs", lambda module, paths: linked.extend(paths) or link(module, paths))
    made = compiled(peer_sine, "*fp32", "*fp32", "i32", constants={"BLOCK": 128, "WAY": way})
    names = [path.rsplit("/", 1)[-1] for path in linked]
    assert any(name.startswith("triton_dist_device_") for name in names)
    assert ("libdevice.10.bc" in names) == (way not in ("plain", "sum"))
    assert ".extern .func" not in made.asm["ptx"]


@pytest.mark.parametrize("pes", [2, 8])
def test_packets_are_written_and_read_at_once(compiled: Compile, pes: int) -> None:
    """Without a fence, a signal or an acquire: two packets an access, each of 64 bits."""
    types = ["*bf16", "*i64", "*bf16", "*i64", "i32", "i32"]
    gather = compiled(packet_all_gather_kernel, *types, constants={"BLOCK": 512, "PES": pes}, num_warps=4)
    reduce = compiled(
        packet_reduction_kernel, *types,
        constants={"KIND": 1, "ACCUMULATOR": tl.float32, "BLOCK": 512, "PES": pes}, num_warps=4,
    )  # fmt: skip
    for made in (gather, reduce):
        # At first and in the loop, two each; a sum's own part is left out when it runs.
        assert count(made, r"ld\.volatile\.global\.v2\.b64") == 4 * (pes - 1 if made is gather else pes)
        assert count(made, r"st\.global\.v2\.b64") == 2 * (pes - 1)
        assert count(made, r"fence|membar|acquire|release") == 0


@pytest.mark.parametrize("block", [16, 32, 64, 512])
def test_all_warps_have_read_the_number_of_a_call_before_it_changes(compiled: Compile, block: int) -> None:
    """Also where the block that is waited for is one warp's, which needs no barrier to sum it."""
    types = ["*bf16", "*i64", "*bf16", "*i64", "i32", "i32"]
    of_all = {"BLOCK": block, "PES": 2}
    gather = compiled(packet_all_gather_kernel, *types, constants=of_all, num_warps=4)
    reduce = compiled(
        packet_reduction_kernel, *types, constants={"KIND": 1, "ACCUMULATOR": tl.float32, **of_all}, num_warps=4
    )
    for made in (gather, reduce):
        *_, before, last = (line for line in instructions(made) if re.search(r"\b(bar\.sync|ld|st)\b", line))
        assert "bar.sync" in before
        assert "st.global.b64" in last
