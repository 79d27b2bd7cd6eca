# SPDX-License-Identifier: MIT
"""`libshmem_device` on NVIDIA GPUs: NVSHMEM's functions."""

from triton_dist.language.extra.cuda import libnvshmem_device
from triton_dist.language.extra.cuda.libnvshmem_device import BACKEND as BACKEND
from triton_dist.language.extra.records import supported

globals().update({name: getattr(libnvshmem_device, name) for name in supported(BACKEND)})
