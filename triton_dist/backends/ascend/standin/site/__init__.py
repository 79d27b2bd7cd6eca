# SPDX-License-Identifier: MIT
"""What PYTHONPATH is to hold, so that `import shmem` gives the stand-in."""
