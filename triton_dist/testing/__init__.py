# SPDX-License-Identifier: MIT
"""Running a function on several PEs, and choosing tests by back end.

    from triton_dist.testing import run_pes

    def ring(pe):
        ...
        return value

    assert run_pes(ring, 4) == [...]

`triton_dist.testing.plugin` is a pytest plugin with the fixture `backend` and the marker `backends`.
"""

from __future__ import annotations

from triton_dist.testing.processes import Outcome, run_processes
from triton_dist.testing.script import positive, run_script
from triton_dist.testing.threads import run_pes

PE_COUNTS = (1, 2, 3, 4)
"""World sizes that every kernel is tested at: one, even, odd, several."""

__all__ = ["PE_COUNTS", "Outcome", "positive", "run_pes", "run_processes", "run_script"]
