# SPDX-License-Identifier: MIT
"""The carrier that each op leaves in the TTIR."""

from __future__ import annotations

import pytest

from triton_dist import errors, knobs

WAIT = 'dl.wait(sig, 1, "sys", "acquire")'


def carriers(text: str) -> list[str]:
    """The carriers of a module, without the names of values."""
    found = []
    for line in text.splitlines():
        # Triton 3.9 puts pointers to const into an address space of their own.
        line = line.replace(', "constant">', ">")
        if "tt.extern_elementwise" in line and 'libname = "distributed"' in line:
            found.append(line.split("tt.extern_elementwise")[1])
    return found


def carrier(op: str, types: str, attributes: str = "", *, pure: bool) -> str:
    return (
        f'{{libname = "distributed", libpath = "{attributes}", pure = {str(pure).lower()}, '
        f'symbol = "distributed.{op}"}} : {types}'
    )


def only(text: str) -> str:
    (found,) = carriers(text)
    return found[found.index("{") :]


@pytest.mark.parametrize("axis", ["", "axis=-1", "0"])
@pytest.mark.parametrize("op", ["rank", "num_ranks"])
def test_rank(lower, op, axis):
    text = lower(f"tl.store(sig32, dl.{op}({axis}))")
    assert only(text) == carrier(f"get_{op}", "(i32) -> i32", pure=True)
    assert f"arith.constant {axis.removeprefix('axis=') or -1} : i32" in text


@pytest.mark.parametrize(("pointer", "type_"), [("sig", "i64"), ("usig", "i64"), ("sig32", "i32"), ("sig8", "i8")])
def test_wait_takes_the_pointees_type(lower, pointer, type_):
    text = lower(f'dl.wait({pointer}, 1, "sys", "acquire")')
    attributes = "{scope = 3 : i32, semantic = 2 : i32}"
    assert only(text) == carrier("wait", f"(!tt.ptr<{type_}>, i32, {type_}) -> i32", attributes, pure=False)


@pytest.mark.parametrize(("scope", "number"), [("gpu", 1), ("cta", 2), ("sys", 3)])
@pytest.mark.parametrize(("semantic", "order"), [("relaxed", 1), ("acquire", 2), ("release", 3), ("acq_rel", 4)])
def test_wait_scopes_and_semantics(lower, scope, number, semantic, order):
    text = lower(f'dl.wait(sig, n, scope="{scope}", semantic="{semantic}", waitValue=7)')
    assert f"{{scope = {number} : i32, semantic = {order} : i32}}" in only(text)


@pytest.mark.parametrize(
    ("pointer", "value", "constant"),
    [
        ("sig", "9223372036854775807", "9223372036854775807 : i64"),
        ("sig", "-1", "-1 : i64"),
        ("usig", "18446744073709551615", "-1 : i64"),
        ("sig32", "2147483647", "2147483647 : i32"),
        ("sig8", "-128", "-128 : i8"),
    ],
)
def test_wait_values_up_to_the_limits(lower, pointer, value, constant):
    assert f"arith.constant {constant}" in lower(f'dl.wait({pointer}, 1, "gpu", "acquire", waitValue={value})')


@pytest.mark.parametrize(("value", "op"), [("n", "extsi"), ("small", "extsi"), ("unsigned", "extui"), ("yes", "extui")])
def test_wait_widens_a_runtime_value_by_its_sign(lower, value, op):
    assert f"arith.{op}" in lower(f'dl.wait(sig, 1, "gpu", "acquire", {value})')


@pytest.mark.parametrize("count", ["0", "1", "n", "big", "small"])
def test_wait_counts(lower, count):
    assert only(lower(f'dl.wait(sig, {count}, "gpu", "acquire")')).endswith("(!tt.ptr<i64>, i32, i64) -> i32")


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("data", "!tt.ptr<f32>"),
        ("fixed", "!tt.ptr<i64>"),
        ("x", "f32"),
        ("n", "i32"),
        ("3", "i32"),
        ("tl.arange(0, 16)", "tensor<16xi32>"),
        ("data + tl.arange(0, 16)", "tensor<16x!tt.ptr<f32>>"),
        ("tl.zeros((4, 8), tl.float16)", "tensor<4x8xf16>"),
    ],
)
def test_consume_token_keeps_the_type(lower, value, type_):
    text = lower(f'token = dl.wait(sig, 1, "sys", "acquire")\ndl.consume_token({value}, token)')
    assert carriers(text)[1].endswith(carrier("consume_token", f"({type_}, i32) -> {type_}", pure=True))


def test_consume_token_of_a_descriptor_ties_its_loads(lower):
    body = f"token = {WAIT}\nd = dl.consume_token(desc, token)\nx = d.load([n, 0])\nd.store([0, 0], x)"
    text = lower(body)
    assert carriers(text)[1].endswith(carrier("consume_token", "(i32, i32) -> i32", pure=True))
    load = next(line for line in text.splitlines() if "tt.descriptor_load" in line)
    assert (
        load.split("[")[1].split("]")[0].split(", ")[1] in text.split("distributed.consume_token")[0].splitlines()[-1]
    )


IN_A_LOOP = """
d = dl.consume_token(desc, token)
for i in tl.range(0, n, num_stages=3):
    data += tl.sum(d.load([i, 0]).to(tl.int32))
tl.store(data, 1.0)
"""
IN_A_BRANCH = """
d = dl.consume_token(desc, token)
if n > 3:
    tl.store(data, tl.sum(d.load([n, 0])).to(tl.float32))
"""
CHANGED_IN_A_LOOP = """
d = dl.consume_token(desc, token)
for i in range(n):
    tl.store(data + i, tl.sum(d.load([i, 0])).to(tl.float32))
    d = dl.consume_token(d, dl.wait(sig, 1, "sys", "acquire"))
"""
LOADS = "\n\n@triton_dist.jit{how}\ndef total(d, n):\n    return tl.sum(d.load([n, 0])).to(tl.float32)\n\n\n"
IN_A_FUNCTION = """
tl.store(data, total(desc, n))
d = dl.consume_token(desc, token)
tl.store(data + 1, total(d, n))
"""


@pytest.mark.parametrize("body", [IN_A_LOOP, IN_A_BRANCH, CHANGED_IN_A_LOOP])
def test_a_consumed_descriptor_in_a_loop_or_branch(lower, body):
    text = lower(f"token = {WAIT}{body}")
    assert loads_of_consumed(text) == [True]


@pytest.mark.parametrize(
    ("offset", "got"),
    [
        ("1.5", "1.5"),
        ("x", "fp32"),
        ("big", "int64 (use .to(tl.int32))"),
        ("tl.arange(0, 4)", "a [4] block of int32"),
        ("1 << 31", "2147483648"),
    ],
)
@pytest.mark.parametrize("call", ["load([0, {}])", "gather(tl.arange(0, 16), {})"])
def test_offsets_after_a_token_are_whole_numbers(reject, call, offset, got):
    """As Triton's: none is cut to fit."""
    error, _ = reject(f"d = dl.consume_token(desc, {WAIT})\nd.{call.format(offset)}")
    assert isinstance(error, errors.NotAnInteger)
    assert str(error) == f"descriptor.{call.split('(')[0]}: an offset must be an int32 scalar, got {got}"


def test_a_variable_cannot_be_a_descriptor_and_a_consumed_one(reject):
    _, message = reject(f"d = desc\nif n > 3:\n    d = dl.consume_token(d, {WAIT})", last="if n > 3:")
    assert "type tensor_descriptor<" in message
    assert "redefines it as consumed tensor_descriptor<" in message


@pytest.mark.parametrize("call", ["load([])", "load([0])", "gather()"])
def test_missing_offsets_are_named_by_triton(reject, call):
    error, _ = reject(f"d = dl.consume_token(desc, {WAIT})\nd.{call}")
    assert isinstance(error, AssertionError)


RETURNED = """
def awaited(d, token):
    return dl.consume_token(d, token), 4
"""
IN_A_TUPLE = """
pair = awaited(desc, token)
both = (pair, pair)
for i in range(n):
    tl.store(data + i, tl.sum(both[1][0].load([pair[1], 0])).to(tl.float32))
"""
IN_A_WHILE = """
d, k = awaited(desc, token)
while k < n:
    tl.store(data + k, tl.sum(tl.load_tensor_descriptor(d, [k, 0])).to(tl.float32))
    k += 4
"""


@pytest.mark.parametrize("body", [IN_A_TUPLE, IN_A_WHILE])
def test_a_consumed_descriptor_is_returned_and_kept_in_a_tuple(lower, body):
    text = lower(f"token = {WAIT}{body}", before=f"@triton_dist.jit{RETURNED}\n\n")
    assert loads_of_consumed(text) == [True]


def test_a_descriptor_that_is_consumed_twice_depends_on_both_tokens(lower):
    body = f"one, other = {WAIT}, {WAIT}\nd = dl.consume_token(dl.consume_token(desc, other), one)\nd.load([0, 0])"
    text = lower(body)
    one, other = (line.split(" = ")[0].strip() for line in text.splitlines() if "distributed.wait" in line)
    first, second = (line for line in text.splitlines() if "distributed.consume_token" in line)
    assert f"{one}, {other} {{" in first
    assert second.split("elementwise ")[1].split(" {")[0].endswith(f", {first.split(' = ')[0].strip()}")
    assert loads_of_consumed(text) == [True]


@pytest.mark.parametrize("how", ["", "(noinline=True)"])
def test_a_consumed_descriptor_as_an_argument(lower, how):
    """The same function, called with a plain descriptor and with one that was consumed, is two."""
    text = lower(f"token = {WAIT}{IN_A_FUNCTION}", before=LOADS.format(how=how))
    assert sorted(loads_of_consumed(text)) == [False, True]


def loads_of_consumed(text: str) -> list[bool]:
    """Of each load of a descriptor, whether its column is the result of a consume_token."""
    lines = text.splitlines()
    consumed = {line.split(" = ")[0].strip() for line in lines if "distributed.consume_token" in line}
    loads = [line for line in lines if "tt.descriptor_load" in line]
    return [line.split("[")[1].split("]")[0].split(", ")[1] in consumed for line in loads]


@pytest.mark.parametrize("pointer", ["sig", "data", "half", "fixed"])
@pytest.mark.parametrize("rank", ["0", "n", "unsigned", "small", "(dl.rank() + 1) % dl.num_ranks()"])
def test_symm_at(lower, pointer, rank):
    pointee = {"sig": "i64", "data": "f32", "half": "f16", "fixed": "i64"}[pointer]
    types = f"(!tt.ptr<{pointee}>, i32) -> !tt.ptr<{pointee}>"
    found = carriers(lower(f"p = dl.symm_at({pointer}, {rank})\ntl.load(p)"))
    assert found[-1].endswith(carrier("symm_at", types, pure=True))


@pytest.mark.parametrize(("sig_op", "op"), [("set", 1), ("add", 2)])
@pytest.mark.parametrize(("scope", "number"), [("gpu", 1), ("intra_node", 2), ("inter_node", 3)])
@pytest.mark.parametrize("pointer", ["sig", "usig", "sig32"])
def test_notify(lower, sig_op, op, scope, number, pointer):
    text = lower(f'dl.notify({pointer}, n, signal=5, sig_op="{sig_op}", comm_scope="{scope}")')
    unsigned = ", sigUnsigned" if pointer == "usig" else ""
    attributes = f"{{sigOp = {op} : i32, commScope = {number} : i32{unsigned}}}"
    width = "32" if pointer == "sig32" else "64"
    assert only(text) == carrier("notify", f"(!tt.ptr<i{width}>, i64, i32) -> i32", attributes, pure=False)
    assert "arith.constant 5 : i64" in text


def test_notify_defaults(lower):
    text = lower("dl.notify(usig, 1)")
    assert "{sigOp = 1 : i32, commScope = 3 : i32, sigUnsigned}" in only(text)
    assert "arith.constant 1 : i64" in text


def test_notify_returns_nothing_to_use(lower):
    assert "tt.return" in lower("if n > 0:\n    dl.notify(sig, 1)\nelse:\n    dl.notify(sig, 2)")


@pytest.mark.parametrize("value", ["n", "small", "unsigned", "big"])
def test_notify_with_a_runtime_signal(lower, value):
    assert only(lower(f"dl.notify(sig, 0, {value})")).endswith("(!tt.ptr<i64>, i64, i32) -> i32")


def test_constexpr_arguments_may_be_names(ttir, kernel_of):
    kernel = kernel_of("dl.notify(sig, R, V, OP, SCOPE)\ndl.wait(sig, C, S, M, V)", "sig, R, V, OP, SCOPE, C, S, M")
    values = {"R": 1, "V": 3, "OP": "add", "SCOPE": "gpu", "C": 2, "S": "cta", "M": "relaxed"}
    text = ttir(kernel, {"sig": "*i64"}, values)
    assert "sigOp = 2 : i32, commScope = 1 : i32" in text
    assert "scope = 2 : i32, semantic = 1 : i32" in text


@pytest.fixture
def extern(lower, monkeypatch):
    """`extern(args, table, ...)`: the TTIR of a kernel that calls an external function."""

    def run(args: str, table: object, store: str = "", **options: object) -> str:
        import triton_dist.language as dl

        @dl.builtin
        def call(*values, _semantic=None):
            return dl.extern_call('a "lib"', "", list(values), table, options.get("pure", False), _semantic=_semantic)

        monkeypatch.setattr(dl, "call", call, raising=False)
        return lower(f"y = dl.call({args})\n{store}")

    return run


def test_extern_call(extern):
    import triton.language as tl

    table = [((tl.int32,), ("g", tl.int32)), ((tl.pointer_type(tl.float32), tl.int32), ("f", tl.int64))]
    text = extern("data, n", table, "tl.store(sig, y)")
    attributes = r"{libname = \22a \\22lib\\22\22, libpath = \22\22, pure = false, symbol = \22f\22}"
    assert only(text) == carrier("extern_call", "(!tt.ptr<f32>, i32) -> i64", attributes, pure=False)


@pytest.mark.parametrize("result", [None, (), "void"])
def test_extern_call_without_result(extern, result):
    import triton.language as tl

    text = extern("1, 2.0", {(tl.int32, tl.float32): ("f", tl.void if result == "void" else result)})
    assert only(text).endswith("(i32, f32) -> i32")


def test_extern_call_pure(extern):
    import triton.language as tl

    text = extern("", {(): ("f", (tl.int32,))}, "tl.store(sig32, y)", pure=True)
    assert 'pure = true, symbol = "distributed.extern_call"' in only(text)


def test_triton_drops_unused_pure_ops_and_keeps_the_rest(lower):
    body = 'dl.rank()\ndl.symm_at(data, 0)\ndl.wait(sig, 1, "sys", "acquire")\ndl.notify(sig, 0)'
    ops = [line.split('symbol = "')[1].split('"')[0] for line in carriers(lower(body, optimize=True))]
    assert ops == ["distributed.wait", "distributed.notify"]


def test_triton_merges_equal_pure_ops_and_no_waits(lower):
    body = f"w = {WAIT}\nw += {WAIT}\ntl.store(sig32, w + dl.rank() * dl.rank())"
    ops = [line.split('symbol = "')[1].split('"')[0] for line in carriers(lower(body, optimize=True))]
    assert sorted(ops) == ["distributed.get_rank", "distributed.wait", "distributed.wait"]


def test_a_kernel_without_our_ops_has_no_carrier(lower):
    assert "distributed" not in lower("tl.store(out, tl.load(data))")


@pytest.mark.parametrize(("backend", "elements"), [("cpu", 8), ("ascend", 8), ("cuda", 1), ("hip", 1), ("maca", 1)])
def test_signal_stride(lower, backend, elements):
    with knobs.scope(backend=backend):
        text = lower(
            "tl.static_assert(dl.signal_stride(sig) == " + str(elements) + ")\ntl.store(dl.signal_slot(sig, n), 1)"
        )
    assert "tt.addptr" in text
    if elements > 1:
        assert f"arith.constant {elements} : i32" in text


def test_signal_stride_of_narrow_signals(lower):
    assert "tt.return" in lower(
        "tl.static_assert(dl.signal_stride(sig32) == 16)\ntl.static_assert(dl.signal_stride(sig8) == 64)"
    )


@pytest.mark.parametrize(("backend", "step"), [("cpu", 8), ("cuda", None), ("ascend", None)])
def test_wait_slots(lower, backend, step):
    with knobs.scope(backend=backend):
        text = lower('t = dl.wait_slots(sig, n, "sys", "acquire", 3)\ntl.store(sig32, t)', optimize=True)
    assert "(!tt.ptr<i64>, i32, i64) -> i32" in only(text)
    assert ("scf.for" in text) == (step is not None)


def test_signal_stride_bytes_for_the_host():
    from triton_dist.language import signal_stride_bytes

    assert (signal_stride_bytes(), signal_stride_bytes(4)) == (64, 64)
    with knobs.scope(backend="cuda"):
        assert (signal_stride_bytes(), signal_stride_bytes(4)) == (8, 4)
