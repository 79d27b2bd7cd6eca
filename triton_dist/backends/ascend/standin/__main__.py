# SPDX-License-Identifier: MIT
"""Prints the folder that makes `import shmem` give the stand-in."""

from triton_dist.backends.ascend.standin import FOLDER

print(FOLDER)
