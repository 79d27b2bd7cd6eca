# SPDX-License-Identifier: MIT
"""lit's configuration: `lit tests/filecheck`, or pytest, which runs it through test_lit.py.

`triton-dist` and `filecheck` are those beside the Python that runs lit.
"""

import os
import sys
from pathlib import Path

import lit.formats

config.name = "triton-dist"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # noqa: F821
# Without a terminal's width and colours, messages are the same everywhere.
config.environment.update(COLUMNS="200", NO_COLOR="1")  # noqa: F821
config.maxIndividualTestTime = 30  # noqa: F821
