# SPDX-License-Identifier: MIT
"""One-shot GEMM-AllReduce: C = the sum of A @ B over all PEs, with the same bits on every PE.

python examples/gemm_all_reduce.py -n 4                # the PEs are threads
triton-dist run -n 4 examples/gemm_all_reduce.py       # the PEs are processes
"""

from __future__ import annotations

import argparse

import torch

from triton_dist import shmem
from triton_dist.kernels import AllGather, GemmAllReduce
from triton_dist.testing import positive, run_script

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def check(m: int, n: int, k: int, dtype: torch.dtype, rounds: int) -> float:
    """Reduce other products in every round; returns the largest error against torch, relative to the result."""
    me, pes, errors = shmem.my_pe(), shmem.n_pes(), [torch.zeros((), dtype=torch.double, device=shmem.device())]
    with GemmAllReduce(m, n) as multiply, AllGather((m, n), dtype) as gather:
        for number in range(rounds):
            left = [matrix(m, k, dtype, 1000 * number + pe) for pe in range(pes)]
            right = [matrix(k, n, dtype, 1000 * number + 500 + pe) for pe in range(pes)]
            result = multiply(left[me], right[me])
            expected = sum(a.double() @ b.double() for a, b in zip(left, right, strict=True))
            errors.append((result.double() - expected).abs().max() / expected.abs().max())
            everyones = gather(result)
            assert all(torch.equal(everyones[pe], result) for pe in range(pes)), f"PE {me}: not the same bits"
    worst = torch.stack(errors).max().item()  # nan, if one is
    # The sum is kept in fp32; what is left is the rounding of the result.
    assert worst < 8 * torch.finfo(dtype).eps, f"PE {me}: relative error {worst}"
    return worst


def matrix(rows: int, columns: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)).to(shmem.device(), dtype)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--pes", type=positive, default=4, help="PEs, unless a launcher says how many")
    parser.add_argument("--size", type=positive, nargs=3, default=(100, 130, 70), metavar=("M", "N", "K"))
    parser.add_argument("--dtype", choices=DTYPES, default="fp32")
    parser.add_argument("--rounds", type=positive, default=4)
    args = parser.parse_args()

    def on_each_pe() -> None:
        error = check(*args.size, DTYPES[args.dtype], args.rounds)
        if shmem.my_pe() == 0:
            print(f"GEMM-AllReduce: {args.rounds} rounds in {args.dtype}: relative error {error:.1e} to torch")
            print("All PEs have the same bits.")

    run_script(on_each_pe, args.pes)


if __name__ == "__main__":
    main()
