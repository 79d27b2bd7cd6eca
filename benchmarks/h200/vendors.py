# SPDX-License-Identifier: MIT
"""The collectives of NCCL (through torch) and of NVSHMEM (on the stream), for comparison."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
import torch.distributed as dist

from triton_dist import shmem

SCRATCH = int(os.environ.setdefault("NVSHMEM_REDUCE_SCRATCH_SIZE", str(1 << 19)))
"""Said before NVSHMEM starts, whatever its default is."""
GRAPHS = os.environ.get("H200_NVSHMEM_GRAPHS") == "1"
"""Whether NVSHMEM's collectives can be captured in a CUDA graph: what `probe_graph` found out."""

Call = Callable[[], object]


def alone_on_gpus() -> bool:
    """Whether every PE has a GPU of its own. NCCL needs that."""
    return int(os.environ.get("WORLD_SIZE", "1")) <= torch.cuda.device_count()


def start_nccl() -> None:
    """Before `shmem.init`, which then meets the others through torch.distributed."""
    if alone_on_gpus():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)


def nccl_ways(name: str, source: torch.Tensor, out: torch.Tensor) -> Call | None:
    """The collective of this name; None if NCCL cannot run here. `source`, `out`: flat tensors of the right sizes."""
    if not dist.is_initialized():
        return None
    if name == "all-gather":
        return lambda: dist.all_gather_into_tensor(out, source)
    if name == "reduce-scatter":
        return lambda: dist.reduce_scatter_tensor(out, source)
    # In place: torch has no other. It sums the sums again, which takes as long.
    return lambda: dist.all_reduce(source)


def nvshmem_ways(name: str, source: torch.Tensor, out: torch.Tensor) -> Call:
    """The collective of this name, on the stream that is current when it is called; bf16, in symmetric memory."""
    from triton_dist.backends.cuda.nvshmem import bindings

    raw = bindings()
    if name == "all-gather":
        return lambda: raw.bfloat16_fcollect_on_stream(0, out.data_ptr(), source.data_ptr(), source.numel(), stream())
    if name == "reduce-scatter":
        return lambda: reduce_scatter_by_nvshmem(out, source)
    return lambda: raw.bfloat16_sum_reduce_on_stream(0, out.data_ptr(), source.data_ptr(), source.numel(), stream())


def stream() -> int:
    return torch.cuda.current_stream().cuda_stream


def reduce_scatter_by_nvshmem(out: torch.Tensor, source: torch.Tensor) -> None:
    """Its reduce-scatter on the stream, in pieces.

    NVSHMEM 3.4 pushes all inputs into half of its scratch memory, and does not look whether they fit: more
    overwrites its barriers and whatever comes next. Between pieces the order of the input differs from that of one
    call; bytes and work are the same.
    """
    from triton_dist.backends.cuda.nvshmem import bindings

    pes, size = shmem.n_pes(), out.element_size()
    piece = SCRATCH // 2 // (pes * size) // 16 * 16
    reduce_scatter = bindings().bfloat16_sum_reducescatter_on_stream
    for begin in range(0, out.numel(), piece):
        count = min(piece, out.numel() - begin)
        at = source.data_ptr() + begin * pes * size
        reduce_scatter(0, out.data_ptr() + begin * size, at, count, stream())


def probe() -> None:
    """Whether NVSHMEM's reduce-scatter is right with the scratch memory asked for."""
    pes, count = shmem.n_pes(), SCRATCH // 2 // (2 * shmem.n_pes()) // 16 * 16
    source, out = (shmem.create_tensor((n,), torch.bfloat16) for n in (pes * count, count))
    for number in range(1, 5):
        source.fill_(number)
        shmem.barrier_all()
        reduce_scatter_by_nvshmem(out, source)
        shmem.barrier_all()
        assert bool((out == number * pes).all()), "NVSHMEM's reduce-scatter is wrong"
    if shmem.my_pe() == 0:
        print(f"NVSHMEM's reduce-scatter is right with {SCRATCH} bytes of scratch memory", flush=True)
    shmem.free_tensor(source)
    shmem.free_tensor(out)


def probe_graph() -> None:
    """Whether NVSHMEM's collectives can be captured, and are right when replayed. It may end the process."""
    from common import graph_of

    pes, count = shmem.n_pes(), 4096
    source, out = (shmem.create_tensor((n,), torch.bfloat16) for n in (pes * count, pes * count))
    sizes = {"all-gather": (count, pes * count), "reduce-scatter": (pes * count, count), "all-reduce": (count, count)}
    for name, (n, m) in sizes.items():
        replay = graph_of(nvshmem_ways(name, source[:n], out[:m]), 3)
        for number in (1, 2):
            source.fill_(number)
            shmem.barrier_all()
            replay()
            shmem.barrier_all()
            assert bool((out[:m] == (number if name == "all-gather" else number * pes)).all()), name
    if shmem.my_pe() == 0:
        print("NVSHMEM's collectives can be captured in a CUDA graph", flush=True)
