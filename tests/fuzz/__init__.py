# SPDX-License-Identifier: MIT
"""Random kernels against numpy, and mutated IR text into the parser, and on into the code generator and LLVM.

`pytest` runs a fixed few hundred examples; `make fuzz` runs as many as asked for, in child processes.
"""
