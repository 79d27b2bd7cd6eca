# SPDX-License-Identifier: MIT
"""Kernels for the tests of the runtime, and PEs that launch them."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import torch
import triton
import triton.language as tl

import triton_dist.language as dl
from triton_dist import errors, shmem
from triton_dist.language.extra import libshmem_device


@triton.jit
def wait_kernel(signal_ptr, value):
    token = dl.wait(signal_ptr, 1, "sys", "acquire", waitValue=value)
    tl.store(signal_ptr, dl.consume_token(value, token))


@triton.jit
def send_kernel(data_ptr, signal_ptr, peer, value):
    tl.store(dl.symm_at(data_ptr, peer), value)
    dl.notify(signal_ptr, peer, signal=value, sig_op="set", comm_scope="intra_node")


@triton.jit
def signal_there_kernel(signal_ptr, peer, value, OP: tl.constexpr):
    dl.notify(dl.symm_at(signal_ptr, peer), peer, signal=value, sig_op=OP, comm_scope="gpu")


@triton.jit
def barrier_kernel():
    libshmem_device.barrier_all()


def end_one_in_kernels() -> Any:
    """PE 1 is killed while kernels of the others wait."""
    signals = shmem.create_signals(1)
    wait_kernel[(1,)](signals, 0)  # compiled
    shmem.barrier_all()
    if shmem.my_pe() == 1:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    try:
        wait_kernel[(3,)](signals, 7)
    except errors.PeerDied as error:
        return time.monotonic() - start, str(error)
    return None


def ring_in_kernels() -> list[int]:
    me, n = shmem.my_pe(), shmem.n_pes()
    data, signals = shmem.create_tensor((1,), torch.int64), shmem.create_signals(1)
    seen = []
    for turn in range(1, 6):
        send_kernel[(1,)](data, signals, (me + 1) % n, 100 * me + turn)
        shmem.wait_signal(signals[0], 100 * ((me - 1) % n) + turn)
        seen.append(int(data))
        if turn % 2:
            shmem.barrier_all()
        else:
            barrier_kernel[(1,)]()
    return seen
