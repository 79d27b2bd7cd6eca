# SPDX-License-Identifier: MIT
"""Triton's compiler interface for the host engine."""

from triton.backends.compiler import BaseBackend, GPUTarget


class CpuBackend(BaseBackend):
    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cpu"

    def hash(self) -> str:
        raise NotImplementedError

    def parse_options(self, options: dict) -> object:
        raise NotImplementedError

    def add_stages(self, stages, options, language=None) -> None:
        raise NotImplementedError

    def load_dialects(self, context) -> None:
        raise NotImplementedError

    def get_module_map(self):
        return {}
