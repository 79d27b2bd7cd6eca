# SPDX-License-Identifier: MIT
# ruff: noqa: E501  (a line of IR stays one line)
"""`triton-dist opt` and passes by name."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from triton_dist import ir
from triton_dist.compiler import pipeline
from triton_dist.compiler.opt import main
from triton_dist.errors import PassError, UnknownPass

MODULE = """
module {
  tt.func public @f(%p: !tt.ptr<i32>, %i: i32) {
    %r = tt.extern_elementwise %i {libname = "distributed", libpath = "", pure = true, symbol = "distributed.get_rank"} : (i32) -> i32 loc("k.py":3:1)
    tt.store %p, %r : !tt.ptr<i32> loc("k.py":4:1)
    tt.return
  }
}
"""


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch):
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def test_reads_stdin(stdin, capsys: pytest.CaptureFixture[str]):
    stdin(MODULE)
    assert main([]) == 0
    assert "tt.store %p, %r : !tt.ptr<i32>\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["k.mlir", "k.ttir"])
def test_reads_a_file_and_runs_passes(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / name).write_text(MODULE)
    passes = "raise-distributed-carriers,convert-triton-distributed-to-host"
    assert main(["-p", passes, str(tmp_path / name)]) == 0
    assert 'symbol = "host_shmem_my_pe"' in capsys.readouterr().out


def test_takes_what_xdsl_opt_takes(stdin, capsys: pytest.CaptureFixture[str]):
    stdin(MODULE)
    assert main(["--print-op-generic", "--print-debuginfo", "-p", "raise-distributed-carriers"]) == 0
    out = capsys.readouterr().out
    assert '"distributed.get_rank"(%i) : (i32) -> i32 loc(#loc' in out
    assert 'loc("k.py":3:1)' in out
    stdin(f"{MODULE}// -----\n{MODULE}")
    assert main(["--split-input-file"]) == 0
    assert capsys.readouterr().out.count("tt.func") == 2


def test_xdsls_passes_are_there_too(stdin, capsys: pytest.CaptureFixture[str]):
    stdin("module { tt.func @f(%i: i32) { %a = arith.addi %i, %i : i32 tt.return } }")
    assert main(["-p", "dce"]) == 0
    assert "addi" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "text", "message"),
    [
        (["-p", "no-such-pass"], MODULE, "no-such-pass"),
        (["/no/such/file.mlir"], MODULE, "No such file"),
        ([], "module { tt.what }", "tt.what is not registered"),
        ([], "module { tt.func @f() { tt.return", "stdin:1:"),
        ([], 'module { %a = "distributed.get_rank"(%a) : (i32) -> i64 }', "i32"),
        (["-p", "raise-distributed-carriers"], MODULE.replace("get_rank", "get_tired"), "k.py:3: malformed carrier"),
    ],
)
def test_mistakes_are_one_message(args: list[str], text: str, message: str, stdin, capsys: pytest.CaptureFixture[str]):
    stdin(text)
    assert main(args) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message.lower() in captured.err.lower()


def test_passes_by_name():
    found = pipeline.available()
    assert {"raise-distributed-carriers", "convert-triton-distributed-to-host"} <= found.keys()
    for name in ("raise-distributed-carriers", "convert-triton-distributed-to-host"):
        assert pipeline.load(name).name == name
    with pytest.raises(UnknownPass, match="raise-distributed-carriers"):
        pipeline.load("no-such-pass")


def test_a_pass_that_breaks_the_module_is_named(monkeypatch: pytest.MonkeyPatch):
    from xdsl.passes import ModulePass

    class Breaks(ModulePass):
        name = "breaks"

        def apply(self, ctx, op):
            store = next(inner for inner in op.walk() if inner.name == "tt.store")
            store.operands = store.operands[:1]

    monkeypatch.setattr(pipeline, "load", lambda name: Breaks)
    with pytest.raises(PassError, match="after the pass breaks"):
        ir.run_passes(ir.parse(MODULE), ["breaks"])


def test_importing_the_package_imports_no_xdsl():
    import subprocess

    code = "import sys, triton_dist.ir, triton_dist.compiler; sys.exit('xdsl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_module_takes_the_name_of_a_function():
    """A submodule called `parse` would replace the function when it is imported."""
    package = Path(ir.__file__).parent
    modules = {path.stem for path in package.iterdir()}
    functions = {name for name, value in vars(ir).items() if callable(value)}
    assert not modules & functions
