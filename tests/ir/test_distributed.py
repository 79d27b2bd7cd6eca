# SPDX-License-Identifier: MIT
# ruff: noqa: E501  (a line of IR stays one line)
"""The dialect `distributed`: operands, results, types, enumerations, effects, and independence of any back end."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.traits import (
    ConditionallySpeculatable,
    EffectInstance,
    MemoryEffectKind,
    Pure,
    get_effects,
    is_side_effect_free,
)
from xdsl.utils.exceptions import VerifyException

from triton_dist import ir
from triton_dist.errors import IRParseError
from triton_dist.ir.dialects import distributed as d

ARGUMENTS = (
    "%p: !tt.ptr<i32>, %q: !tt.ptr<f16>, %l: !tt.ptr<i64>, %tp: tensor<8x!tt.ptr<f16>>, %ti: tensor<8xi32>, "
    "%tf: tensor<4x4xf32>, %i: i32, %w: i64, %f: f32, %d: !tt.tensordesc<tensor<4x4xf16>>, %ps: tensor<8x!tt.ptr<i32>>"
)


def op_of(line: str):
    module = ir.parse(f"module {{ tt.func @f({ARGUMENTS}) {{ {line} tt.return }} }}")
    return next(op for op in module.walk() if op.name.startswith("distributed."))


VALID = [
    "%t = distributed.wait %p, %i, %i, scope = gpu semantic = acquire : !tt.ptr<i32>, i32, i32 -> i32",
    "%t = distributed.wait %l, %i, %w, scope = sys semantic = relaxed : !tt.ptr<i64>, i32, i64 -> i32",
    "%t = distributed.wait %ps, %ti, %i, scope = cta semantic = acq_rel : tensor<8x!tt.ptr<i32>>, tensor<8xi32>, i32 -> tensor<8xi32>",
    "%c = distributed.consume_token %q, %i, : !tt.ptr<f16>, i32 -> !tt.ptr<f16>",
    "%c = distributed.consume_token %tp, %i, : tensor<8x!tt.ptr<f16>>, i32 -> tensor<8x!tt.ptr<f16>>",
    "%c = distributed.consume_token %tf, %i, : tensor<4x4xf32>, i32 -> tensor<4x4xf32>",
    "%c = distributed.consume_token %d, %i, : !tt.tensordesc<tensor<4x4xf16>>, i32 -> !tt.tensordesc<tensor<4x4xf16>>",
    "%c = distributed.consume_token %f, %ti, : f32, tensor<8xi32> -> f32",
    "%r = distributed.get_rank %i : i32",
    "%r = distributed.get_num_ranks %i : i32",
    "%r = distributed.symm_at %q, %i, : !tt.ptr<f16>",
    '"distributed.notify"(%l, %w, %i) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()',
    '"distributed.notify"(%p, %w, %i) <{sigOp = 2 : i32, commScope = 1 : i32, sigUnsigned}> : (!tt.ptr<i32>, i64, i32) -> ()',
    'distributed.extern_call {libname = "", libpath = "", pure = true, symbol = "my_pe"} : () -> i32',
    'distributed.extern_call %q, %i {libname = "l", libpath = "p", pure = false, symbol = "put"} : (!tt.ptr<f16>, i32) -> ()',
    '%x, %y = distributed.extern_call %i {libname = "l", libpath = "", pure = false, symbol = "s"} : (i32) -> (i32, f32)',
]  # fmt: skip


@pytest.mark.parametrize("line", VALID)
def test_valid_and_round_trips(line: str):
    op = op_of(line)
    op.verify()
    module = op.parent_op().parent_op()
    text = ir.print_module(module)
    assert ir.print_module(ir.parse(text)) == text
    assert line.split(" = ", 1)[-1].split("{")[0].strip() in text or "x, " in line


def test_wait_defaults_to_gpu_and_acquire():
    op = op_of('%t = "distributed.wait"(%p, %i, %i) : (!tt.ptr<i32>, i32, i32) -> i32')
    op.verify()
    assert "scope = gpu semantic = acquire" in ir.print_module(op.parent_op().parent_op())
    op_of("%t = distributed.wait %p, %i, %i : !tt.ptr<i32>, i32, i32 -> i32").verify()


INVALID = {
    # wait
    '%t = "distributed.wait"(%i, %i, %i) <{scope = 1 : i32, semantic = 2 : i32}> : (i32, i32, i32) -> i32': "pointer",
    '%t = "distributed.wait"(%p, %f, %i) <{scope = 1 : i32, semantic = 2 : i32}> : (!tt.ptr<i32>, f32, i32) -> i32': "integer",
    '%t = "distributed.wait"(%p, %i, %f) <{scope = 1 : i32, semantic = 2 : i32}> : (!tt.ptr<i32>, i32, f32) -> i32': "integer",
    '%t = "distributed.wait"(%p, %i, %ti) <{scope = 1 : i32, semantic = 2 : i32}> : (!tt.ptr<i32>, i32, tensor<8xi32>) -> i32': "integer",
    '%t = "distributed.wait"(%p, %i, %w) <{scope = 1 : i32, semantic = 2 : i32}> : (!tt.ptr<i32>, i32, i64) -> i32': "pointee",
    '%t = "distributed.wait"(%q, %i, %i) <{scope = 1 : i32, semantic = 2 : i32}> : (!tt.ptr<f16>, i32, i32) -> i32': "pointee",
    '%t = "distributed.wait"(%p, %i, %i) <{scope = 1 : i32, semantic = 2 : i32}> : (!tt.ptr<i32>, i32, i32) -> f32': "integer",
    '%t = "distributed.wait"(%p, %i, %i) <{scope = 9 : i32, semantic = 2 : i32}> : (!tt.ptr<i32>, i32, i32) -> i32': "scope",
    '%t = "distributed.wait"(%p, %i, %i) <{scope = 1 : i32, semantic = 0 : i32}> : (!tt.ptr<i32>, i32, i32) -> i32': "semantic",
    '%t = "distributed.wait"(%p, %i) <{scope = 1 : i32, semantic = 2 : i32}> : (!tt.ptr<i32>, i32) -> i32': "operand",
    # consume_token
    '%c = "distributed.consume_token"(%q, %f) : (!tt.ptr<f16>, f32) -> !tt.ptr<f16>': "integer",
    '%c = "distributed.consume_token"(%q, %i) : (!tt.ptr<f16>, i32) -> !tt.ptr<i32>': "T",
    '%c = "distributed.consume_token"(%q, %i) : (!tt.ptr<f16>, i32) -> ()': "result",
    # rank
    '%r = "distributed.get_rank"(%w) : (i64) -> i32': "i32",
    '%r = "distributed.get_rank"(%i) : (i32) -> i64': "i32",
    '%r = "distributed.get_num_ranks"(%f) : (f32) -> i32': "i32",
    '%r = "distributed.get_num_ranks"() : () -> i32': "operand",
    # symm_at
    '%r = "distributed.symm_at"(%tp, %i) : (tensor<8x!tt.ptr<f16>>, i32) -> tensor<8x!tt.ptr<f16>>': "scalar pointer",
    '%r = "distributed.symm_at"(%q, %w) : (!tt.ptr<f16>, i64) -> !tt.ptr<f16>': "i32",
    '%r = "distributed.symm_at"(%q, %i) : (!tt.ptr<f16>, i32) -> !tt.ptr<i32>': "T",
    # notify
    '"distributed.notify"(%tp, %w, %i) <{sigOp = 1 : i32, commScope = 3 : i32}> : (tensor<8x!tt.ptr<f16>>, i64, i32) -> ()': "scalar pointer",
    '"distributed.notify"(%l, %i, %i) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i32, i32) -> ()': "i64",
    '"distributed.notify"(%l, %w, %w) <{sigOp = 1 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i64) -> ()': "i32",
    '"distributed.notify"(%l, %w, %i) <{sigOp = 3 : i32, commScope = 3 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()': "sigOp",
    '"distributed.notify"(%l, %w, %i) <{sigOp = 1 : i32, commScope = 0 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()': "commScope",
    '"distributed.notify"(%l, %w, %i) <{commScope = 1 : i32}> : (!tt.ptr<i64>, i64, i32) -> ()': "sigOp",
    '%x = "distributed.notify"(%l, %w, %i) <{sigOp = 1 : i32, commScope = 1 : i32}> : (!tt.ptr<i64>, i64, i32) -> i32': "result",
    # extern_call
    'distributed.extern_call %i {libname = "", libpath = "", symbol = "s"} : (i32) -> ()': "pure",
    'distributed.extern_call %i {libname = "", libpath = "", pure = 1 : i32, symbol = "s"} : (i32) -> ()': "pure",
    'distributed.extern_call %i {libname = "", libpath = "", pure = true} : (i32) -> ()': "symbol",
    'distributed.extern_call %i {libpath = "", pure = true, symbol = "s"} : (i32) -> ()': "libname",
    'distributed.extern_call %i {libname = "", pure = true, symbol = "s"} : (i32) -> ()': "libpath",
    'distributed.extern_call %i {libname = "", libpath = "", pure = true, symbol = "s"} : (i32) -> index': "index",
}  # fmt: skip


@pytest.mark.parametrize(("line", "word"), INVALID.items())
def test_every_constraint_has_an_error(line: str, word: str):
    with pytest.raises((VerifyException, IRParseError), match=word):
        op_of(line).verify()


READ, WRITE = EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)


@pytest.mark.parametrize(
    ("line", "effects"),
    [
        (VALID[0], {READ}),
        (VALID[3], set()),
        (VALID[8], set()),
        (VALID[9], set()),
        (VALID[10], {READ}),
        (VALID[11], {READ, WRITE}),
        (VALID[13], set()),
        (VALID[14], {READ, WRITE}),
    ],
)
def test_effects(line: str, effects: set[EffectInstance]):
    op = op_of(line)
    assert get_effects(op) == effects
    assert is_side_effect_free(op) == (not effects)


def test_traits():
    assert d.GetRankOp.has_trait(Pure)
    assert d.GetNumRanksOp.has_trait(Pure)
    assert d.ConsumeTokenOp.has_trait(d.Elementwise)
    for line, expected in ((VALID[13], True), (VALID[14], False)):
        op = op_of(line)
        trait = op.get_trait(ConditionallySpeculatable)
        assert trait is not None
        assert trait.is_speculatable(op) is expected
    assert d.WaitOp.get_trait(ConditionallySpeculatable) is None


def test_enumerations():
    assert d.SIGNAL_OPS == {"SET": 1, "ADD": 2}
    assert d.COMM_SCOPES == {"GPU": 1, "INTRA_NODE": 2, "INTER_NODE": 3}


def test_depends_on_no_back_ends_dialect():
    """Only xDSL's builtin things and Triton's own types."""
    tree = ast.parse(Path(inspect.getfile(d)).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours = {name for name in imported if name.startswith("triton_dist")}
    assert ours == {"triton_dist.ir.dialects._syntax", "triton_dist.ir.dialects.tt"}
    xdsl = {name for name in imported if name.startswith("xdsl.dialects")}
    assert xdsl == {"xdsl.dialects.builtin"}
    assert [op.name for op in d.Distributed.operations] == [
        "distributed.wait",
        "distributed.consume_token",
        "distributed.get_rank",
        "distributed.get_num_ranks",
        "distributed.symm_at",
        "distributed.notify",
        "distributed.extern_call",
    ]


def test_parsing_it_loads_no_back_ends_dialect():
    from triton_dist.ir.parser import parse_text

    ctx = ir.context()
    parse_text(ctx, f"module {{ tt.func @f({ARGUMENTS}) {{ {VALID[0]} tt.return }} }}")
    assert {dialect.name for dialect in ctx.loaded_dialects} == {"builtin", "tt", "distributed"}


def test_importing_it_imports_no_other_dialect():
    code = (
        "import sys, triton_dist.ir.dialects.distributed\n"
        "print(*sorted(name for name in sys.modules if '.dialects.' in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name.rpartition(".")[2] for name in done.stdout.split() if name.startswith("triton_dist.")}
    xdsls = {name.rpartition(".")[2] for name in done.stdout.split() if name.startswith("xdsl.")}
    assert ours == {"_syntax", "tt", "distributed"}
    assert not xdsls & {"llvm", "gpu", "nvgpu", "rocdl"}
