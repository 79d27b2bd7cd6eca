# SPDX-License-Identifier: MIT
"""The way of `hivm.hir.custom` through triton-ascend 3.2, whose TTIR-to-Linalg program does not know it.

Before (`scalars`): a custom op becomes a `tt.extern_elementwise` on scalars, pointers passed as i64. The program leaves
it alone. After (`linalg`): each is found in the Linalg module and becomes the custom op again, with the memref that an
i64 came from in the pointer's place.
"""

from triton_dist.backends.ascend.placeholders.linalg import restore
from triton_dist.backends.ascend.placeholders.scalars import replaced

__all__ = ["replaced", "restore"]
