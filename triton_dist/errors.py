# SPDX-License-Identifier: MIT
"""Every mistake a user can make, one class each, with its message.

A class carries a `template`; its fields are the constructor's keyword arguments. A message says what happened, where,
and what to do next. Anything a user can trigger raises one of these, never a bare assert.
"""

from __future__ import annotations

from typing import ClassVar


class TritonDistError(Exception):
    """Base of all errors of this package."""

    template: ClassVar[str] = "{detail}"

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(self.template.format(**fields))

    def __reduce__(self):
        return _rebuild, (type(self), self.fields)


def _rebuild(cls: type[TritonDistError], fields: dict[str, object]) -> TritonDistError:
    return cls(**fields)


# Compiling


class CompileError(TritonDistError):
    """A kernel cannot be compiled. `where` is the user's file:line, or the IR location."""

    template = "{where}: {detail}"


class UnsupportedOpError(CompileError):
    template = "{where}: the {backend} back end does not support {op}: {detail}"


# Running


class ShmemError(TritonDistError):
    """Base of the symmetric heap's and the collectives' errors."""


class KernelAborted(TritonDistError):
    """A kernel ended early, on purpose."""


class WaitTimeout(KernelAborted):
    template = (
        "PE {pe}, program {program}, {where}: waited {seconds:.1f} s for signal {slot}: expected {expected}, "
        "present value {seen}. Check that some PE notifies this slot with that value; "
        "TRITON_DIST_WAIT_TIMEOUT sets the deadline in seconds."
    )


class PeerDied(KernelAborted):
    template = "PE {pe}: PE {dead} is gone ({detail}), so {what} cannot finish."
