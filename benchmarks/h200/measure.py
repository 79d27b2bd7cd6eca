# SPDX-License-Identifier: MIT
"""What is measured on H200s: signals, bandwidth, collectives, GEMMs with communication. Tables by PE 0."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import gemms
import signals
import sizes
import vendors
from common import Clock, Meeting, doing, run_main

from triton_dist import shmem


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--largest", type=int, default=256, help="MiB, of the collectives")
    parser.add_argument("--seconds", type=float, default=1e6, help="no further collective or GEMM after these")
    args = parser.parse_args()
    vendors.start_nccl()
    shmem.init()
    meeting = Meeting()
    clock, largest = Clock(meeting, args.seconds), args.largest << 20
    parts: dict[str, Callable[[], None]] = {
        "probe": vendors.probe,
        "probe_graph": vendors.probe_graph,
        "ping_pong": lambda: signals.ping_pong(meeting),
        "push": lambda: sizes.push(meeting),
        "collectives": lambda: sizes.by_size(meeting, largest, clock),
        "explore": lambda: sizes.explore(meeting, largest, clock),
        "gemm_check": gemms.check,
        "ag_gemm": lambda: gemms.compare(
            "AllGather-GEMM", ("NCCL, matmul", "NVSHMEM, matmul", "copies, matmul"),
            gemms.all_gather_gemm, meeting, clock,
        ),
        "gemm_rs": lambda: gemms.compare(
            "GEMM-ReduceScatter", ("matmul, NCCL", "matmul, NVSHMEM", "matmul, copies, sum"),
            gemms.gemm_reduce_scatter, meeting, clock,
        ),
        "gemm_ar": lambda: gemms.gemm_all_reduce(meeting),
    }  # fmt: skip
    for part in args.parts:
        with doing(part):
            parts[part]()
    shmem.finalize()
    return 0


if __name__ == "__main__":
    run_main(main)
