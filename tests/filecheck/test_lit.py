# SPDX-License-Identifier: MIT
"""Runs the filecheck tests, one pytest test a file, in this process: starting the tool takes longer than a test.

`lit tests/filecheck` runs the same files as shell commands; one folder is run so here too.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options

from triton_dist.compiler import opt

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.mlir"))
RUN = re.compile(r"^// RUN: (.*)$", re.MULTILINE)


def run_opt(words: list[str], given: str) -> str:
    """The output of `[not] triton-dist opt ... [2>&1]`, of which the status must be what `not` says."""
    fails = words[0] == "not"
    arguments = [word for word in words[3 if fails else 2 :] if word != "2>&1"]
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given.encode()))
    try:
        with redirect_stdout(out), redirect_stderr(out if "2>&1" in words else err):
            status = opt.main(arguments)
    finally:
        sys.stdin = stdin
    assert (status != 0) == fails, out.getvalue() + err.getvalue()
    return out.getvalue()


def run_line(line: str, file: Path, tmp_path: Path) -> None:
    text = ""
    for command in line.replace("%s", str(file)).split(" | "):
        words = shlex.split(command)
        if words[0] != "filecheck":
            text = run_opt(words, text)
            continue
        printed = tmp_path / "output"
        printed.write_text(text)
        options = parse_argv_options([*words, "--input-file", str(printed)])
        assert Matcher.from_opts(options).run() == 0, text


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(HERE).with_suffix("")))
def test_filecheck(file: Path, tmp_path: Path):
    text = file.read_text()
    assert text.startswith(("// RUN: triton-dist opt ", "// RUN: not triton-dist opt "))
    for line in RUN.findall(text):
        assert "| filecheck %s" in line
        run_line(line, file, tmp_path)


def test_lit_runs_them_too():
    command = [sys.executable, "-c", "import lit.main; lit.main.main()", "-v", "--no-progress-bar", str(HERE / "opt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_enough_of_them():
    assert len(FILES) >= 80
    assert sum("invalid" in path.stem for path in FILES) >= 25
