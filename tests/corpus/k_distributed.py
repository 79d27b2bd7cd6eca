# SPDX-License-Identifier: MIT
"""The seven ops of `dl`, as their carriers."""

import triton
import triton.language as tl

import triton_dist.language as dl
from tests.corpus.registry import kernel


@kernel(data="*fp32", flags="*i32", out="*fp32", BLOCK=256)
@triton.jit
def pull_from_right(data, flags, out, BLOCK: tl.constexpr):
    """Tell the left neighbour that data is ready, wait for the right one, read its data."""
    me, world = dl.rank(), dl.num_ranks()
    right, left = (me + 1) % world, (me + world - 1) % world
    dl.notify(flags + me, left, signal=1, sig_op="set", comm_scope="inter_node")
    token = dl.wait(flags + right, 1, "sys", "acquire", waitValue=1)
    source = dl.consume_token(dl.symm_at(data, right), token)
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(source + offsets))


@kernel(flags="*i64", unsigned="*u64", world="i32")
@triton.jit
def count_arrivals(flags, unsigned, world):
    """Signals added to, in a loop; a wait that nothing consumes."""
    for peer in range(world):
        dl.notify(flags, peer, signal=2, sig_op="add", comm_scope="intra_node")
        dl.notify(unsigned + peer, peer, signal=1, sig_op="set", comm_scope="gpu")
    dl.wait(flags, 1, "gpu", "acquire", waitValue=2 * world)


@kernel(data="*fp16", flags="*i32", out="*fp16", BLOCK=64)
@triton.jit
def consume_blocks(data, flags, out, BLOCK: tl.constexpr):
    """Tokens consumed by a block of pointers, a block of values and a scalar."""
    offsets = tl.arange(0, BLOCK)
    token = dl.wait(flags, 2, "cta", "relaxed")
    pointers = dl.consume_token(data + offsets, token)
    values = dl.consume_token(tl.load(pointers), token)
    scale = dl.consume_token(tl.load(flags), token)
    tl.store(out + offsets, values * scale)
