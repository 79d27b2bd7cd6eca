# SPDX-License-Identifier: MIT
"""Portable kernels, each written once, with the operation that owns its symmetric memory."""

from .all_gather import AllGather
from .all_gather_gemm import AllGatherGemm
from .exchange import Exchange
from .gemm_all_reduce import GemmAllReduce
from .producer_consumer import ProducerConsumer

__all__ = ["AllGather", "AllGatherGemm", "Exchange", "GemmAllReduce", "ProducerConsumer"]
