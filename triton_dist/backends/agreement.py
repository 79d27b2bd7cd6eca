# SPDX-License-Identifier: MIT
"""Whether all PEs make the same collective call, for libraries that do not look.

OpenSHMEM leaves it undefined what follows when PEs allocate unequal sizes (1.5, 9.3.1): mostly addresses that are no
longer the same on all PEs, and wrong numbers long after.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from triton_dist.errors import CollectiveMismatch
from triton_dist.shmem.host.control import name_pes

if TYPE_CHECKING:
    import torch

    from triton_dist.backends.base import RuntimeAdapter

ROW_BYTES = 512
"""What a PE says: a digest, and as much as fits of the words that it is of."""
_DIGEST_BYTES = 16


class Agreement:
    """Every PE writes what it calls into every other's memory, and after a barrier each looks at all of it.

    There are two tables, used in turn: a PE that is one call ahead does not touch what another one still reads.
    """

    def __init__(
        self, adapter: RuntimeAdapter, allocate: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]
    ) -> None:
        """`allocate`: makes symmetric zeros, asking nobody. It is called once, by the first `check`."""
        self._adapter, self._allocate = adapter, allocate
        self._tables: torch.Tensor | None = None
        self._number = 0

    @property
    def tensors(self) -> int:
        """How many were allocated."""
        return int(self._tables is not None)

    def check(self, call: str, where: str) -> None:
        """Collective: raise on every PE unless all make this `call`.

        Raises:
            CollectiveMismatch: says what each PE calls, and where.
        """
        import torch

        adapter, pes = self._adapter, self._adapter.n_pes()
        if self._tables is None:
            self._tables = self._allocate((2, pes, ROW_BYTES), torch.uint8)
        self._number += 1
        table = self._tables[self._number % 2]
        row = torch.frombuffer(bytearray(self._row(call, where)), dtype=torch.uint8).to(table.device)
        for pe in range(pes):
            adapter.put(table[adapter.my_pe()], row, pe)
        adapter.barrier_all()
        rows = [bytes(said.tolist()) for said in table.cpu()]
        if len({said[:_DIGEST_BYTES] for said in rows}) > 1:
            raise CollectiveMismatch(pe=adapter.my_pe(), calls=_listed(rows))

    def _row(self, call: str, where: str) -> bytes:
        # What was said in an earlier call is not what is said in this one.
        digest = hashlib.blake2b(f"{self._number} {call}".encode(), digest_size=_DIGEST_BYTES).digest()
        return (digest + f"{call} at {where}".encode())[:ROW_BYTES].ljust(ROW_BYTES, b"\0")


def _listed(rows: Sequence[bytes]) -> str:
    """Each different call, with its PEs, a line each."""
    groups: dict[str, list[int]] = {}
    for pe, row in enumerate(rows):
        words = row[_DIGEST_BYTES:].rstrip(b"\0").decode(errors="replace")
        groups.setdefault(words or "no call that PEs agree on", []).append(pe)
    return "\n".join(f"  {name_pes(pes)}: {call}" for call, pes in groups.items())
