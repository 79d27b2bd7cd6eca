# SPDX-License-Identifier: MIT
"""The hook into triton-ascend, with a stand-in for its compiler class: what every version sees of us."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import triton
import triton.backends

from triton_dist import backends, ir, knobs
from triton_dist.backends.ascend import hook, placeholders, tools
from triton_dist.backends.ascend.adapter import AscendAdapter
from triton_dist.backends.ascend.placeholders import restore
from triton_dist.errors import (
    BadKnobValue,
    NoTritonAscend,
    PlaceholderError,
    TritonAscendRefused,
    UnknownTritonAscend,
    UnsupportedOpError,
)

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


def test_the_key_changes_with_the_sources_and_the_cores(compiler: Any, tmp_path: Path) -> None:
    hook.install()
    keys = {compiler().hash()}
    for cores in ("both", "table"):
        with knobs.scope(dot_free_cores=cores):
            keys.add(compiler().hash())
    assert len(keys) == 3
    package = Path(hook.__file__).parents[2]
    shutil.copytree(package, tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__"))
    before = hook._sources(tmp_path / "package")
    assert before == hook._sources()
    for changed in ("language/distributed_ops.py", "ir/parser.py", "backends/ascend/convert.py"):
        with (tmp_path / "package" / changed).open("a") as file:
            file.write("# edited\n")
        hook._sources.cache_clear()
        after = hook._sources(tmp_path / "package")
        assert after != before
        before = after


@pytest.mark.parametrize(
    ("text", "found"), [("3.2.0", (3, 2)), ("3.5.0rc1+git12", (3, 5)), ("3.5rc1", (3, 5)), ("unknown", (0, 0))]
)
def test_any_version_can_be_read(text: str, found: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "__version__", text)
    assert hook.version() == found


def test_a_version_without_a_number_is_an_error_for_distributed_kernels_only(
    compiler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton, "__version__", "unknown")
    hook.install()
    stage = stages_of(compiler)["ttadapter"]
    assert stage("module {}", {}) == ("module {}", {})
    with pytest.raises(UnknownTritonAscend, match=r"triton-ascend unknown: .*known are"):
        stage(CARRIERS, {})


def test_the_cores_can_be_chosen_for_a_launch() -> None:
    def cores() -> set[str]:
        return set(re.findall(r"#hivm.tcore_type<(\w+)>", ir.print_module(hook.converted(CARRIERS))))

    assert cores() == {"VECTOR"}
    with knobs.scope(dot_free_cores="both"):
        assert cores() == {"CUBE_AND_VECTOR"}
    with pytest.raises(BadKnobValue, match="vector, both or table"), knobs.scope(dot_free_cores="cube"):
        pass


def test_what_3_2_refuses_is_said_with_its_first_error(compiler: Any) -> None:
    printed = b"k.py:3:1: warning: impure elementwise op!\nk.py:4:2: error: no such cast\nStack dump: ...\n"

    def stage(module: Any, metadata: Any) -> str:
        raise subprocess.CalledProcessError(134, ["triton-adapter-opt", "a very long command line"], stderr=printed)

    with pytest.raises(TritonAscendRefused, match=r"placeholders: k\.py:4:2: error: no such cast") as caught:
        hook.by_placeholders(CARRIERS, None, stage, {})
    assert "command line" not in str(caught.value)


POINTERS = """\
module {
  tt.func public @k(%p: !tt.ptr<f32>, %d: !tt.ptr<f64>, %a: i64, %s: !tt.ptr<i32>) {
    %c1 = arith.constant 1 : i32
    %r = tt.extern_elementwise %p, %c1 {libname = "distributed", libpath = "", pure = true, symbol = "distributed.symm_at"} : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
BODY
    tt.return
  }
}
"""  # noqa: E501


def replaced(*lines: str) -> str:
    return placeholders.replaced(hook.converted(POINTERS.replace("BODY", "\n".join(lines))))


def test_arithmetic_on_addresses_of_any_type() -> None:
    """A pointer that the kernel made of a number is not ours, and may point to what the library has no name for."""
    for type_, size in (("f64", 8), ("i1", 1), ("f8E4M3FN", 1), ("bf16", 2)):
        made = f"%q = tt.int_to_ptr %a : i64 -> !tt.ptr<{type_}>"
        text = replaced(made, f"%t = tt.addptr %q, %c1 : !tt.ptr<{type_}>, i32", f"%v = tt.load %t : !tt.ptr<{type_}>")
        assert f"arith.constant {size} : i64" in text


def test_tensors_of_pointers_that_were_numbers_stay() -> None:
    lines = (
        "%n = tt.splat %a : i64 -> tensor<4xi64>",
        "%q = tt.int_to_ptr %n : tensor<4xi64> -> tensor<4x!tt.ptr<f32>>",
        "%o = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>",
        "%t = tt.addptr %q, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>",
        "%v = tt.load %t : tensor<4x!tt.ptr<f32>>",
    )
    assert "tt.addptr" in replaced(*lines)


def test_casts_of_pointers_are_of_addresses() -> None:
    after = replaced("%h = tt.bitcast %r : !tt.ptr<f32> -> !tt.ptr<f16>", "%v = tt.load %h : !tt.ptr<f16>")
    assert "tt.bitcast" not in after
    assert "i64 -> !tt.ptr<f16>" in after


def test_a_block_pointer_on_an_address_is_an_error_with_the_users_line() -> None:
    block = "%b = tt.make_tensor_ptr %r, [%a, %a], [%a, %a], [%c1, %c1] {order = array<i32: 1, 0>} : <tensor<4x4xf32>>"
    with pytest.raises(UnsupportedOpError, match=r"file.py:7: .*tt.make_tensor_ptr: triton-ascend 3.2 makes"):
        replaced(f'{block} loc("file.py":7:1)', "%v = tt.load %b : !tt.ptr<tensor<4x4xf32>>")


def test_a_cast_pointer_is_a_memref_of_its_own_type() -> None:
    text = restore(ORIGIN + line("%4, %3", "f16,,f16", "i64, i32", "i64")).splitlines()
    assert text[3] == "  %custom_2 = hivm.hir.pointer_cast(%4) [%custom_1] : memref<?xf16>"
    moved = ORIGIN.replace("memref<?xf32>", "memref<1xf32, strided<[1], offset: 64>>")
    with pytest.raises(PlaceholderError, match="is cast to f16 after an offset; cast it first"):
        restore(moved + line("%4, %3", "f16,,f16", "i64, i32", "i64"))


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
