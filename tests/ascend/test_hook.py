# SPDX-License-Identifier: MIT
"""The hook into triton-ascend, with a stand-in for its compiler class: what every version sees of us."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import triton.backends

from triton_dist import backends, knobs
from triton_dist.backends.ascend import hook, tools
from triton_dist.backends.ascend.adapter import AscendAdapter
from triton_dist.backends.ascend.placeholders import restore
from triton_dist.errors import NoTritonAscend, PlaceholderError, UnknownTritonAscend

CARRIERS = """\
module {
  tt.func public @k(%p: !tt.ptr<f32>, %s: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %me = tt.extern_elementwise %c0 {libname = "distributed", libpath = "", pure = true, symbol = "distributed.get_rank"} : (i32) -> i32
    %r = tt.extern_elementwise %p, %me {libname = "distributed", libpath = "", pure = true, symbol = "distributed.symm_at"} : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %v = tt.load %r : !tt.ptr<f32>
    tt.store %p, %v : !tt.ptr<f32>
    tt.return
  }
}
"""  # noqa: E501


class FakeCompiler:
    """The shape of triton-ascend's AscendBackend."""

    names = ("ttir", "ttadapter", "npubin")

    def add_stages(self, stages: dict[str, Any], options: Any, *rest: Any) -> None:
        del options, rest
        stages.update({name: lambda module, metadata: (str(module), metadata) for name in self.names})

    def hash(self) -> str:
        return "theirs"


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch):
    made = type("Compiler", (FakeCompiler,), {})
    monkeypatch.setitem(triton.backends.backends, "ascend", SimpleNamespace(compiler=made))
    with knobs.scope(backend="ascend"):
        yield made


def stages_of(compiler: Any) -> dict[str, Any]:
    stages: dict[str, Any] = {}
    compiler().add_stages(stages, None, None)
    return stages


def test_installed_once_and_in_the_cache_key(compiler: Any) -> None:
    assert hook.install()
    first = compiler.add_stages
    assert hook.install()
    assert compiler.add_stages is first
    assert compiler().hash().startswith("theirs-triton_dist-")


def test_nothing_to_install_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(triton.backends.backends, "ascend", raising=False)
    assert hook.install() is False


def test_only_ttadapter_changes_and_plain_kernels_do_not(compiler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "version", lambda: (3, 2))
    hook.install()
    stages = stages_of(compiler)
    assert list(stages) == ["ttir", "ttadapter", "npubin"]
    assert stages["ttadapter"]("module {}", {"a": 1}) == ("module {}", {"a": 1})


def test_3_2_gets_placeholders_and_loses_them(compiler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "version", lambda: (3, 2))
    seen: list[str] = []

    def stage(module: Any, metadata: Any) -> str:
        seen.append(str(module))
        return 'x\n    %0 = tt.extern_elementwise  {libname = "hivm.custom", libpath = "{hivm.k, ' + (
            'placeholder.pointers = \\22\\22, symbol = \\22f\\22}", pure = true, symbol = "f"} : () -> i32'
        )

    got = hook.distributed_first(stage, hook.route())(CARRIERS, {})
    assert got == 'x\n    %0 = hivm.hir.custom {hivm.k, symbol = "f"} "dist.f" -> i32'
    assert "hivm.hir.custom" not in seen[0]
    assert seen[0].count('libname = "hivm.custom"') == 2
    assert "tt.ptr_to_int" in seen[0]
    assert "tt.int_to_ptr" in seen[0]


def test_later_versions_get_the_module_with_custom_ops(compiler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their parser is not here; the text that it is given goes to the vendor's tool instead, if that is."""
    from triton._C.libtriton import ir as triton_ir

    texts: list[str] = []

    def parse(path: str, context: Any) -> Any:
        with open(path) as file:
            texts.append(file.read())
        return SimpleNamespace(context=None)

    monkeypatch.setattr(hook, "version", lambda: (3, 5))
    monkeypatch.setattr(hook, "_dialects_know_custom", lambda: True)
    monkeypatch.setattr(triton_ir, "parse_mlir_module", parse)

    class Module:
        context = "theirs"

        def __str__(self) -> str:
            return CARRIERS

    given = hook.distributed_first(lambda module, metadata: module, hook.route())(Module(), {})
    assert given.context == "theirs"
    assert texts[0].count("hivm.hir.custom") == 2
    if tools.find("bishengir-opt-a5"):
        assert tools.opt(texts[0]).count("hivm.hir.custom") == 2


def test_simt_only_has_no_way(compiler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler.names = ("ttir", "npubin")
    hook.install()
    stages = stages_of(compiler)
    with pytest.raises(UnknownTritonAscend, match="no stage ttadapter"):
        stages["npubin"](CARRIERS, {})


# The text after 3.2's program


def line(operands: str, pointers: str, types: str, result: str = "i32", symbol: str = "aclshmem_ptr_float") -> str:
    carried = f"placeholder.pointers = \\22{pointers}\\22, symbol = \\22{symbol}\\22"
    attributes = f"{{hivm.pipe = #hivm.pipe<PIPE_S>, {carried}}}"
    shown = f'{{libname = "hivm.custom", libpath = "{attributes}", pure = false, symbol = "{symbol}"}}'
    return f"  %9 = tt.extern_elementwise {operands} {shown} : ({types}) -> {result}"


ORIGIN = """\
  %intptr = memref.extract_aligned_pointer_as_index %arg2 : memref<?xf32> -> index
  %4 = arith.index_cast %intptr : index to i64
"""


def test_a_pointer_becomes_the_memref_it_came_from() -> None:
    text = restore(ORIGIN + line("%4, %3", "f32,,f32", "i64, i32", "i64")).splitlines()
    assert text[2].endswith('"dist.aclshmem_ptr_float" ins(%arg2, %3 : memref<?xf32>, i32) -> memref<?xf32>')
    assert text[2].startswith("  %custom_1 = hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_S>, symbol =")
    assert text[3] == "  %custom_2 = memref.extract_aligned_pointer_as_index %custom_1 : memref<?xf32> -> index"
    assert text[4] == "  %9 = arith.index_cast %custom_2 : index to i64"


def test_an_address_of_no_memref_becomes_one() -> None:
    text = restore(line("%4, %3", "f32,,none", "i64, i32", symbol="f")).splitlines()
    assert text[1] == "  %custom_2 = hivm.hir.pointer_cast(%4) [%custom_1] : memref<?xf32>"
    assert text[3].endswith('"dist.f" ins(%custom_2, %3 : memref<?xf32>, i32)')


def test_a_name_given_again_is_another_value() -> None:
    text = restore(ORIGIN + "  %4 = arith.addi %a, %b : i64\n" + line("%4", "f32,none", "i64", symbol="f"))
    assert "pointer_cast(%4)" in text


def test_locations_stay() -> None:
    text = restore(ORIGIN + line("%4, %3", "f32,,f32", "i64, i32", "i64") + " loc(#loc3)").splitlines()
    assert all(made.endswith(" loc(#loc3)") for made in text[2:])


def test_a_token_for_a_pointer_with_an_offset_is_refused() -> None:
    origin = ORIGIN.replace("memref<?xf32>", "memref<1xf32, strided<[1], offset: 64>>")
    symbol = "aclshmem_consume_token_float_ptr_1d"
    with pytest.raises(PlaceholderError, match="offset: 64"):
        restore(origin + line("%4, %3", "f32,,f32", "i64, i32", "i64", symbol))


def test_hardware_without_triton_ascend_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(triton.backends.backends, "ascend", raising=False)
    with pytest.raises(NoTritonAscend, match="TRITON_DIST_SIMULATE=1"):
        backends.get("ascend").adapter()


def test_the_adapter_of_an_npu(compiler: Any) -> None:
    assert isinstance(backends.get("ascend").adapter(), AscendAdapter)
