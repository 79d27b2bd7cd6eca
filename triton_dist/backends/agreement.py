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
from triton_dist.shmem.host.control import name_pes, shortened

if TYPE_CHECKING:
    import torch

    from triton_dist.backends.base import RuntimeAdapter

ROW_BYTES = 512
"""What a PE says: a digest, the number of the meeting, and as much as fits of the words that the digest is of."""
_DIGEST_BYTES = 16
_HEAD_BYTES = _DIGEST_BYTES + 8
_WHERE_BYTES = 128


class Agreement:
    """Every PE writes what it calls into every other's memory, and after a barrier each looks at all of it.

    There are two tables, used in turn: a PE that is one meeting ahead does not touch what another one still reads.

    The program's own barriers are meetings too, and counted. So where a PE is in a barrier while others agree, these
    hear of it; and the next meeting has the same number on all PEs again, so none finds words that were said before.
    """

    def __init__(
        self,
        adapter: RuntimeAdapter,
        allocate: Callable[[tuple[int, ...], torch.dtype], torch.Tensor],
        barrier: Callable[[], None],
    ) -> None:
        """Collective. `allocate`: makes symmetric zeros; `barrier`: meets all PEs. Neither asks for agreement."""
        import torch

        self._adapter, self._barrier, self._met = adapter, barrier, 0
        self._tables = allocate((2, adapter.n_pes(), ROW_BYTES), torch.uint8)

    def barrier_all(self) -> None:
        """Collective: a barrier of the program."""
        self._met += 1
        self._barrier()

    def check(self, call: str, where: str) -> None:
        """Collective: raise on every PE unless all make this `call`.

        Raises:
            CollectiveMismatch: says what each PE calls, and where.
        """
        import torch

        adapter, number = self._adapter, self._met + 1
        table = self._tables[number % 2]
        row = torch.frombuffer(bytearray(_row(number, call, where)), dtype=torch.uint8).to(table.device)
        for pe in range(adapter.n_pes()):
            adapter.put(table[adapter.my_pe()], row, pe)
        self.barrier_all()
        rows = [bytes(said.tolist()) for said in table.cpu()]
        if len({said[:_DIGEST_BYTES] for said in rows}) > 1:
            raise CollectiveMismatch(pe=adapter.my_pe(), calls=_listed(number, rows))


def _row(number: int, call: str, where: str) -> bytes:
    # What was said at an earlier meeting is not what is said at this one.
    digest = hashlib.blake2b(_bytes(f"{number} {call}"), digest_size=_DIGEST_BYTES).digest()
    place = _bytes(f" at {where}")[-_WHERE_BYTES:]
    words = shortened(_bytes(call), ROW_BYTES - _HEAD_BYTES - len(place)) + place
    return (digest + number.to_bytes(8, "little") + words).ljust(ROW_BYTES, b"\0")


def _bytes(text: str) -> bytes:
    # The name of a file need not be valid text.
    return text.encode(errors="backslashreplace")


def _listed(number: int, rows: Sequence[bytes]) -> str:
    """Each different call, with its PEs, a line each. Calls may differ where their words were left out."""
    groups: dict[tuple[bytes, str], list[int]] = {}
    for pe, row in enumerate(rows):
        said = int.from_bytes(row[_DIGEST_BYTES:_HEAD_BYTES], "little") == number
        words = row[_HEAD_BYTES:].rstrip(b"\0").decode(errors="replace")
        # A row of an earlier meeting says nothing of this one.
        groups.setdefault((row[:_DIGEST_BYTES], words) if said else (b"", _ELSEWHERE), []).append(pe)
    return "\n".join(f"  {name_pes(pes)}: {call}" for (_, call), pes in groups.items())


_ELSEWHERE = "no call that PEs agree on; barrier_all, say"
