# SPDX-License-Identifier: MIT
"""The simulated NPU: every function of the template library, engines, signals, barriers, teams, faults, examples."""

from __future__ import annotations

import ctypes
import importlib.util
import resource
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import knobs, shmem
from triton_dist.backends.ascend import simulated, symbols
from triton_dist.backends.ascend.simulated import library
from triton_dist.backends.ascend.simulated.state import FIXED_ADDRESS, SLOT_BYTES, Npu
from triton_dist.errors import (
    ForeignAddressInKernel,
    OutOfBounds,
    PeOutOfRangeInKernel,
    SimulatedLibraryFault,
    UnsupportedOpError,
    WaitTimeout,
)
from triton_dist.language.extra import language_extra
from triton_dist.language.extra import libshmem_device as lib
from triton_dist.language.extra.ascend import libaclshmem_device as acl
from triton_dist.testing import run_pes

ASYNCHRONOUS = ("SDMA", "UDMA", "ROCE")


@pytest.fixture(autouse=True)
def on_ascend():
    with knobs.scope(backend="ascend", simulate=None, engine=None):
        yield


def npu() -> Npu:
    """This PE's simulated device, made if no kernel has run yet."""
    device = shmem.adapter().device_state  # type: ignore[attr-defined]
    simulated.enter(device)
    found = simulated.npu_of(device)
    assert found is not None
    return found


# The device state


def test_states_lie_at_the_fixed_address() -> None:
    def where(pe: int) -> tuple[int, int, list[int]]:
        state = npu().state
        tables = (state.p2p_device_heap_base, state.rdma_device_heap_base, state.sdma_device_heap_base)
        bases = [(ctypes.c_uint64 * 3).from_address(table)[2 - pe] for table in tables]
        return ctypes.addressof(state), state.mype, [bool(base) for base in bases]

    found = run_pes(where, 3)
    assert [mype for _, mype, _ in found] == [0, 1, 2]
    assert [address for address, _, _ in found] == [FIXED_ADDRESS + pe * SLOT_BYTES for pe in range(3)]
    assert found[0][2] == [True, False, False]


@pytest.mark.parametrize(("engine", "reach"), [("MTE", "100"), ("SDMA", "101"), ("UDMA", "110"), ("ROCE", "010")])
def test_tables_and_topology_follow_the_engine(engine: str, reach: str) -> None:
    def tables(pe: int) -> str:
        state = npu().state
        addresses = (state.p2p_device_heap_base, state.rdma_device_heap_base, state.sdma_device_heap_base)
        return "".join("1" if (ctypes.c_uint64 * 2).from_address(table)[1 - pe] else "0" for table in addresses)

    with knobs.scope(engine=engine):
        assert run_pes(tables, 2) == [reach, reach]


def test_the_library_has_every_function_under_its_link_name() -> None:
    text = library.ir()
    for symbol, template in symbols.templates().items():
        assert template.link_name == f"_mlir_ciface_{symbol}"
        if template.family != "consume_token":  # no code: the engine takes its operand
            assert f"@_mlir_ciface_{symbol} = alias" in text


# Each typed function


TYPES = {
    "half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32, "int8": torch.int8,
    "int16": torch.int16, "int32": torch.int32, "int64": torch.int64, "uint8": torch.uint8,
}  # fmt: skip


@triton_dist.jit
def transfer_kernel(dest, source, back, sig, count: tl.constexpr):
    right = (acl.my_pe() + 1) % acl.n_pes()
    size = count * (dest.dtype.element_ty.primitive_bitwidth // 8)
    acl.putmem(dest, source, size, right)
    acl.putmem_nbi(dest + count, source, size, right)
    acl.quiet()
    acl.putmem_signal(dest + 2 * count, source, size, sig, 1, acl.SIGNAL_ADD, right)
    acl.putmem_signal_nbi(dest + 3 * count, source, size, sig, 1, acl.SIGNAL_ADD, right)
    acl.p(dest + 4 * count, tl.load(source), right)
    acl.barrier_all()
    acl.signal_wait_until(sig, acl.CMP_GE, 2)
    acl.getmem(back, dest, size, right)
    acl.getmem_nbi(back + count, dest + 4 * count, size, right)
    acl.quiet()
    tl.store(back + 2 * count, tl.load(acl.ptr(dest, right)))


@pytest.mark.parametrize("name", TYPES)
def test_typed_transfers(name: str) -> None:
    dtype = TYPES[name]

    def use(pe: int) -> tuple[list, list]:
        dest, sig = shmem.create_tensor((20,), dtype), shmem.create_signals(1, torch.int32)
        source, back = torch.full((4,), pe + 1, dtype=dtype), torch.zeros(12, dtype=dtype)
        transfer_kernel[(1,)](dest, source, back, sig, count=4)
        shmem.barrier_all()
        return dest.tolist(), back.tolist()

    for pe, (dest, back) in enumerate(run_pes(use, 2)):
        left = 2 - pe
        assert dest == [left] * 17 + [0] * 3
        assert back[:5] == [pe + 1] * 5
        assert back[8] == pe + 1


@triton_dist.jit
def until_kernel(cell, out, compare: tl.constexpr, value: tl.constexpr):
    acl.wait_until(cell, compare, value)
    tl.store(out, 1)


HOLDS = {"EQ": (5,), "NE": (4,), "GT": (4,), "GE": (5, 4), "LT": (6,), "LE": (5, 6)}


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float32])
@pytest.mark.parametrize("name", HOLDS)
def test_the_six_comparisons(name: str, dtype: torch.dtype) -> None:
    code = symbols.COMPARISONS[name]

    def use(pe: int) -> None:
        cell, out = shmem.create_tensor((1,), dtype), torch.zeros(1, dtype=torch.int32)
        cell.fill_(5)
        for value in HOLDS[name]:
            until_kernel[(1,)](cell, out, compare=code, value=value)
        fails = next(value for value in (5, 4, 6) if value not in HOLDS[name])
        with knobs.scope(wait_timeout=0.05), pytest.raises(WaitTimeout):
            until_kernel[(1,)](cell, out, compare=code, value=fails)

    run_pes(use, 1)


def test_unsigned_values_compare_unsigned() -> None:
    def use(pe: int) -> None:
        cell, out = shmem.create_tensor((1,), torch.uint8), torch.zeros(1, dtype=torch.int32)
        cell.fill_(200)
        until_kernel[(1,)](cell, out, compare=2, value=100)

    run_pes(use, 1)


# Waiting and signals


@triton_dist.jit
def wait_kernel(slots, out, n):
    token = dl.wait(slots, n, "sys", "acquire", waitValue=7)
    tl.store(out, dl.consume_token(n, token))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_barriers_of_one_wait_are_64_bytes_apart(dtype: torch.dtype) -> None:
    step = 64 // dtype.itemsize

    def use(pe: int) -> int:
        slots, out = shmem.create_tensor((4 * step,), dtype), torch.zeros(1, dtype=torch.int32)
        slots[::step] = 7
        wait_kernel[(1,)](slots, out, 4)
        slots[2 * step] = 0
        with knobs.scope(wait_timeout=0.05), pytest.raises(WaitTimeout, match="expected 7, present value 0"):
            wait_kernel[(1,)](slots, out, 4)
        return int(out)

    assert run_pes(use, 1) == [4]


@triton_dist.jit
def notify_kernel(small, wide, unsigned, peer):
    dl.notify(small, peer, signal=-3, sig_op="set")
    dl.notify(small, peer, signal=10, sig_op="add")
    dl.notify(wide, peer, signal=-1, sig_op="set")
    dl.notify(unsigned, peer, signal=(1 << 64) - 1, sig_op="set")


@pytest.mark.parametrize("engine", ["MTE", "SDMA"])
def test_notify_of_every_type(engine: str) -> None:
    def use(pe: int) -> list[int]:
        kinds = (torch.int32, torch.int64, torch.uint64)
        small, wide, unsigned = (shmem.create_tensor((1,), kind) for kind in kinds)
        notify_kernel[(1,)](small, wide, unsigned, 1 - pe)
        shmem.barrier_all()
        return [int(small), int(wide), int(unsigned.view(torch.int64))]

    with knobs.scope(engine=engine):
        assert run_pes(use, 2) == [[7, -1, -1]] * 2


# Engines


@triton_dist.jit
def nbi_kernel(dest, source, sig, size, QUIET: tl.constexpr):
    right = (lib.my_pe() + 1) % lib.n_pes()
    lib.putmem_nbi(dest, source, size, right)
    if QUIET == 1:
        lib.quiet()
    if QUIET == 2:
        lib.fence()
    lib.signal_op(sig, 1, lib.SIGNAL_SET, right)
    lib.signal_wait_until(sig, lib.CMP_EQ, 1)
    tl.store(dest + 1, tl.load(dest))


def exchange(quiet: int) -> list[float]:
    def use(pe: int) -> float:
        for queue, _ in npu().queues.values():
            queue.idle_ns = 60_000_000_000  # or a slow machine may be late enough for the transfer to be done anyway
        dest, sig = shmem.create_tensor((2,), torch.float32), shmem.create_signals(1, torch.int32)
        nbi_kernel[(1,)](dest, torch.full((1,), pe + 1.0), sig, 4, QUIET=quiet)
        return float(dest[1])

    return run_pes(use, 3)


@pytest.mark.parametrize("quiet", [1, 2], ids=["quiet", "fence"])
@pytest.mark.parametrize("engine", ["MTE", *ASYNCHRONOUS])
def test_a_put_is_complete_after_quiet(engine: str, quiet: int) -> None:
    with knobs.scope(engine=engine):
        assert exchange(quiet) == [3, 1, 2]


@pytest.mark.parametrize("engine", ["SDMA", "UDMA"])
def test_a_kernel_that_forgets_quiet_fails(engine: str) -> None:
    with knobs.scope(engine=engine):
        assert exchange(0) == [0, 0, 0]


@triton_dist.jit
def many_puts_kernel(dest, source, n, peer):
    for i in range(n):
        lib.putmem_nbi(dest + i, source + i, 4, peer)
    lib.quiet()


@pytest.mark.parametrize("engine", ASYNCHRONOUS)
def test_more_puts_than_the_queue_holds_and_from_many_programs(engine: str) -> None:
    def use(pe: int) -> tuple[list[int], int]:
        dest, source = shmem.create_tensor((300,), torch.int32), torch.arange(300, dtype=torch.int32) + pe
        many_puts_kernel[(4,)](dest, source, 300, 1 - pe)
        shmem.barrier_all()
        return dest.tolist(), npu().queues[engine][0].done

    with knobs.scope(engine=engine):
        for pe, (values, done) in enumerate(run_pes(use, 2)):
            assert values == [i + 1 - pe for i in range(300)]
            assert done == 1200


def test_a_transfer_that_nobody_waited_for_is_dropped_at_the_end() -> None:
    @triton_dist.jit
    def forget(dest, source, peer):
        lib.putmem_nbi(dest, source, 4, peer)

    def use(pe: int) -> None:
        dest = shmem.create_tensor((1,), torch.int32)
        forget[(1,)](dest, torch.ones(1, dtype=torch.int32), 1 - pe)

    with knobs.scope(engine="SDMA"):
        for _ in range(3):
            run_pes(use, 2)


@triton_dist.jit
def nbi_barrier_kernel(dest, source, out, peer, VEC: tl.constexpr, TEAM: tl.constexpr):
    lib.putmem_nbi(dest, source, 4, peer)
    if TEAM:
        acl.barrier(0)
    elif VEC:
        lib.barrier_all_vec()
    else:
        lib.barrier_all()
    tl.store(out + tl.program_id(0), tl.load(dest))


@pytest.mark.parametrize(("vec", "team"), [(False, False), (True, False), (False, True)], ids=["all", "vec", "team"])
@pytest.mark.parametrize("engine", ["MTE", *ASYNCHRONOUS])
def test_a_barrier_completes_puts(engine: str, vec: bool, team: bool) -> None:
    def use(pe: int) -> list[float]:
        dest, out = shmem.create_tensor((1,), torch.float32), torch.zeros(3)
        nbi_barrier_kernel[(3,)](dest, torch.full((1,), pe + 1.0), out, (pe + 1) % 2, VEC=vec, TEAM=team)
        return out.tolist()

    with knobs.scope(engine=engine):
        assert run_pes(use, 2) == [[2.0] * 3, [1.0] * 3]


@triton_dist.jit
def put_bytes_kernel(dest, source, size, peer, GET: tl.constexpr):
    if GET:
        lib.getmem(source, dest, size, peer)
    else:
        lib.putmem(dest, source, size, peer)


SIZES = {-4: "-4 .as unsigned, 4294967292.", 1 << 30: "too long", (1 << 32) + 4: "4 GiB or more", -(1 << 40): "4 GiB"}


@pytest.mark.parametrize("engine", ["MTE", *ASYNCHRONOUS])
@pytest.mark.parametrize("get", [False, True], ids=["put", "get"])
@pytest.mark.parametrize("size", SIZES)
def test_a_transfer_past_the_heap_is_an_error(size: int, get: bool, engine: str) -> None:
    """The size is known when the kernel runs only, and counted in 32 bits: neither its sign nor its high bits count."""

    def use(pe: int) -> None:
        dest, source = shmem.create_tensor((16,), torch.float32), torch.ones(16)
        for peer in (pe, 1 - pe):
            with pytest.raises(SimulatedLibraryFault, match=f"{SIZES[size]}.*bytes are left there"):
                put_bytes_kernel[(1,)](dest, source, size, peer, GET=get)
        assert dest.count_nonzero() == 0

    with knobs.scope(engine=engine, heap_size=1 << 20):
        run_pes(use, 2)


@triton_dist.jit
def put_signal_bytes_kernel(dest, source, sig, size, peer):
    acl.putmem_signal(dest, source, size, sig, 1, acl.SIGNAL_SET, peer)


def test_no_signal_for_a_transfer_that_was_refused() -> None:
    def use(pe: int) -> int:
        dest, sig = shmem.create_tensor((16,), torch.float32), shmem.create_signals(1, torch.int32)
        with pytest.raises(SimulatedLibraryFault, match="is too long"):
            put_signal_bytes_kernel[(1,)](dest, torch.ones(16), sig, -4, 1 - pe)
        shmem.barrier_all()
        return int(sig[0])

    assert run_pes(use, 2) == [0, 0]


@pytest.mark.parametrize(("get", "access"), [(False, "read"), (True, "write")])
def test_checked_transfers_stay_in_the_tensors_of_the_launch(get: bool, access: str) -> None:
    def use(pe: int) -> None:
        dest, source = shmem.create_tensor((1024,), torch.float32), torch.ones(16)
        put_bytes_kernel[(1,)](dest, source, 64, 1 - pe, GET=get)
        with pytest.raises(OutOfBounds, match=f"{access} of 128 bytes"):
            put_bytes_kernel[(1,)](dest, source, 128, 1 - pe, GET=get)

    with knobs.scope(check_bounds=True):
        run_pes(use, 2)


@triton_dist.jit
def forget_kernel(dest, source, size, peer):
    lib.putmem_nbi(dest, source, size, peer)


@triton_dist.jit
def quiet_kernel():
    lib.quiet()


def test_the_source_of_a_forgotten_transfer_is_kept() -> None:
    """The agent reads it when it comes to it; by then the tensor's memory could belong to nobody."""

    def use(pe: int) -> tuple[bool, bool, float]:
        dest, source = shmem.create_tensor((1 << 22,), torch.float32), torch.full((1 << 22,), 3.0)
        watch = weakref.ref(source)
        forget_kernel[(1,)](dest, source, 1 << 24, 1 - pe)
        del source
        kept = watch() is not None
        quiet_kernel[(1,)]()
        shmem.barrier_all()
        return kept, watch() is None, float(dest[-1])

    with knobs.scope(engine="SDMA"):
        assert run_pes(use, 2) == [(True, True, 3.0)] * 2


def test_the_agents_end_with_the_pe_whatever_back_end_is_chosen_then() -> None:
    stopped = []

    def use(pe: int) -> None:
        dest = shmem.create_tensor((1,), torch.int32)
        forget_kernel[(1,)](dest, torch.ones(1, dtype=torch.int32), 4, 1 - pe)
        stopped.append(npu().queues["SDMA"][0])
        shmem.barrier_all()
        if pe == 0:
            knobs.backend = "cpu"
        shmem.barrier_all()

    with knobs.scope(engine="SDMA", backend="ascend"):
        run_pes(use, 2)
    assert [(queue.stop, queue.alive) for queue in stopped] == [(1, 0)] * 2


def without_threads() -> None:
    """The part of the next test that runs in a process of its own."""

    def use(pe: int) -> str:
        dest, source = shmem.create_tensor((1,), torch.int32), torch.ones(1, dtype=torch.int32)
        forget_kernel.warmup(dest, source, 4, 1 - pe, grid=(1,))
        npu()
        shmem.barrier_all()
        if pe == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            # Room for what Python needs, not for the stack of a thread.
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (2 << 20), resource.RLIM_INFINITY))
        shmem.barrier_all()
        try:
            forget_kernel[(1,)](dest, source, 4, 1 - pe)
        except SimulatedLibraryFault as error:
            return str(error)
        return "a thread was to be had"

    with knobs.scope(engine="SDMA", backend="ascend"):
        print("\n".join(run_pes(use, 2)))


@pytest.mark.processes
def test_an_engine_without_a_thread_ends_the_kernel_and_nobody_waits_for_it() -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
    code += "from tests.ascend.test_simulated import without_threads; without_threads()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all("gives no thread for the queue of an engine" in line or "was to be had" in line for line in lines)


# Barriers


@triton_dist.jit
def barriers_kernel(cells, out, rounds, VEC: tl.constexpr):
    me, n, program = lib.my_pe(), lib.n_pes(), tl.program_id(0)
    programs = tl.num_programs(0)
    wrong = 0
    for step in range(rounds):
        tl.store(cells + program, step)
        if VEC:
            lib.barrier_all_vec()
        else:
            lib.barrier_all()
        for peer in range(n):
            for other in range(programs):
                seen = tl.load(dl.symm_at(cells, peer) + other, volatile=True)
                wrong += (seen != step).to(tl.int32)
        if VEC:
            lib.barrier_all_vec()
        else:
            lib.barrier_all()
    tl.store(out + program, wrong)
    tl.store(out + programs, me)


@pytest.mark.parametrize("programs", [1, 5, 12])
@pytest.mark.parametrize("vec", [False, True])
def test_no_program_passes_a_barrier_early(programs: int, vec: bool) -> None:
    def use(pe: int) -> list[int]:
        cells, out = shmem.create_tensor((16,), torch.int32), torch.zeros(16, dtype=torch.int32)
        barriers_kernel[(programs,)](cells, out, 20, VEC=vec)
        shmem.barrier_all()  # kernels and the host count the same barriers
        barriers_kernel[(programs,)](cells, out, 3, VEC=vec)
        return out[:programs].tolist()

    assert run_pes(use, 3) == [[0] * programs] * 3


# Teams


@triton_dist.jit
def team_kernel(cells, out, team):
    me = acl.team_my_pe(team)
    if me >= 0:
        tl.store(cells, me + 10)
        acl.barrier(team)
        total = 0
        for peer in range(acl.team_n_pes(team)):
            total += tl.load(dl.symm_at(cells, acl.team_translate_pe(team, peer, 0)))
        acl.barrier_vec(team)
        tl.store(out, total)
    tl.store(out + 1, acl.team_translate_pe(0, 3, team))
    tl.store(out + 2, acl.team_n_pes(team))


def test_a_team_of_odd_pes() -> None:
    def use(pe: int) -> list[int]:
        slots = shmem.create_tensor((8 * 64,), torch.uint8)
        npu().add_team(5, [1, 3], slots.data_ptr())
        cells, out = shmem.create_tensor((1,), torch.int32), torch.zeros(3, dtype=torch.int32)
        team_kernel[(1,)](cells, out, 5)
        return out.tolist()

    assert run_pes(use, 4) == [[0, 1, 2], [21, 1, 2], [0, 1, 2], [21, 1, 2]]


# What would be undefined or silent on the device


@triton_dist.jit
def symm_at_kernel(ptr, peer):
    tl.store(dl.symm_at(ptr, peer), 1)


@triton_dist.jit
def bad_team_kernel():
    acl.barrier(7)


@triton_dist.jit
def bad_op_kernel(sig, op):
    acl.signal_op(sig, 1, op, 0)


@triton_dist.jit
def bad_compare_kernel(sig, compare):
    acl.signal_wait_until(sig, compare, 1)


def test_faults_name_what_is_wrong() -> None:
    def use(pe: int) -> None:
        sig = shmem.create_signals(1, torch.int32)
        with pytest.raises(PeOutOfRangeInKernel, match="no PE 4"):
            symm_at_kernel[(1,)](sig, 4)
        with pytest.raises(ForeignAddressInKernel):
            symm_at_kernel[(1,)](torch.zeros(1, dtype=torch.int32), 1 - pe)
        with pytest.raises(SimulatedLibraryFault, match=r"test_simulated.py:\d+.*aclshmem: there is no team 7"):
            bad_team_kernel[(1,)]()
        with pytest.raises(SimulatedLibraryFault, match="signal operation 9 is none of aclshmem's: 0 sets, 1 adds"):
            bad_op_kernel[(1,)](sig, 9)
        with pytest.raises(SimulatedLibraryFault, match="comparison 6 is none of aclshmem's"):
            bad_compare_kernel[(1,)](sig, 6)

    run_pes(use, 2)


@triton_dist.jit
def one_program_kernel():
    if tl.program_id(0) == 0:
        lib.barrier_all()


def test_a_barrier_that_not_all_programs_call_says_so() -> None:
    message = "programs to each other in a barrier, which all of them must call"
    with knobs.scope(wait_timeout=0.2), pytest.raises(WaitTimeout, match=message):
        run_pes(lambda pe: one_program_kernel[(2,)](), 2)


def test_the_engines_have_names_in_reports() -> None:
    def use(pe: int) -> str | None:
        queue = npu().queues["UDMA"][0]
        assert simulated.describe(shmem.adapter().device_state, 12345) is None  # type: ignore[attr-defined]
        return npu().describe(ctypes.addressof(queue) + type(queue).head.offset)

    assert run_pes(use, 1) == ["of the UDMA engine that the transfers up to this number are done"]


def test_no_load_reaches_another_node() -> None:
    def use(pe: int) -> None:
        sig = shmem.create_signals(1, torch.int32)
        with pytest.raises(SimulatedLibraryFault, match="no load or store reaches PE"):
            symm_at_kernel[(1,)](sig, 1 - pe)

    with knobs.scope(engine="ROCE"):
        run_pes(use, 2)


@triton_dist.language.builtin
def unknown(_semantic=None):
    return dl.extern_call("l", "", [], {(): ("aclshmem_unknown", tl.int32)}, False, _semantic=_semantic)


@triton_dist.jit
def unknown_kernel(out):
    tl.store(out, unknown())


def raw(symbol: str, operands: tuple[str, ...], result: tl.dtype) -> Any:
    """A call of the library that nobody checked: its operands are those of the kernel below, by name."""

    def function(p, i, f, wide, _semantic=None):
        given = {"p": p, "i": i, "f": f, "wide": wide}
        arguments = [given[name] for name in operands]
        table = [([argument.dtype for argument in arguments], (symbol, result))]
        return dl.extern_call("l", "", arguments, table, False, _semantic=_semantic)

    return triton_dist.language.builtin(function)


WRONG = {
    "result": (raw("aclshmem_my_pe", (), tl.float32), "aclshmem_my_pe gives i32, not f32"),
    "wide_result": (raw("aclshmem_my_pe", (), tl.int64), "gives i32, not i64"),
    "no_result": (raw("aclshmem_quiet", (), tl.int32), "aclshmem_quiet gives nothing, not i32"),
    "count": (raw("aclshmem_float_p", ("p", "f"), tl.void), "takes 3 operands, not 2"),
    "no_pointer": (raw("aclshmem_float_p", ("i", "f", "i"), tl.void), "operand 0 of .* is a pointer, not i32"),
    "value": (raw("aclshmem_float_p", ("p", "i", "i"), tl.void), "operand 1 of aclshmem_float_p is f32, not i32"),
    "wide": (raw("aclshmem_float_p", ("p", "f", "wide"), tl.void), "operand 2 of aclshmem_float_p is i32, not i64"),
    "signal": (raw("aclshmemx_signal_op", ("p", "i", "i", "i"), tl.void), "a pointer to i32, not !tt.ptr<f32>"),
    "token": (raw("aclshmem_consume_token_int8", ("f", "i"), tl.float32), "operand 0 of .* is i8, not f32"),
    "no_token": (raw("aclshmem_consume_token_float", ("f",), tl.float32), "takes 2 operands, not 1"),
    "ptr": (raw("aclshmem_ptr", ("i", "i"), tl.int32), "takes a pointer, whose type completes its name"),
    "own": (raw("hivm.hir.get_sub_block_idx", (), tl.int32), "takes nothing and gives an i64"),
}


@triton_dist.jit
def raw_kernel(p, i, f, wide, CALL: tl.constexpr):
    CALL(p, i, f, wide)


@pytest.mark.parametrize("name", WRONG)
def test_types_that_the_library_has_not_are_errors_with_the_users_line(name: str) -> None:
    """The front end's own functions are checked there. The device would take the bits for others."""
    call, message = WRONG[name]
    with pytest.raises(UnsupportedOpError, match=rf"test_simulated.py:\d+: .*{message}"):
        raw_kernel[(1,)](torch.zeros(4), 3, 1.5, 1 << 40, CALL=call)


def test_an_unknown_symbol_is_an_error_with_the_users_line() -> None:
    with pytest.raises(Exception, match=r"test_simulated.py:\d+.*no function 'aclshmem_unknown'") as caught:
        unknown_kernel[(1,)](torch.zeros(1, dtype=torch.int32))
    assert isinstance(caught.value.__cause__ or caught.value, UnsupportedOpError)


@triton_dist.jit
def extra_kernel(out):
    tl.store(out, language_extra.sub_vec_id() + 10 * language_extra.sub_vec_num())


def test_a_program_is_one_vector_core() -> None:
    out = torch.zeros(1, dtype=torch.int64)
    extra_kernel[(1,)](out)
    assert out.item() == 10


@triton_dist.jit
def tensor_token_kernel(data, out, sig, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    token = dl.wait(sig, 1, "sys", "acquire", waitValue=0)
    tl.store(out + i, tl.load(dl.consume_token(data + i, token)))


def test_a_token_for_a_tensor_of_pointers() -> None:
    out, data = torch.zeros(64), torch.arange(64.0)
    tensor_token_kernel[(1,)](data, out, torch.zeros(1, dtype=torch.int32), BLOCK=64)
    assert torch.equal(out, data)


# The examples, at every number of PEs


EXAMPLES = Path(__file__).parents[2] / "examples"
ARGUMENTS = {
    "all_gather": (4097, 3),
    "producer_consumer": (23, 700, 4, 2),
    "all_gather_gemm": (65, 33, 40, torch.float32, 2),
    "gemm_all_reduce": (65, 33, 40, torch.float32, 2),
}


@pytest.mark.parametrize("pes", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("engine", ["MTE", "SDMA", "UDMA"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_examples(name: str, engine: str, pes: int) -> None:
    """Their loads and stores need a peer that is reached by them, so not over ROCE."""
    spec = importlib.util.spec_from_file_location(f"ascend_example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with knobs.scope(engine=engine):
        run_pes(lambda: module.check(*ARGUMENTS[name]), pes)
