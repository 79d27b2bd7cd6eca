# SPDX-License-Identifier: MIT
"""Kernels that use every construct of Triton's tutorials and language, for tests of the IR and of the engine.

    for entry in corpus.entries():
        text = corpus.build.ttir(entry)

A kernel is registered where it is written, with `@kernel(argument=type or constexpr, ...)`. Each is small, and most
compute something a test can check.
"""

from tests.corpus.registry import Entry, entries, get, kernel

__all__ = ["Entry", "entries", "get", "kernel"]
