# SPDX-License-Identifier: MIT
"""Fill the parts of the documentation that repeat what the code says.

python docs/generate.py            # write them
python docs/generate.py --check    # fail if one is out of date

A part lies between `<!-- generated: name -->` and `<!-- end -->` in a page of this folder.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

from triton_dist import knobs
from triton_dist import language as dl
from triton_dist.backends.ascend import optable, symbols
from triton_dist.language.extra import records

DOCS = Path(__file__).parent
OPS = ("wait", "consume_token", "rank", "num_ranks", "symm_at", "notify", "extern_call")
SIGNALS = ("signal_slot", "signal_stride", "wait_slots", "signal_stride_bytes")

_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SECTION = re.compile(r"^(Args|Returns|Memory order|Per back end|Example):\s*(.*)$")


def environment() -> str:
    """A table of all settings."""
    rows = ["| variable | in Python | default | meaning | values |", "|---|---|---|---|---|"]
    for name, knob in knobs.all_knobs().items():
        default = "not set" if knob.default is None else f"`{_spelt(knob.default)}`"
        rows.append(f"| `{knob.variable}` | `knobs.{name}` | {default} | {knob.meaning} | {knob.kind.expected} |")
    return "\n".join(rows)


def _spelt(value: object) -> str:
    """A default as one would write it in the environment."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int) and value and value % (1 << 30) == 0:
        return f"{value >> 30}G"
    return str(value)


def functions(names: tuple[str, ...]) -> str:
    """A section for each function of `dl`, from its docstring."""
    return "\n\n".join(_function(name) for name in names)


def _function(name: str) -> str:
    function = inspect.unwrap(getattr(dl, name))
    parameters = [p for p in inspect.signature(function).parameters.values() if not p.name.startswith("_")]
    shown = ", ".join(p.name if p.default is p.empty else f"{p.name}={_default(p.default)}" for p in parameters)
    return f"### `dl.{name}({shown})`\n\n{markdown(inspect.getdoc(function) or '')}"


def _default(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def markdown(docstring: str) -> str:
    """A docstring's sections as Markdown: arguments as a list, the example as code, the rest as paragraphs."""
    out: list[str] = []
    section = ""
    for line in docstring.splitlines():
        found = _SECTION.match(line)
        if found:
            out += ["```"] if section == "Example" else []
            section = found[1]
            out += ["```python"] if section == "Example" else [f"**{section}:** {found[2]}".rstrip()]
            out += [""] if section == "Args" else []
        else:
            out.append(_line(section, line))
    out += ["```"] if section == "Example" else []
    return re.sub(r"\n+(\n```\n|\n```$)", r"\1", re.sub(r"\n{3,}", "\n\n", "\n".join(out)))


def _line(section: str, line: str) -> str:
    body = line[4:] if line.startswith("    ") else line
    if section == "Args" and (named := re.match(r"(\w[\w, ]*): (.*)", body)):
        return f"- `{named[1].replace(', ', '`, `')}`: {named[2]}"
    if section == "Args":
        return "  " + body.strip() if body.strip() else ""
    return body


PARTS: dict[str, Callable[[], str]] = {
    "ascend_library": symbols.library_table,
    "ascend_ops": optable.op_table,
    "device_functions": records.function_table,
    "device_symbols": records.support_table,
    "environment": environment,
    "ops": lambda: functions(OPS),
    "signals": lambda: functions(SIGNALS),
}


def render(text: str) -> str:
    """A page's text with its generated parts as they should be."""
    return _PART.sub(lambda m: f"{m[1]}\n{PARTS[m[2]]()}\n\n{m[3]}", text)


def main() -> None:
    stale = []
    for page in sorted(DOCS.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = render(before)
        if before != after:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(after, encoding="utf-8")
    if stale and "--check" in sys.argv:
        raise SystemExit(f"out of date: {', '.join(stale)}. Run: python docs/generate.py")


if __name__ == "__main__":
    main()
