# SPDX-License-Identifier: MIT
"""The device functions' arguments: what is refused, with the kernel's line, and what becomes which symbol."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist import backends, errors, ir, knobs
from triton_dist.backends.ascend import symbols
from triton_dist.language.extra import libshmem_device as lib
from triton_dist.language.extra.ascend import libaclshmem_device as acl
from triton_dist.language.extra.ascend import libshmem_device as portable
from triton_dist.language.extra.records import supported


@pytest.fixture(autouse=True)
def on_ascend():
    with knobs.scope(backend="ascend", simulate=None, engine=None):
        yield


def test_every_function_of_the_table_is_there() -> None:
    assert [name for name in supported("ascend") if not hasattr(portable, name)] == []


def test_every_function_of_the_library_is_there() -> None:
    for symbol, template in symbols.templates().items():
        if template.family != "consume_token":
            name = symbol.removeprefix("aclshmemx_").removeprefix("aclshmem_")
            assert name in acl.names()
    assert {"putmem", "getmem_nbi", "wait_until", "wait", "p", "ptr", "remote_ptr"} <= set(acl.names()) | {"remote_ptr"}


def symbols_of(kernel: Callable, signature: dict[str, str]) -> list[str]:
    """The symbols that a kernel calls, after our conversion."""
    return [op.symbol for op in converted(kernel, signature).walk() if op.name == "hivm.hir.custom"]


def converted(kernel: Callable, signature: dict[str, str]) -> Any:
    """A kernel after our conversion."""
    from triton.compiler.compiler import ASTSource, make_backend

    target = triton.runtime.driver.active.get_current_target()
    backend = make_backend(target)
    options = backend.parse_options({})
    context = triton._C.libtriton.ir.context()
    triton._C.libtriton.ir.load_dialects(context)
    functions, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    made = ASTSource(kernel, signature, {}).make_ir(target, options, functions, modules, context)
    module = ir.parse(str(made))
    ir.run_passes(module, ["raise-distributed-carriers", *backends.get("ascend").conversion_passes])
    return module


@triton_dist.jit
def portable_kernel(half, double, narrow, wide, unsigned, n):
    lib.putmem(half, half, n, 1)
    lib.getmem_nbi(double, double, n, 1)
    lib.putmem_signal(half, half, n, narrow, 1, lib.SIGNAL_ADD, 1)
    lib.putmem_signal_nbi(half, half, n, unsigned, 1, lib.SIGNAL_SET, 1)
    lib.signal_op(wide, 1, lib.SIGNAL_SET, 1)
    lib.signal_wait_until(unsigned, lib.CMP_LE, 1)
    lib.int_p(narrow, 1, 1)
    lib.barrier(lib.TEAM_WORLD)
    lib.remote_ptr(half, 1)


SIGNATURE = {"half": "*fp16", "double": "*fp64", "narrow": "*i32", "wide": "*i64", "unsigned": "*u64", "n": "i32"}


def test_symbols_of_portable_functions() -> None:
    assert symbols_of(portable_kernel, SIGNATURE) == [
        "aclshmem_half_putmem",
        "aclshmem_int64_getmem_nbi",
        "aclshmem_half_putmem_signal",
        "aclshmem_half_putmem",
        "aclshmem_uint64_p",
        "aclshmem_int64_p",
        "aclshmem_wait_until_uint64",
        "aclshmem_int32_p",
        "aclshmem_barrier",
        "aclshmem_ptr_half",
    ]


@triton_dist.jit
def wide_size_kernel(half, n, m):
    acl.putmem(half, half, n, 1)
    acl.putmem(bytes=m, source=half, pe=1, dest=half)


def test_a_wide_size_is_limited_not_cut() -> None:
    """The library's count has 32 bits: the low bits of a wider one would be another size."""
    signature = {"half": "*fp16", "n": "i64", "m": "i32"}
    module = converted(wide_size_kernel, signature)
    assert [op.symbol for op in module.walk() if op.name == "hivm.hir.custom"] == ["aclshmem_half_putmem"] * 2
    assert [op.name for op in module.walk()].count("arith.minui") == 1


@triton_dist.jit
def wrong_type(data, sig, n):
    acl.half_putmem(data, data, 4, 0)


@triton_dist.jit
def no_wait_for_half(data, sig, n):
    acl.wait_until(data.to(tl.pointer_type(tl.float16)), acl.CMP_EQ, 1)


@triton_dist.jit
def wide_native_signal(data, sig, n):
    acl.signal_op(data.to(tl.pointer_type(tl.int64)), 1, acl.SIGNAL_SET, 0)


@triton_dist.jit
def add_to_wide_signal(data, sig, n):
    lib.signal_op(sig.to(tl.pointer_type(tl.int64)), 1, lib.SIGNAL_ADD, 0)


@triton_dist.jit
def comparison_at_run_time(data, sig, n):
    lib.signal_wait_until(sig, n, 1)


@triton_dist.jit
def no_such_operation(data, sig, n):
    lib.signal_op(sig, 1, 3, 0)


@triton_dist.jit
def block_function(data, sig, n):
    lib.putmem_block(data, data, 4, 0)


@triton_dist.jit
def negative_size(data, sig, n):
    lib.putmem(data, data, -1, 0)


@triton_dist.jit
def missing_argument(data, sig, n):
    acl.float_putmem(data, data, 4)


@triton_dist.jit
def pointer_in_second_place(data, sig, n):
    acl.putmem(source=sig, dest=data, bytes=4, pe=0)


@triton_dist.jit
def nothing_at_all(data, sig, n):
    acl.putmem()


@triton_dist.jit
def native_numbers_of_others(data, sig, n):
    acl.signal_op(sig, 1, lib.SIGNAL_SET, 0)


@triton_dist.jit
def native_comparison(data, sig, n):
    acl.wait_until(sig, 6, 1)


@triton_dist.jit
def negative_count(data, sig, n):
    acl.wait(sig, -1, 1)


@triton_dist.jit
def too_large_for_its_type(data, sig, n):
    acl.int8_p(data.to(tl.pointer_type(tl.int8)), 300, 0)


@triton_dist.jit
def block_of_values(data, sig, n):
    acl.half_p(data.to(tl.pointer_type(tl.float16)), tl.arange(0, 4), 0)


@triton_dist.jit
def pointer_as_value(data, sig, n):
    acl.bfloat16_p(data.to(tl.pointer_type(tl.bfloat16)), data, 0)


@triton_dist.jit
def more_than_32_bits(data, sig, n):
    lib.getmem(data, data, 1 << 32, 0)


@triton_dist.jit
def team_of_others(data, sig, n):
    lib.barrier(lib.TEAM_NODE)


@triton_dist.jit
def block_to_a_library(data, sig, n):
    block_call(tl.arange(0, 4))


@triton_dist.language.builtin
def block_call(values, _semantic=None):
    table = {(tl.int32,): ("aclshmem_team_my_pe", tl.int32)}
    return dl.extern_call("l", "", [values], table, True, _semantic=_semantic)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (wrong_type, errors.WrongPointee, "half_putmem: dest must point to half, but points to fp32"),
        (no_wait_for_half, errors.WrongPointee, "must point to one of float, int8"),
        (wide_native_signal, errors.WrongPointee, "sig_addr must point to int32, but points to int64"),
        (add_to_wide_signal, errors.UnsupportedSignal, "the ascend back end cannot add a signal of type int64"),
        (comparison_at_run_time, errors.NotConstexpr, "cmp_ must be a number, known at compile time"),
        (no_such_operation, errors.UnknownChoice, "Valid: SIGNAL_SET (9), SIGNAL_ADD (10)"),
        (block_function, errors.MissingFunction, "no such function. The nearest it has: putmem"),
        (negative_size, errors.NotAnInteger, "bytes must be an integer scalar, 0 to 4294967295"),
        (missing_argument, errors.BadCall, "Call: float_putmem(dest, source, bytes, pe)"),
        (pointer_in_second_place, errors.WrongPointee, "putmem: source must point to float, but points to int32"),
        (nothing_at_all, errors.BadCall, "putmem: missing a required argument: 'dest'"),
        (native_numbers_of_others, errors.UnknownChoice, "sig_op = 9 is unknown. Valid: SIGNAL_SET (0), SIGNAL_ADD"),
        (native_comparison, errors.UnknownChoice, "cmp = 6 is unknown. Valid: CMP_EQ (0), CMP_NE (1)"),
        (negative_count, errors.NotAnInteger, "num_barriers must be an integer scalar, 0 or more, got -1"),
        (too_large_for_its_type, errors.DoesNotFit, "int8_p: value = 300 does not fit int8 (-128 to 127)"),
        (block_of_values, errors.NotANumber, "half_p: value must be a fp16 scalar, got a [4] block of int32"),
        (pointer_as_value, errors.NotANumber, "bfloat16_p: value must be a bf16 scalar, got pointer<fp32>"),
        (more_than_32_bits, errors.NotAnInteger, "counts the bytes of one transfer in 32 bits, got 4294967296"),
        (team_of_others, errors.UnknownChoice, "team = 'TEAM_NODE' is unknown to aclshmem. Valid: TEAM_WORLD, or"),
        (block_to_a_library, errors.BadExternCall, "a block among the arguments needs a block as the result"),
    ],
)
def test_what_is_refused_names_the_line(kernel: Callable, error: type[Exception], message: str) -> None:
    with pytest.raises(triton.CompilationError, match=re.escape(message)) as caught:
        kernel[(1,)](torch.zeros(4), torch.zeros(1, dtype=torch.int32), 3)
    assert isinstance(caught.value.__cause__, error)
