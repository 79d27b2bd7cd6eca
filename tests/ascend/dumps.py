# SPDX-License-Identifier: MIT
"""The stage dumps of docs/ascend.md, made by the tools themselves.

    python -m tests.ascend.dumps       # in the environment of `tox run -e triton-ascend`; rewrites the page

A dump lies between `<!-- dump: name -->` and `<!-- end dump -->`.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import triton.language as tl

import triton_dist
import triton_dist.language as dl
from triton_dist.backends.ascend import offline

PAGE = Path(__file__).parents[2] / "docs" / "ascend.md"
_DUMP = re.compile(r"(<!-- dump: (\w+) -->\n).*?(<!-- end dump -->)", re.DOTALL)
SIGNATURE = {"data": "*fp32", "sig": "*i32", "out": "*fp32"}


@triton_dist.jit
def shift(data, sig, out, BLOCK: tl.constexpr):
    me = dl.rank()
    right = (me + 1) % dl.num_ranks()
    i = tl.arange(0, BLOCK)
    tl.store(dl.symm_at(data, right) + BLOCK + i, tl.load(data + i))
    dl.notify(sig, right, signal=1, sig_op="set")
    token = dl.wait(sig, 1, "sys", "acquire", waitValue=1)
    arrived = dl.consume_token(data + BLOCK, token)
    tl.store(out + i, tl.load(arrived + i))


def dumps() -> dict[str, str]:
    """Each block of the page."""
    stages = offline.stages(shift, SIGNATURE, {"BLOCK": 64})
    source = inspect.getsource(shift.fn)
    blocks = {name: _without_locations(text) for name, text in stages.items()}
    compiled = offline.lowered(stages["linalg"])
    blocks["calls"] = "\n".join(line.strip() for line in compiled.splitlines() if "aclshmem" in line)
    blocks["link"] = "\n".join(sorted(offline.calls(stages["linalg"])))
    return {"kernel": f"```python\n{source.rstrip()}\n```", **{name: _fenced(text) for name, text in blocks.items()}}


def _fenced(text: str) -> str:
    return f"```mlir\n{text.strip()}\n```"


def _without_locations(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith("#loc")]
    return re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", "\n".join(lines))


def render(text: str) -> str:
    """The page with its dumps as they should be."""
    found = dumps()
    return _DUMP.sub(lambda match: f"{match[1]}\n{found[match[2]]}\n\n{match[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
