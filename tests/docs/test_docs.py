# SPDX-License-Identifier: MIT
"""The documentation says what is there: generated parts are fresh, links and paths exist, code is Python."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]

_spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
assert _spec is not None
assert _spec.loader is not None
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_are_fresh(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert generate.render(text) == text, "run: python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_exist(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target
    for path in re.findall(r"`((?:triton_dist|tests|docs|examples|benchmarks)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_is_python(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        ast.parse(textwrap.dedent(code))


def test_docstring_sections_become_markdown() -> None:
    docstring = "What it does.\n\nArgs:\n    a, b: two\n        of them.\n\nReturns:\n    It.\n\nExample:\n    f(a)"
    assert generate.markdown(docstring) == (
        "What it does.\n\n**Args:**\n\n- `a`, `b`: two\n  of them.\n\n**Returns:**\nIt.\n\n```python\nf(a)\n```"
    )


RUN = ("README.md", "docs/device_library.md", "docs/host_api.md", "docs/operations.md")
"""Their Python, one block after the other, is a program; a comment behind a `print` is what it prints."""


@pytest.mark.parametrize("backend", ["cpu", "cuda", "ascend"])
@pytest.mark.parametrize("page", RUN)
def test_examples_do_what_they_say(page: str, backend: str, tmp_path: Path) -> None:
    code = "".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL))
    expected = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert code.count("print(") == len(expected)
    script = tmp_path / "example.py"
    script.write_text(code, encoding="utf-8")
    environment = {**os.environ, "TRITON_DIST_BACKEND": backend}
    command = [sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
