# SPDX-License-Identifier: MIT
"""Portable kernels, each written once, with the operation that owns its symmetric memory.

docs/operations.md describes them all: constructors, types and shapes, errors, how long a result is valid.
"""

from .all_gather import AllGather
from .all_gather_gemm import AllGatherGemm
from .all_gather_matmul import AllGatherMatmul
from .all_reduce import AllReduce
from .counted import Plan
from .exchange import Exchange
from .gemm_all_reduce import GemmAllReduce
from .gemm_reduce_scatter import GemmReduceScatter, Tiles
from .matmul_all_reduce import MatmulAllReduce
from .matmul_reduce_scatter import MatmulReduceScatter
from .producer_consumer import ProducerConsumer
from .reduce_scatter import ReduceScatter

__all__ = [
    "AllGather",
    "AllGatherGemm",
    "AllGatherMatmul",
    "AllReduce",
    "Exchange",
    "GemmAllReduce",
    "GemmReduceScatter",
    "MatmulAllReduce",
    "MatmulReduceScatter",
    "Plan",
    "ProducerConsumer",
    "ReduceScatter",
    "Tiles",
]
