# SPDX-License-Identifier: MIT
"""Kernels under TRITON_INTERPRET=1: every op and every host function does what its name says, on one PE."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest
import torch
from triton.runtime.errors import InterpreterError

from triton_dist import errors, knobs
from triton_dist.backends.cpu import state
from triton_dist.language.extra.records import records


@pytest.fixture(autouse=True)
def one_pe():
    """A PE of this thread's own, whatever other tests bound."""
    owner = state.LocalState()
    state.bind_thread(owner.state)
    yield owner
    state.bind_thread(None)


def i64(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def i32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


PRODUCE_CONSUME = """\
offsets = tl.arange(0, 4)
if tl.program_id(0) == 0:
    tl.store(dl.symm_at(data, dl.rank()) + offsets, offsets * 10)
    dl.notify(sig, dl.rank(), signal=2, sig_op="add")
else:
    token = dl.wait(sig, 1, "sys", "acquire", waitValue=2)
    ready = dl.consume_token(data, token)
    tl.store(out + offsets, tl.load(ready + offsets) + dl.num_ranks())"""


def test_producer_then_consumer(interpret):
    data, sig, out = i32(0, 0, 0, 0), i64(0), i32(0, 0, 0, 0)
    interpret(PRODUCE_CONSUME, (2,), data=data, sig=sig, out=out)
    assert out.tolist() == [1, 11, 21, 31]
    assert sig.tolist() == [2]


@pytest.mark.parametrize(
    "line",
    [
        'dl.notify(sig, 0, comm_scope="gpu")',
        'dl.notify(sig, 0, sig_op="add")',
        'dl.wait(sig, 1, "sys", "acquire")',
        "lib.signal_wait_until(sig, lib.NVSHMEM_CMP_EQ, 1)",
    ],
)
def test_a_null_pointer(interpret, line):
    with pytest.raises(InterpreterError) as caught:
        interpret(line, sig=torch.zeros(0, dtype=torch.int64))
    assert isinstance(caught.value.__cause__, errors.NullPointerInKernel)


CONSUMED_DESCRIPTOR = """\
token = dl.wait(sig, 1, "sys", "acquire", waitValue=1)
d = dl.consume_token(dl.consume_token(desc, token), token)
total = tl.load_tensor_descriptor(d, [0, 0])
for i in range(1, n):
    total += d.load([i * 4, 0])
d.store([0, 0], total)"""


def test_a_consumed_descriptor(interpret):
    tensor_descriptor = pytest.importorskip("triton.tools.tensor_descriptor")
    data = torch.arange(64.0).view(16, 4)
    described = tensor_descriptor.TensorDescriptor.from_tensor(data, [4, 4])
    expected = data[:12].view(3, 4, 4).sum(0)
    interpret(CONSUMED_DESCRIPTOR, desc=described, sig=i64(1), n=3)
    assert torch.equal(data[:4], expected)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint64])
@pytest.mark.parametrize(("op", "wanted"), [("set", 5), ("add", 12)])
@pytest.mark.parametrize("scope", ["gpu", "intra_node", "inter_node"])
def test_notify(interpret, dtype, op, wanted, scope):
    sig = torch.tensor([7], dtype=dtype)
    interpret(f'dl.notify(sig, 0, 5, "{op}", "{scope}")', sig=sig)
    assert sig.tolist() == [wanted]


def test_notify_of_the_largest_unsigned_value(interpret):
    sig = torch.zeros(1, dtype=torch.uint64)
    interpret("dl.notify(sig, 0, 18446744073709551615)", sig=sig)
    assert sig.tolist() == [2**64 - 1]


def test_wait_on_several_signals(interpret):
    interpret('dl.wait(sig, 3, "sys", "acquire", 4)', sig=i64(4, 4, 4, 0))


def test_wait_for_nothing(interpret):
    interpret('dl.wait(sig, 0, "sys", "acquire", 4)', sig=i64(0))


def test_wait_for_fewer_than_nothing(interpret):
    with pytest.raises(InterpreterError, match=r"dl\.wait on -2 signals: numBarriers must be 0 or more"):
        interpret('dl.wait(sig, tl.load(sig).to(tl.int32), "sys", "acquire", 4)', sig=i64(-2))


def test_portable_signal_arrays(interpret):
    sig, out = torch.zeros(24, dtype=torch.int64), i64(0)
    interpret(
        "for i in tl.static_range(3):\n    dl.notify(dl.signal_slot(sig, i), 0)\n"
        'dl.wait_slots(sig, 3, "sys", "acquire")\ntl.store(out, dl.signal_stride(sig))',
        sig=sig,
        out=out,
    )
    assert sig.nonzero().flatten().tolist() == [0, 8, 16]
    assert out.tolist() == [8]


def test_a_wait_that_cannot_end_raises_at_once(interpret):
    start = time.monotonic()
    with pytest.raises(InterpreterError) as caught:
        interpret('dl.wait(sig + 1, 1, "sys", "acquire", 9)', (3,), sig=i64(9, 4))
    assert time.monotonic() - start < 5
    error = caught.value.__cause__
    assert isinstance(error, errors.InterpretedWait)
    text = str(error)
    assert "PE 0, program (0, 0, 0), " in text
    assert ".py:9: dl.wait on signal 0x" in text
    assert "wants 9 but sees 4, and nothing else runs that could change it" in text
    assert "InterpretedWait" in str(caught.value)


def test_the_program_is_named(interpret):
    body = 'if tl.program_id(0) == 2:\n    dl.wait(sig, 1, "sys", "acquire")'
    with pytest.raises(InterpreterError, match=r"program \(2, 0, 0\)"):
        interpret(body, (4,), sig=i64(0))


def test_another_thread_may_end_a_wait(interpret):
    # The interpreter works on a CPU tensor in place, so that others' writes are seen.
    sig = i64(0)
    thread = threading.Thread(target=lambda: (time.sleep(0.1), sig.fill_(1)))
    thread.start()
    interpret('dl.wait(sig, 1, "sys", "acquire")', sig=sig)
    thread.join()


def test_a_wait_ends_at_the_deadline_where_another_thread_runs(interpret):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with knobs.scope(wait_timeout=0.05), pytest.raises(InterpreterError, match="did not change in 0"):
            interpret('dl.wait(sig, 1, "sys", "acquire")', sig=i64(0))
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('dl.wait(sig, 1, "sis", "acquire")', "UnknownChoice"),
        ("dl.wait(sig + tl.arange(0, 4), 1, 'sys', 'acquire')", "NotAScalarPointer"),
        ("dl.notify(sig, 0, 1.5)", "NotAnInteger"),
        ("dl.rank(3)", "UnknownChoice"),
        ("dl.symm_at(sig, 1)", "InterpretedLimit"),
        ("lib.putmem(sig, sig, 8)", "BadCall"),
        ("lib.signal_op(sig, 1, 3, 0)", "UnknownChoice"),
        ("lib.set_rocshmem_ctx(sig)", "MissingFunction"),
        ("dl.extern_call('l', '', (), [((), ('no_such', tl.int32))], False)", "InterpretedLimit"),
    ],
)
def test_errors_are_those_of_the_compiler(interpret, line, name):
    with pytest.raises(InterpreterError) as caught:
        interpret(line, sig=i64(0))
    assert type(caught.value.__cause__) is getattr(errors, name)


TRANSFERS = [
    name for name, r in records().items() if "cpu" in r.symbols and {o.name for o in r.operands} >= {"dest", "source"}
]


@pytest.mark.parametrize("name", TRANSFERS)
def test_transfers_copy(interpret, name):
    record = records()[name]
    dest, source, sig = i64(0, 0, 0, 0), i64(1, 2, 3, 4), torch.zeros(1, dtype=torch.uint64)
    counted = next(o for o in record.operands if o.kind in ("bytes", "count"))
    values = {
        "team": "0",
        "dest": "dest.to(tl.pointer_type(tl.uint64))" if name == "ulong_put_signal" else "dest",
        "source": "source.to(tl.pointer_type(tl.uint64))" if name == "ulong_put_signal" else "source",
        counted.name: "24" if counted.kind == "bytes" else "3",
        "pe": "0",
        "pe_root": "0",
        "sig_addr": "sig",
        "signal": "6",
        "sig_op": "lib.SIGNAL_ADD.value",
    }
    operands = [o for o in record.operands if not o.optional]
    interpret(f"lib.{name}({', '.join(values[o.name] for o in operands)})", dest=dest, source=source, sig=sig)
    assert dest.tolist() == [1, 2, 3, 0]
    assert sig.tolist() == [6 if any(o.name == "signal" for o in operands) else 0]


@pytest.mark.parametrize(
    "name",
    [name for name, r in records().items() if "cpu" in r.symbols and {o.kind for o in r.operands} <= {"team", "pe"}],
)
def test_control_functions_return_on_one_pe(interpret, name):
    operands = ", ".join("0" for _ in records()[name].operands)
    interpret(f"lib.{name}({operands})", sig=i64(0))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("int_p", torch.int32),
        ("char_p", torch.int8),
        ("short_p", torch.int16),
        ("uint32_p", torch.uint32),
        ("uint64_p", torch.uint64),
        ("int64_p", torch.int64),
        ("float_p", torch.float32),
        ("double_p", torch.float64),
    ],
)
def test_single_stores(interpret, name, dtype):
    dest = torch.zeros(2, dtype=dtype)
    interpret(f"lib.{name}(dest + 1, 77, 0)", dest=dest)
    assert dest.tolist() == [0, 77]


def test_atomics(interpret):
    dest, out = i64(5), i64(0)
    interpret(
        "lib.atomic_add_int64(dest, 3, 0)\ntl.store(out, lib.atomic_fetch_add_int64(dest, 4, 0))", dest=dest, out=out
    )
    assert (dest.tolist(), out.tolist()) == ([12], [8])


@pytest.mark.parametrize(
    ("cmp_", "ends"), [("EQ", "5"), ("NE", "4"), ("GT", "4"), ("LE", "5"), ("LT", "6"), ("GE", "5")]
)
def test_signal_wait_until(interpret, cmp_, ends):
    out = i64(0)
    interpret(f"tl.store(out, lib.signal_wait_until(sig, lib.CMP_{cmp_}.value, {ends}))", sig=i64(5), out=out)
    assert out.tolist() == [5]


@pytest.mark.parametrize(
    ("cmp_", "never"), [("EQ", "6"), ("NE", "5"), ("GT", "5"), ("LE", "4"), ("LT", "5"), ("GE", "6")]
)
def test_signal_wait_until_never(interpret, cmp_, never):
    with pytest.raises(
        InterpreterError, match=rf"libshmem_device.signal_wait_until on signal .* {cmp_.lower()} {never}"
    ):
        interpret(f"lib.signal_wait_until(sig, lib.CMP_{cmp_}.value, {never})", sig=i64(5))


def test_typed_waits(interpret):
    interpret("lib.int64_wait_until_equals(sig, 5)\nlib.int64_wait_until_greater_than(sig, 4)", sig=i64(5))
    with pytest.raises(InterpreterError, match="gt 5"):
        interpret("lib.int64_wait_until_greater_than(sig, 5)", sig=i64(5))


def test_identity(interpret):
    out = i32(9, 9, 9, 9, 9)
    interpret(
        "tl.store(out, lib.my_pe())\ntl.store(out + 1, lib.n_pes())\ntl.store(out + 2, lib.team_my_pe(0))\n"
        "tl.store(out + 3, lib.team_translate_pe(0, 0, 0))\ntl.store(lib.remote_ptr(out, 0) + 4, 7)",
        out=out,
    )
    assert out.tolist() == [0, 1, 0, 0, 7]


def test_language_extra(interpret):
    sig, out = i64(0), i64(0)
    interpret(
        "if language_extra.tid(0) == 0:\n    language_extra.st(sig, 4)\nlanguage_extra.__syncthreads()\n"
        "language_extra.atomic_cas(sig, 4, 6)\nlanguage_extra.red_release(sig, 1)\n"
        "tl.store(out, language_extra.ld(sig))",
        sig=sig,
        out=out,
    )
    assert out.tolist() == [7]


def test_a_peers_heap_is_reached(interpret):
    """PEs that are processes see each other's heaps: here two heaps in one process."""
    heaps = torch.zeros(2, 8, dtype=torch.int64)
    bases = (ctypes.c_uint64 * 2)(heaps[0].data_ptr(), heaps[1].data_ptr())
    me = state.DeviceState(
        my_pe=0, n_pes=2, heap_base=heaps[0].data_ptr(), heap_size=64, peer_base=ctypes.addressof(bases)
    )
    state.bind_thread(me)
    body = "tl.store(dl.symm_at(data, 1) + 2, 5)\ndl.notify(data + 3, 1, 6)\nlib.putmem(data, data + 7, 8, 1)"
    heaps[0, 7] = 3
    interpret(body, data=heaps[0])
    assert heaps[1].tolist() == [3, 0, 5, 6, 0, 0, 0, 0]
    with pytest.raises(InterpreterError, match="PE 2 does not exist, the world has 2"):
        interpret("dl.symm_at(data, 2)", data=heaps[0])
    with pytest.raises(InterpreterError, match="does not lie in the symmetric heap"):
        interpret("dl.symm_at(data, 1)", data=i64(1, 2, 3))
    with pytest.raises(InterpreterError, match="all PEs must be inside it at once"):
        interpret("lib.barrier_all()", data=heaps[0])


SCRIPT = """\
import torch
import triton.language as tl
import triton_dist
import triton_dist.language as dl


@triton_dist.jit
def add(sig, x):
    dl.notify(dl.signal_slot(sig, 1), dl.rank(), x, "add")
    dl.wait_slots(dl.signal_slot(sig, 1), 1, "sys", "acquire", x)


sig = torch.zeros(16, dtype=torch.int64)
add[(1,)](sig, 3)
print(type(add).__name__, sig.nonzero().tolist(), sig.sum().item())
"""


def test_the_environment_variable_is_enough(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "TRITON_DIST_BACKEND": "cpu"}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "InterpretedFunction [[8]] 3\n", done.stderr


def test_a_builtin_of_ones_own_outside_a_kernel():
    import triton_dist.language as dl

    @dl.builtin
    def mine(_semantic=None): ...

    with pytest.raises(errors.OutsideKernel, match=r"test_interpreter\.mine can only be called in a kernel"):
        mine()
