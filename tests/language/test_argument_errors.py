# SPDX-License-Identifier: MIT
"""Every wrong argument: the class of the error, its text, and a caret under the user's line."""

from __future__ import annotations

import pytest

from triton_dist import errors, knobs

WAIT = 'dl.wait(sig, 1, "sys", "acquire")'
LEGAL_SCOPES, LEGAL_ORDERS = "gpu, cta, sys", "relaxed, acquire, release, acq_rel"

CASES = [
    # A scalar pointer
    ("dl.wait(sig + tl.arange(0, 4), 1, 'sys', 'acquire')", "NotAScalarPointer", "block of pointer<int64>: pass"),
    ("dl.wait(n, 1, 'sys', 'acquire')", "NotAScalarPointer", "barrierPtrs must be a scalar pointer, got int32"),
    ("dl.wait(3, 1, 'sys', 'acquire')", "NotAScalarPointer", "got 3"),
    ("dl.notify(sig + tl.arange(0, 4), 0)", "NotAScalarPointer", "ptr must be a scalar pointer"),
    ("dl.notify(desc, 0)", "NotAScalarPointer", "got a tensor descriptor"),
    ("dl.notify(fixed, 0)", "ReadOnlyPointer", "points to const"),
    ("dl.symm_at(data + tl.arange(0, 8), 0)", "NotAScalarPointer", "block of pointer<fp32>"),
    ("dl.symm_at(tl.zeros((2, 4), tl.float32), 0)", "NotAScalarPointer", "a \\[2, 4\\] block of fp32"),
    ("dl.symm_at(x, 0)", "NotAScalarPointer", "got fp32"),
    ("dl.signal_slot(n, 0)", "NotAScalarPointer", "signals must be"),
    ("dl.signal_stride(x)", "NotAScalarPointer", "dl.signal_stride: ptr"),
    ("dl.wait_slots(data + tl.arange(0, 4), 1, 'sys', 'acquire')", "NotAScalarPointer", "dl.wait_slots: signals"),
    # The type of a signal
    ("dl.wait(data, 1, 'sys', 'acquire')", "BadSignalType", "barrierPtrs points to fp32.* int16, int32, int64"),
    ("dl.wait_slots(half, 1, 'sys', 'acquire')", "BadSignalType", "signals points to fp16"),
    ("dl.notify(data, 0)", "BadSignalType", "fp32, which the cpu back end has no signals of. It has int32"),
    ("dl.notify(sig8, 0)", "BadSignalType", "points to int8"),
    ("dl.signal_slot(data, 0)", "BadSignalType", "points to fp32"),
    # Keywords
    ("dl.wait(sig, 1, 'syz', 'acquire')", "UnknownChoice", f"'syz' .* mean sys\\?\\). Valid: {LEGAL_SCOPES}"),
    ("dl.wait(sig, 1, 'system', 'acquire')", "UnknownChoice", LEGAL_SCOPES),
    ("dl.wait(sig, 1, 'sys', 'aquire')", "UnknownChoice", f"semantic = 'aquire'.*did you mean acquire.*{LEGAL_ORDERS}"),
    ("dl.wait(sig, 1, 'sys', 'seq_cst')", "UnknownChoice", LEGAL_ORDERS),
    ("dl.wait(sig, 1, 3, 'acquire')", "NotConstexpr", f"scope must be one of {LEGAL_SCOPES}, known at"),
    ("dl.wait(sig, 1, 'sys', n)", "NotConstexpr", "semantic must be one of .* known at compile time, got int32"),
    ("dl.wait(sig, 1, 'sys', None)", "NotConstexpr", "got None"),
    ("dl.wait_slots(sig, 1, 'syss', 'acquire')", "UnknownChoice", "dl.wait_slots: scope"),
    ("dl.notify(sig, 0, sig_op='or')", "UnknownChoice", "sig_op = 'or' is unknown. Valid: set, add"),
    ("dl.notify(sig, 0, sig_op=9)", "NotConstexpr", "sig_op must be one of set, add, known at compile time, got 9"),
    ("dl.notify(sig, 0, comm_scope='inter-node')", "UnknownChoice", "did you mean inter_node.*gpu, intra_node"),
    ("dl.notify(sig, 0, comm_scope=x)", "NotConstexpr", "comm_scope"),
    # A rank
    ("dl.symm_at(data, -1)", "NotAnInteger", "rank must be a PE's number, an int32 scalar of 0 or more, got -1"),
    ("dl.symm_at(data, 1 << 31)", "NotAnInteger", "got 2147483648"),
    ("dl.symm_at(data, 1.0)", "NotAnInteger", "got 1.0"),
    ("dl.symm_at(data, True)", "NotAnInteger", "got True"),
    ("dl.symm_at(data, x)", "NotAnInteger", "got fp32"),
    ("dl.symm_at(data, big)", "NotAnInteger", "got int64 \\(use .to\\(tl.int32\\)\\)"),
    ("dl.symm_at(data, tl.arange(0, 4))", "NotAnInteger", "a \\[4\\] block of int32"),
    ("dl.symm_at(data, data)", "NotAnInteger", "pointer<fp32>"),
    ("dl.notify(sig, big)", "NotAnInteger", "dl.notify: rank"),
    ("dl.notify(sig, None)", "NotAnInteger", "got None"),
    # An axis
    ("dl.rank(n)", "NotConstexpr", "axis must be an integer, known at compile time, got int32"),
    ("dl.rank('x')", "NotConstexpr", "got 'x'"),
    ("dl.rank(True)", "NotConstexpr", "got True"),
    ("dl.num_ranks(0.0)", "NotConstexpr", "dl.num_ranks: axis"),
    ("dl.num_ranks(1)", "UnknownChoice", "axis = 1 is unknown. Valid: -1, 0"),
    # How many
    ("dl.wait(sig, -1, 'sys', 'acquire')", "NotAnInteger", "numBarriers must be an integer scalar, 0 or more, got -1"),
    ("dl.wait(sig, 1.0, 'sys', 'acquire')", "NotAnInteger", "got 1.0"),
    ("dl.wait(sig, x, 'sys', 'acquire')", "NotAnInteger", "got fp32"),
    ("dl.wait(sig, tl.arange(0, 2), 'sys', 'acquire')", "NotAnInteger", "block of int32"),
    ("dl.wait(sig, 1 << 31, 'sys', 'acquire')", "NotAnInteger", "got 2147483648"),
    ("dl.wait_slots(sig, -2, 'sys', 'acquire')", "NotAnInteger", "count"),
    ("dl.signal_slot(sig, 1.5)", "NotAnInteger", "index"),
    # A signal's value
    ("dl.wait(sig8, 1, 'sys', 'acquire', 128)", "DoesNotFit", "waitValue = 128 does not fit int8, .*-128 to 127"),
    ("dl.wait(sig32, 1, 'sys', 'acquire', 1 << 31)", "DoesNotFit", "2147483648 does not fit int32"),
    ("dl.wait(usig, 1, 'sys', 'acquire', -1)", "DoesNotFit", "-1 does not fit uint64"),
    ("dl.wait(sig32, 1, 'sys', 'acquire', big)", "DoesNotFit", "int64 does not fit int32, .*with .to\\(tl.int32"),
    ("dl.wait(sig, 1, 'sys', 'acquire', 1.0)", "NotAnInteger", "waitValue must be an integer scalar, got 1.0"),
    ("dl.wait(sig, 1, 'sys', 'acquire', x)", "NotAnInteger", "got fp32"),
    ("dl.wait(sig, 1, 'sys', 'acquire', True)", "NotAnInteger", "got True"),
    ("dl.wait(sig, 1, 'sys', 'acquire', tl.arange(0, 4))", "NotAnInteger", "block"),
    ("dl.notify(sig32, 0, 1 << 31)", "DoesNotFit", "signal = 2147483648 does not fit int32"),
    ("dl.notify(usig, 0, -1)", "DoesNotFit", "0 to 18446744073709551615"),
    ("dl.notify(sig32, 0, big)", "DoesNotFit", "int64 does not fit int32"),
    ("dl.notify(sig, 0, x)", "NotAnInteger", "signal must be an integer scalar, got fp32"),
    ("dl.notify(sig, 0, 'one')", "NotAnInteger", "got 'one'"),
    # A token
    ("dl.consume_token(data, data)", "NotAToken", "what dl.wait returned"),
    ("dl.consume_token(data, 0)", "NotAToken", "got 0"),
    ("dl.consume_token(data, big)", "NotAToken", "got int64"),
    ("dl.consume_token(data, x)", "NotAToken", "got fp32"),
    ("dl.consume_token(data, tl.arange(0, 4))", "NotAToken", "block of int32"),
    ("dl.consume_token(data, None)", "NotAToken", "got None"),
    # An external function
    ("dl.extern_call('l', '', 1, 2, False)", "BadExternCall", "args must be a list, got 1"),
    ("dl.extern_call(n, '', (), 2, False)", "NotConstexpr", "lib_name must be a string, known at compile time"),
    ("dl.extern_call('l', 3, (), 2, False)", "NotConstexpr", "lib_path"),
    ("dl.extern_call('l', '', (), 2, n)", "NotConstexpr", "is_pure must be True or False"),
    ("dl.extern_call('l', '', (1,), 2, False)", "BadExternCall", "must map argument types"),
    ("dl.extern_call('l', '', (desc,), 2, False)", "BadExternCall", "cannot pass a tensor descriptor"),
    ("dl.extern_call('l', '', ('a',), 2, False)", "BadExternCall", "cannot pass 'a'"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "name", "text"), CASES, ids=[case[0] for case in CASES])
def test_wrong_argument(reject, line, name, text):
    error, message = reject(line)
    assert type(error) is getattr(errors, name)
    assert isinstance(error, errors.ArgumentError)
    with pytest.raises(errors.TritonDistError, match=text):
        raise error
    assert str(error) in message
    assert str(error).startswith(line.split("(")[0] + ": ")


def test_the_line_is_that_of_the_kernel(reject):
    _, message = reject("y = n + 1\nif y > 3:\n    dl.notify(sig, 0)\ndl.symm_at(data, y * 1.0)")
    assert "    dl.notify(sig, 0)" in message
    assert message.count("^") == 1


def test_an_error_in_a_device_function(kernel_of, ttir):
    import triton

    inner = "@triton_dist.jit\ndef inner(p):\n    dl.notify(p, 0, sig_op='xor')\n\n\n"
    with pytest.raises(triton.CompilationError) as caught:
        ttir(kernel_of("inner(sig)", "sig", inner), {"sig": "*i64"})
    assert str(caught.value).splitlines()[-2:] == ["    inner(sig)", "    ^"]
    assert "dl.notify(p, 0, sig_op='xor')\n    ^" in str(caught.value.__cause__)
    assert isinstance(caught.value.__cause__.__cause__, errors.UnknownChoice)


# What each back end can do to each signal: the front end rejects the rest.
LIMITS = {
    "cpu": {"int32": "set add", "int64": "set add", "uint64": "set add"},
    "ascend": {"int32": "set add", "int64": "set", "uint64": "set"},
    "cuda": {"int64": "set add", "uint64": "set add"},
    "hip": {"int64": "set add", "uint64": "set add"},
    "maca": {"int64": "set add", "uint64": "set add"},
}


@pytest.mark.parametrize("backend", LIMITS)
@pytest.mark.parametrize(
    ("pointer", "type_"), [("sig32", "int32"), ("sig", "int64"), ("usig", "uint64"), ("sig8", "int8")]
)
@pytest.mark.parametrize("op", ["set", "add"])
def test_notify_against_the_limits(lower, reject, backend, pointer, type_, op):
    line = f'dl.notify({pointer}, 0, 1, "{op}")'
    table = LIMITS[backend]
    with knobs.scope(backend=backend):
        if op in table.get(type_, "").split():
            assert "distributed.notify" in lower(line)
            return
        error, message = reject(line)
    assert backend in message
    if type_ in table:
        assert isinstance(error, errors.UnsupportedSignal)
        assert "It can add or set int32; set int64; set uint64." in message
    else:
        assert isinstance(error, errors.BadSignalType)
        assert f"It has {', '.join(sorted(table))}." in message


@pytest.mark.parametrize("backend", ["cuda", "hip", "maca"])
@pytest.mark.parametrize("pointer", ["sig8", "half"])
def test_wait_against_the_limits(reject, backend, pointer):
    with knobs.scope(backend=backend):
        error, message = reject(f'dl.wait({pointer}, 1, "sys", "acquire")')
    assert isinstance(error, errors.BadSignalType)
    assert "It has int32, int64, uint32, uint64." in message


@pytest.mark.parametrize(
    "call", ["rank()", "num_ranks()", 'wait(1, 1, "sys", "acquire")', "notify(1, 0)", "symm_at(1, 0)"]
)
def test_outside_a_kernel(call):
    import triton_dist.language as dl

    name = call.split("(")[0]
    with pytest.raises(errors.OutsideKernel, match=f"dl.{name} can only be called in a kernel.*triton_dist.jit"):
        eval(f"dl.{call}", {"dl": dl})


def test_a_misspelt_op(reject):
    _, message = reject("dl.notifi(sig, 0)")
    assert "notifi" in message
