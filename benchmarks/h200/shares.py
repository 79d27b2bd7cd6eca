# SPDX-License-Identifier: MIT
"""Is torch.matmul right on a share of a GPU? Only torch is here; CUDA_MPS_ACTIVE_THREAD_PERCENTAGE says the share.

Whole numbers from -2 to 2, of which each sum has 32: exact in every type.
"""

from __future__ import annotations

import torch

SIZES = ((48, 32, 320), (256, 32, 320), (1024, 32, 320), (1024, 1024, 1024), (4096, 512, 4096), (8192, 4096, 5504))
SUMMED = 32


def wrong(dtype: torch.dtype, m: int, k: int, n: int, generator: torch.Generator) -> float:
    """The share of elements that are."""
    a, b = (torch.randint(-2, 3, size, generator=generator).to("cuda", dtype) for size in ((m, k), (k, n)))
    a[:, SUMMED:] = 0
    expected = a[:, :SUMMED].double() @ b[:SUMMED].double()
    return ((a @ b).double() != expected).double().mean().item()


def main() -> None:
    generator = torch.Generator().manual_seed(1)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        found = (f"{m}x{k}x{n} {wrong(dtype, m, k, n, generator):.3f}" for m, k, n in SIZES)
        print(f"{sms} multiprocessors, {str(dtype).removeprefix('torch.')}, wrong: {', '.join(found)}", flush=True)


if __name__ == "__main__":
    main()
