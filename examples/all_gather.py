# SPDX-License-Identifier: MIT
"""Push all-gather: every PE ends with the shards of all PEs.

python examples/all_gather.py -n 4                     # the PEs are threads
triton-dist run -n 4 examples/all_gather.py            # the PEs are processes
"""

from __future__ import annotations

import argparse

import torch

from triton_dist import shmem
from triton_dist.kernels import AllGather
from triton_dist.testing import positive, run_script


def check(elements: int, rounds: int) -> None:
    """Gather other shards in every round, and compare with what torch stacks."""
    with AllGather((elements,), torch.float32) as gather:
        for number in range(rounds):
            shards = [shard_of(pe, number, elements) for pe in range(shmem.n_pes())]
            gathered = gather(shards[shmem.my_pe()])
            torch.testing.assert_close(gathered, torch.stack(shards), rtol=0, atol=0)


def shard_of(pe: int, number: int, elements: int) -> torch.Tensor:
    x = torch.randn(elements, generator=torch.Generator().manual_seed(1000 * number + pe))
    return x.to(shmem.device())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--pes", type=positive, default=4, help="PEs, unless a launcher says how many")
    parser.add_argument("--elements", type=positive, default=100_003, help="elements of one shard")
    parser.add_argument("--rounds", type=positive, default=8)
    args = parser.parse_args()

    def on_each_pe() -> None:
        check(args.elements, args.rounds)
        if shmem.my_pe() == 0:
            print(f"all-gather: {args.rounds} rounds of {args.elements} elements a PE: equal to torch")

    run_script(on_each_pe, args.pes)


if __name__ == "__main__":
    main()
