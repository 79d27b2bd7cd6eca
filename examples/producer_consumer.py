# SPDX-License-Identifier: MIT
"""A queue across PEs: every PE sends rows to the next one while it consumes those of the one before.

The queue is shorter than the stream, so its slots are used again and again.

python examples/producer_consumer.py -n 4              # the PEs are threads
triton-dist run -n 4 examples/producer_consumer.py     # the PEs are processes
"""

from __future__ import annotations

import argparse

import torch

from triton_dist import shmem
from triton_dist.kernels import ProducerConsumer
from triton_dist.testing import positive, run_script


def check(rows: int, length: int, slots: int, calls: int) -> None:
    """Send other rows in every call; what arrives must be twice what the PE before sent."""
    me, pes = shmem.my_pe(), shmem.n_pes()
    with ProducerConsumer(length, torch.float32, slots=slots, producers=3, consumers=2) as queue:
        for call in range(calls):
            received = queue(rows_of(me, call, rows, length), scale=2.0)
            expected = 2.0 * rows_of((me - 1) % pes, call, rows, length)
            torch.testing.assert_close(received, expected, rtol=0, atol=0)


def rows_of(pe: int, call: int, rows: int, length: int) -> torch.Tensor:
    x = torch.randn(rows, length, generator=torch.Generator().manual_seed(1000 * call + pe))
    return x.to(shmem.device())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--pes", type=positive, default=4, help="PEs, unless a launcher says how many")
    parser.add_argument("--rows", type=positive, default=101, help="rows that a PE sends in a call")
    parser.add_argument("--length", type=positive, default=1500, help="elements of a row")
    parser.add_argument("--slots", type=positive, default=4, help="rows that the queue holds")
    parser.add_argument("--calls", type=positive, default=3)
    args = parser.parse_args()

    def on_each_pe() -> None:
        check(args.rows, args.length, args.slots, args.calls)
        if shmem.my_pe() == 0:
            laps = args.rows * args.calls // args.slots
            print(f"queue: {args.calls} calls of {args.rows} rows, {laps} laps of its slots: equal to torch")

    run_script(on_each_pe, args.pes)


if __name__ == "__main__":
    main()
