# SPDX-License-Identifier: MIT
"""The table of libshmem_device functions, and every function on every back end: it emits its call, or a named error."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files

import pytest

from triton_dist import backends, errors, knobs
from triton_dist.language.extra import libshmem_device
from triton_dist.language.extra import records as records_module
from triton_dist.language.extra.operands import TYPES
from triton_dist.language.extra.records import (
    BACKENDS,
    LIBRARIES,
    function_table,
    nearest,
    records,
    support_table,
    supported,
)

I64 = "!tt.ptr<i64>"
NAMES = list(records())
KINDS = {"symmetric*", "local*", "signal*", "signal", "bytes", "count", "pe", "team", "sig_op", "cmp", *TYPES}

# An argument of each kind, from those of the kernels in conftest.py.
ARGUMENT = {
    "symmetric*": "data",
    "local*": "data",
    "signal*": "usig",
    "signal": "5",
    "bytes": "n * 4",
    "count": "n",
    "pe": "n",
    "team": "lib.TEAM_WORLD",
    "sig_op": "lib.SIGNAL_ADD",
    "cmp": "lib.CMP_GE",
    "f32": "x",
    "f32*": "data",
    "f64": "1.5",
    "f64*": "(data.to(tl.pointer_type(tl.float64)))",
    "i8*": "sig8",
    "i16*": "(sig8.to(tl.pointer_type(tl.int16)))",
    "i32*": "sig32",
    "u32*": "sig32",
    "i64*": "sig",
    "u64*": "usig",
}


def call_of(name: str) -> str:
    operands = [o for o in records()[name].operands if not o.optional]
    return f"lib.{name}({', '.join(ARGUMENT.get(o.kind, '3') for o in operands)})"


def test_the_table_is_whole():
    assert len(NAMES) == len(set(NAMES)) == 109
    assert [name for name in NAMES if not records()[name].meaning] == []


def test_how_many_each_library_has():
    counts = {library: sum(library in r.symbols for r in records().values()) for library in LIBRARIES}
    assert counts == {"cpu": 105, "cuda": 103, "hip": 43, "hip_mori": 67, "maca": 28, "ascend": 25}


@pytest.mark.parametrize("name", NAMES)
def test_record_is_well_formed(name):
    record = records()[name]
    assert all(o.kind.removesuffix("*") in KINDS or o.kind in KINDS for o in record.operands)
    assert record.result in {"void", "same", *TYPES}
    assert record.scope in {"thread", "warp", "block"}
    assert record.symbols.get("cpu", f"host_shmem_{name}") == f"host_shmem_{name}"
    # Nothing that reads or writes what others write may be moved.
    assert not (record.pure and record.result == "void")
    assert callable(getattr(libshmem_device, name))
    assert record.signature in getattr(libshmem_device, name).__doc__


@pytest.mark.parametrize("backend", backends.BUILT_IN)
@pytest.mark.parametrize("name", NAMES)
def test_every_function_on_every_backend(lower, reject, name, backend):
    record = records()[name]
    line = call_of(name)
    if backend == "ascend":
        line = line.replace("lib.SIGNAL_ADD", "lib.SIGNAL_SET")  # its 64-bit signals can only be set
    module = import_module(backends.get(backend).device_module)
    with knobs.scope(backend=backend):
        if record.symbol(backend) is None and not hasattr(module, name):
            error, message = reject(line)
            assert isinstance(error, errors.MissingFunction)
            assert f"libshmem_device.{name}: the {backend} back end has no such function" in message
            assert (nearest(name, backend) or "nor one like it") in message
        elif backend == "cpu":
            text = lower(line)
            assert f"symbol = \\22host_shmem_{name}\\22" in text
            assert text.count("distributed.extern_call") == 1
        elif backend in ("cuda", "ascend"):
            # Which symbol: tests/cuda and tests/ascend.
            assert '"distributed"' in lower(line)
        else:
            error, message = reject(line)
            assert isinstance(error, errors.NotInThisVersion)
            assert f"libshmem_device.{name} ({record.symbol(backend)}) of the {backend} back end" in message


@pytest.mark.parametrize(
    ("call", "types"),
    [
        ("putmem_block(data, half, n, 0)", "(!tt.ptr<f32>, !tt.ptr<f16>, i64, i32) -> i32"),
        ("getmem(data, half, big, n)", "(!tt.ptr<f32>, !tt.ptr<f16>, i64, i32) -> i32"),
        ("putmem_nbi(data, data, 4, 0, 3)", "(!tt.ptr<f32>, !tt.ptr<f32>, i64, i32) -> i32"),
        ("putmem_signal(sig, sig, 4, sig, 1, 9, n)", f"({I64}, {I64}, i64, {I64}, i64, i32, i32) -> i32"),
        ("signal_op(usig, n, n, n)", "(!tt.ptr<i64>, i64, i32, i32) -> i32"),
        ("signal_wait_until(sig, 5, 3)", "(!tt.ptr<i64>, i32, i64) -> i64"),
        ("int_p(sig32, big, n)", "(!tt.ptr<i32>, i32, i32) -> i32"),
        ("float_p(data, 3, n)", "(!tt.ptr<f32>, f32, i32) -> i32"),
        ("double_p(sig.to(tl.pointer_type(tl.float64)), x, n)", "(!tt.ptr<f64>, f64, i32) -> i32"),
        ("remote_ptr(half, n)", "(!tt.ptr<f16>, i32) -> !tt.ptr<f16>"),
        ("fcollect(lib.TEAM_WORLD, data, data, n)", "(i32, !tt.ptr<f32>, !tt.ptr<f32>, i64) -> i32"),
        ("broadcastmem(lib.TEAM_NODE, data, half, n, 0)", "(i32, !tt.ptr<f32>, !tt.ptr<f16>, i64, i32) -> i32"),
        ("atomic_fetch_add_uint64(usig, 1, n)", "(!tt.ptr<i64>, i64, i32) -> i64"),
        ("uint32_wait_until_equals(sig32, 4294967295)", "(!tt.ptr<i32>, i32) -> i32"),
        ("barrier_all()", "() -> i32"),
        ("my_pe()", "() -> i32"),
        ("putmem(dest=data, source=data, bytes=4, pe=0)", "(!tt.ptr<f32>, !tt.ptr<f32>, i64, i32) -> i32"),
    ],
)  # fmt: skip
def test_operands_and_result_on_the_host(lower, call, types):
    line = next(line for line in lower(f"y = lib.{call}").splitlines() if "distributed.extern_call" in line)
    assert line.endswith(types)


WRONG = [
    ("putmem(data, data, 4)", "BadCall", "missing .* argument: 'pe'. Call: putmem\\(dest, source, bytes, pe\\)"),
    ("putmem(data, data, 4, 0, 0)", "BadCall", "too many positional"),
    ("putmem(data, data, 4, peer=0)", "BadCall", "peer|pe"),
    ("my_pe(0)", "BadCall", "Call: my_pe\\(\\)"),
    ("putmem(data + tl.arange(0, 4), data, 4, 0)", "NotAScalarPointer", "dest must be a scalar pointer"),
    ("putmem(fixed, data, 4, 0)", "ReadOnlyPointer", "dest points to const"),
    ("putmem(data, x, 4, 0)", "NotAScalarPointer", "source"),
    ("putmem(data, data, -4, 0)", "NotAnInteger", "bytes must be an integer scalar, 0 or more"),
    ("putmem(data, data, x, 0)", "NotAnInteger", "bytes"),
    ("putmem(data, data, 4, big)", "NotAnInteger", "pe must be a PE's number"),
    ("putmem(data, data, 4, -1)", "NotAnInteger", "pe"),
    ("putmem_signal(data, data, 4, data, 1, 9, 0)", "BadSignalType", "sig_addr points to fp32"),
    ("putmem_signal(data, data, 4, sig32, 1 << 40, 9, 0)", "DoesNotFit", "signal = 1099511627776"),
    ("putmem_signal(data, data, 4, sig, 1, 0, 0)", "UnknownChoice", "sig_op = 0 is unknown. Valid: SIGNAL_SET \\(9\\)"),
    ("signal_op(sig, 1, 'add', 0)", "NotAnInteger", "sig_op"),
    ("signal_wait_until(sig, 6, 1)", "UnknownChoice", "cmp_ = 6 is unknown. Valid: CMP_EQ \\(0\\), CMP_NE"),
    ("signal_wait_until(sig, x, 1)", "NotAnInteger", "cmp_"),
    ("int_p(sig, 1, 0)", "WrongPointee", "dest must point to int32, but points to int64"),
    ("float_p(sig32, 1, 0)", "WrongPointee", "dest must point to fp32, but points to int32"),
    ("int_p(sig32, 1 << 31, 0)", "DoesNotFit", "value = 2147483648"),
    ("int_p(sig32, 1.0, 0)", "NotAnInteger", "value must be an integer scalar, got 1.0"),
    ("float_p(data, n, 0)", "NotANumber", "value must be a fp32 scalar, got int32"),
    ("float_p(data, 'x', 0)", "NotANumber", "got 'x'"),
    ("atomic_add_uint64(sig32, 1, 0)", "WrongPointee", "points to int32"),
    ("uint64_wait_until_equals(usig, -1)", "DoesNotFit", "-1 does not fit uint64"),
    ("fcollect(3, data, data, 4)", "UnknownChoice", "team = 3 is unknown. Valid: TEAM_WORLD \\(0\\), TEAM_SHARED"),
    ("fcollect(n, data, data, 4)", "NotConstexpr", "team must be one of the TEAM_... names"),
    ("fcollect(0, data, half, 4)", "WrongPointee", "source must point to fp32, as dest does, but points to fp16"),
    ("broadcast(0, data, half, 4, 0)", "WrongPointee", "source"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name", "text"), WRONG, ids=[case[0] for case in WRONG])
def test_wrong_arguments_on_the_host(reject, call, name, text):
    error, message = reject(f"lib.{call}")
    assert type(error) is getattr(errors, name)
    assert message.splitlines()[-1].startswith(f"libshmem_device.{call.split('(')[0]}: ")
    with pytest.raises(errors.ArgumentError, match=text):
        raise error


def test_purity_reaches_the_carrier(lower):
    text = lower("lib.my_pe()\nlib.remote_ptr(data, 0)\nlib.fence()\nlib.signal_op(sig, 1, 9, 0)", optimize=True)
    assert "my_pe" not in text
    assert "remote_ptr" not in text
    assert text.count('pure = false, symbol = "distributed.extern_call"') == 2


@pytest.mark.parametrize(
    ("name", "backend", "other"),
    [
        ("barrier_all_block", "ascend", "barrier_all"),
        ("putmem_block", "ascend", "putmem"),
        ("putmem_nbi_warp", "ascend", "putmem_nbi"),
        ("putmem", "maca", "putmem_block"),
        ("putmem_blok", "cuda", "putmem_block"),
        ("set_rocshmem_ctx", "cpu", None),
        ("quiet_pe_qp", "cpu", "quiet_pe"),
    ],
)
def test_nearest_alternative(name, backend, other):
    assert nearest(name, backend) == other


@pytest.mark.parametrize(
    ("name", "family", "blocking"),
    [
        ("putmem_signal_nbi_wg", "putmem_signal", False),
        ("putmem_rma_nbi_block", "putmem_rma", False),
        ("int_p", "int_p", True),
    ],
)
def test_family(name, family, blocking):
    assert records()[name].family == family
    assert records()[name].blocking is blocking


def test_hip_takes_either_library():
    assert records()["quiet"].symbol("hip") == "mori_shmem_quiet_thread"
    assert records()["my_pe"].symbol("hip") == "rocshmem_my_pe_wrapper"
    assert set(supported("hip")) > {name for name in NAMES if "hip" in records()[name].symbols}


def test_support_table():
    lines = support_table().splitlines()
    assert len(lines) == 109 + 3
    assert all(line.replace(r"\|", "").count("|") == 8 for line in lines)
    row = next(line for line in lines if line.startswith("| `quiet_pe`"))
    assert row == "| `quiet_pe` | `host_shmem_quiet_pe` |  |  | `mori_shmem_quiet_thread_pe` |  |  |"
    assert "cuda (NVSHMEM)" in lines[0]


def test_function_table():
    lines = function_table().splitlines()
    assert len(lines) == 109 + 2
    assert all(line.replace(r"\|", "").count("|") == 6 for line in lines)
    row = next(line for line in lines if line.startswith("| `quiet_pe(pe)`"))
    assert row == "| `quiet_pe(pe)` | complete own operations to one pe (mori; takes pe) |  | thread | cpu, hip |"
    assert set(BACKENDS) == set(backends.BUILT_IN)


def test_constants_have_nvshmems_values():
    values = {name: getattr(libshmem_device, f"CMP_{name}").value for name in ("EQ", "NE", "GT", "LE", "LT", "GE")}
    assert list(values.values()) == [0, 1, 2, 3, 4, 5]
    assert libshmem_device.NVSHMEM_SIGNAL_SET.value == 9
    assert libshmem_device.SIGNAL_ADD.value == 10


def test_the_stub_for_editors_is_fresh():
    stub = files("triton_dist.language.extra") / "libshmem_device.pyi"
    assert stub.read_text(encoding="utf-8") == records_module.stub()
