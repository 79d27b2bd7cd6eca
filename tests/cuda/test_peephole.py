# SPDX-License-Identifier: MIT
"""What ptxas is spared: statements that say the same, and those that must stay as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import triton
import triton.language as tl

import triton_dist.language as dl
from tests.cuda.conftest import Compile, count
from triton_dist.backends.cuda import bitcode
from triton_dist.backends.cuda.assembled import assembled
from triton_dist.backends.cuda.peephole import faster

BEFORE = "sub.s64 d, a, b; "
LOW, HIGH, OR = "setp.lt.u64 p, a, b; ", "setp.ge.u64 q, d, s; ", "or.pred r, p, q; "


@pytest.mark.parametrize("either", [OR, "or.pred r, q, p; "])
def test_an_address_is_compared_once_with_a_range(either: str) -> None:
    made = faster(f"mov.b64 a, $1; mov.b64 b, 8; {BEFORE}{LOW}{HIGH}{either}@r bra BB0_1; ", straight=True)
    assert made == f"mov.b64 a, $1; mov.b64 b, 8; {BEFORE}setp.ge.u64 r, d, s; @r bra BB0_1; "


@pytest.mark.parametrize(
    "text",
    [
        f"{LOW}{HIGH}{OR}",  # Of no difference of the two.
        f"sub.s64 d, b, a; {LOW}{HIGH}{OR}",
        f"{BEFORE}{LOW}setp.gt.u64 q, d, s; {OR}",
        f"{BEFORE}setp.lt.s64 p, a, b; {HIGH}{OR}",
        f"{BEFORE}{LOW}{HIGH}{OR}@p bra BB0_1; ",
        f"{BEFORE}{LOW}{HIGH}{OR}@!q bra BB0_1; ",
        f"{BEFORE}{LOW}@p mov.b64 b, 0; {HIGH}{OR}",
        f"{BEFORE}{LOW}{HIGH}{OR}BB0_1: add.s64 d, d, 1; ",
        f"{BEFORE}{LOW}{HIGH}or.pred r, p, o; ",
        f"{BEFORE}{LOW}{HIGH}and.pred r, p, q; ",
        f"@o {BEFORE}{LOW}{HIGH}{OR}",  # Perhaps never done.
        f"{BEFORE}@!o {LOW}{HIGH}{OR}",
        f"{BEFORE}{LOW}@o {HIGH}{OR}",
        f"{BEFORE}{LOW}{HIGH}@o {OR}",
        f"{BEFORE}{LOW}ld.v2.b64 {{a, b}}, [c]; {HIGH}{OR}",  # Makes several.
        f"{BEFORE}{LOW}{HIGH}{OR}setp.eq.u64 o|r, c, 0; ",
    ],
)
def test_other_comparisons_stay(text: str) -> None:
    text = f"mov.b64 a, $1; mov.b64 b, 8; {text}@r bra BB0_1; "
    assert faster(text, straight=True) == text


TABLE = "ld.const.b64 t, [state+56]; mul.wide.s32 i, e, 8; add.s64 u, t, i; ld.global.nc.b64 v, [u]; "
NULL, SUM = "setp.eq.b64 n, v, 0; ", "add.s64 w, v, d; "


def skipped(body: str = TABLE + NULL + SUM, last: str = "selp.b64 x, 0, w, n; BB0_1: ", rest: str = "") -> str:
    return f"setp.ge.u64 o, d, s; mov.b64 x, 0; @o bra BB0_1; {body}{last}mov.b64 $0, x; {rest}"


def test_what_a_branch_skips_is_done() -> None:
    both = "setp.eq.or.b64 n, v, 0, o; "
    assert faster(skipped(), straight=True) == (
        f"setp.ge.u64 o, d, s; {TABLE}{both}{SUM}selp.b64 x, 0, w, n; mov.b64 $0, x; "
    )
    assert faster(skipped(), straight=False) == skipped()


@pytest.mark.parametrize(
    "text",
    [
        skipped("st.global.b64 [u], d; " + TABLE + NULL + SUM),  # It does more than to compute.
        skipped("atom.global.add.u64 v, [u], 1; " + NULL + SUM),
        skipped(TABLE + "setp.eq.b64 n, v, 0; @n bra BB0_2; " + SUM),
        skipped(TABLE + NULL + "@n mov.b64 v, 1; " + SUM),
        skipped(TABLE + NULL + "BB0_3: " + SUM),
        skipped(TABLE + NULL + "ld.v2.b64 {w, d}, [u]; "),
        skipped("mov.b64 d, 7; " + TABLE + NULL + SUM, rest="mov.b64 d, 1; "),  # Made elsewhere too.
        skipped("setp.eq.b64 o, d, 1; " + TABLE + NULL + SUM),
        skipped(TABLE + NULL + SUM + "mov.b64 x, w; "),
        skipped(TABLE + "setp.ne.b64 n, v, 0; " + SUM),
        skipped(last="selp.b64 x, w, 0, n; BB0_1: "),
        skipped(last="selp.b64 y, 0, w, n; BB0_1: "),
        skipped(last="selp.b64 x, 0, w, n; BB0_2: "),
        skipped(rest="@n bra BB0_4; "),  # What it says of null is asked again.
        skipped(rest="@o bra BB0_1; "),
        skipped().replace("@o", "@!o"),
    ],
)
def test_other_branches_stay(text: str) -> None:
    assert faster(text, straight=True) == text


def test_wide_multiplications_that_follow_each_other() -> None:
    text = "mad.wide.s32 a, b, 8, c; mad.wide.u32 d, e, 4, c; BB0_1: mad.wide.s32 f, b, 8, c; "
    alone = "mul.wide.s32 a, b, 8; add.s64 a, c, a; mul.wide.u32 d, e, 4; add.s64 d, c, d; "
    assert faster(text, straight=True) == f"{alone}BB0_1: mul.wide.s32 f, b, 8; add.s64 f, c, f; "


def test_a_wide_multiplication_is_alone() -> None:
    text = "mad.wide.s32 a, b, 8, c; @p mad.wide.s32 d, b, 8, c; mad.wide.u32 e, b, 16, e; mad.wide.s32 f, b, g, c; "
    assert faster(text, straight=True) == text.replace(
        "mad.wide.s32 a, b, 8, c; ", "mul.wide.s32 a, b, 8; add.s64 a, c, a; "
    )


LOOK_UP = """
@state = dso_local addrspace(4) externally_initialized global { i64, i64, ptr } zeroinitializer, align 8
@llvm.compiler.used = appending global [1 x ptr] [ptr addrspacecast (ptr addrspace(4) @state to ptr)]
define ptr @NAME(ptr %p, i32 %pe) {
  %start = load i64, ptr addrspace(4) @state, align 8
  %at = ptrtoint ptr %p to i64
  %before = icmp ult i64 %at, %start
  %far = sub i64 %at, %start
  %size = load i64, ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @state, i64 8), align 8
  %behind = icmp uge i64 %far, %size
  %outside = or i1 %before, %behind
  br i1 %outside, label %done, label %inside
inside:
  %table = load ptr, ptr addrspace(4) getelementptr (i8, ptr addrspace(4) @state, i64 16), align 8
  %index = sext i32 %pe to i64
  %entry = getelementptr inbounds i64, ptr %table, i64 %index
  %global = addrspacecast ptr %entry to ptr addrspace(1)
  %base = load i64, ptr addrspace(1) %global, align 8, !invariant.load !0
  %none = icmp eq i64 %base, 0
  %there = add i64 %base, %far
  %found = inttoptr i64 %there to ptr
  %chosen = select i1 %none, ptr null, ptr %found
  br label %done
done:
  %result = phi ptr [ null, %0 ], [ %chosen, %inside ]
  ret ptr %result
}
!0 = !{}
"""
"""As NVSHMEM has it."""


@pytest.mark.parametrize(("name", "branches"), [("nvshmem_ptr", 0), ("another", 1)])
def test_a_look_up_does_not_branch(tmp_path: Path, name: str, branches: int) -> None:
    path = tmp_path / "look_up.ll"
    path.write_text(LOOK_UP.replace("NAME", name))
    made = assembled(name, ("i64", "i32"), "i64", bitcode.pieces_of(path, [name]), 90)
    assert made is not None
    assert len(re.findall(r"\bbra\b", made)) == branches
    assert made.count("ld.global") == made.count("setp.ge.u64") == made.count("mul.wide.s32") == 1
    assert "setp.lt" not in made
    assert "mad.wide" not in made


@triton.jit
def tell(x_ptr, signal_ptr, n):
    tl.store(dl.symm_at(x_ptr, 1), n)
    dl.notify(signal_ptr, 1, signal=1, comm_scope="inter_node")


def test_a_signal_is_not_looked_at_before_it_is_stored(compiled: Compile) -> None:
    """Where there is no network: it would be stored to 0, which is an error of the GPU."""
    made = compiled(tell, "*i32", "*i64", "i32")
    assert count(made, r"\bbra\b") == count(made, r"\btrap\b") == 0
    assert count(made, r"st\.release\.sys\.global\.b64") == 1
    assert re.search(r"setp\.eq\.u32 p, i, 0; @p st\.release", made.asm["ptx"])
