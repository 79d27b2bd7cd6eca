# SPDX-License-Identifier: MIT
"""The files of tests/filecheck/ascend: each RUN line pipes our opt tool into filecheck. `not` expects a failure, whose
message is what is checked."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options

from triton_dist.compiler import opt

FILES = sorted((Path(__file__).parents[1] / "filecheck" / "ascend").glob("*.mlir"))
RUN = re.compile(r"^// RUN: (?P<not>not )?triton-dist opt (?P<opt>.*) %s (?:2>&1 )?\| filecheck %s ?(?P<check>.*)$", re.MULTILINE)


def run_opt(arguments: list[str]) -> tuple[int, str]:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        status = opt.main(arguments)
    return status, out.getvalue()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_file(file: Path, tmp_path: Path) -> None:
    runs = list(RUN.finditer(file.read_text().replace("opt %s", "opt  %s")))
    assert runs, "no RUN line"
    for run in runs:
        status, text = run_opt([*shlex.split(run["opt"]), str(file)])
        assert (status != 0) == bool(run["not"]), text
        printed = tmp_path / "out"
        printed.write_text(text)
        options = parse_argv_options(["filecheck", str(file), "--input-file", str(printed), *shlex.split(run["check"])])
        assert Matcher.from_opts(options).run() == 0, text
