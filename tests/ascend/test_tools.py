# SPDX-License-Identifier: MIT
"""Running the vendor's tools: where they are found, and what is said when they are not, refuse, or never end."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_dist.backends.ascend import offline, tools
from triton_dist.errors import VendorToolFailed, VendorToolMissing


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program of this text on PATH as a tool."""

    def put(tool: str, text: str, mode: int = 0o755) -> None:
        program = tmp_path / tool
        program.write_text(text)
        program.chmod(mode)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return put


def test_one_on_path_comes_first(on_path) -> None:
    on_path("bishengir-opt", "#!/bin/sh\ncat\n")
    assert tools.opt("module {}", tool="bishengir-opt") == "module {}"


def test_a_missing_tool_says_which_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(VendorToolMissing, match="bishengir-opt-a5"):
        tools.opt("module {}")


def test_a_refusal_has_the_tools_own_words(on_path) -> None:
    on_path("bishengir-opt", "#!/bin/sh\necho 'error: no such op' >&2\nexit 1\n")
    with pytest.raises(VendorToolFailed, match="bishengir-opt ended with status 1:\nerror: no such op"):
        tools.opt("module {}", tool="bishengir-opt")


def test_a_tool_that_never_ends_is_ended(on_path) -> None:
    on_path("bishengir-opt", "#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(VendorToolFailed, match=r"it ran for 0\.2 s"):
        tools.run("bishengir-opt", [], timeout=0.2)


def test_a_tool_of_another_machine_is_an_error(on_path) -> None:
    on_path("bishengir-opt", "\x7fELF of nothing")
    with pytest.raises(VendorToolFailed, match="Exec format error"):
        tools.run("bishengir-opt", [])


CRASHES = """\
#!/bin/sh
echo x >> {count}
if [ $(wc -l < {count}) -le {crashes} ]; then kill -SEGV $$; fi
echo 'IR Dump After convert-hivm-to-std' >&2
echo 'Cannot find hivmc' >&2
exit 1
"""


@pytest.mark.parametrize(("crashes", "lives"), [(0, True), (2, True), (100, False)])
def test_the_compiler_is_run_again_when_it_crashes(crashes: int, lives: bool, on_path, tmp_path: Path) -> None:
    count = tmp_path / "count"
    on_path("bishengir-compile", CRASHES.format(count=count, crashes=crashes))
    if lives:
        assert "IR Dump After" in offline.lowered("module {}")
    else:
        with pytest.raises(VendorToolFailed, match="status -11"):
            offline.lowered("module {}")
    assert len(count.read_text().splitlines()) == min(crashes + 1, offline.TRIES)
