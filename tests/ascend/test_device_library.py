# SPDX-License-Identifier: MIT
"""The device functions' arguments: what is refused, with the kernel's line, and what becomes which symbol."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import triton
import triton.language as tl

import triton_dist
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
    return [op.symbol for op in module.walk() if op.name == "hivm.hir.custom"]  # type: ignore[attr-defined]


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


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (wrong_type, errors.WrongPointee, "half_putmem: the pointer must point to half, but points to fp32"),
        (no_wait_for_half, errors.WrongPointee, "must point to one of float, int8"),
        (wide_native_signal, errors.WrongPointee, "sig_addr must point to int32, but points to int64"),
        (add_to_wide_signal, errors.UnsupportedSignal, "the ascend back end cannot add a signal of type int64"),
        (comparison_at_run_time, errors.NotConstexpr, "cmp_ must be a number, known at compile time"),
        (no_such_operation, errors.UnknownChoice, "Valid: SIGNAL_SET (9), SIGNAL_ADD (10)"),
        (block_function, errors.MissingFunction, "no such function. The nearest it has: putmem"),
        (negative_size, errors.NotAnInteger, "bytes must be an integer scalar, 0 or more"),
        (missing_argument, errors.BadCall, "Call: float_putmem(dest, source, bytes, pe)"),
    ],
)
def test_what_is_refused_names_the_line(kernel: Callable, error: type[Exception], message: str) -> None:
    with pytest.raises(triton.CompilationError, match=re.escape(message)) as caught:
        kernel[(1,)](torch.zeros(4), torch.zeros(1, dtype=torch.int32), 3)
    assert isinstance(caught.value.__cause__, error)
