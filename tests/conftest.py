# SPDX-License-Identifier: MIT
"""What all tests share: the host, quiet OpenMP workers, and a Triton cache that lives as long as the run."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

# Before torch is imported: its OpenMP workers spin after every operation and would take the cores from the PEs.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Where a vendor's tool is found, tests still run on the host, unless they are told otherwise.
os.environ.setdefault("TRITON_DIST_BACKEND", "cpu")

pytest_plugins = ["triton_dist.testing.plugin"]

_made_cache: str | None = None
if "TRITON_CACHE_DIR" not in os.environ:
    # Set here in the controlling process, so the workers of a parallel run inherit and share it.
    _made_cache = os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-dist-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    del config
    if _made_cache is not None:
        shutil.rmtree(_made_cache, ignore_errors=True)
