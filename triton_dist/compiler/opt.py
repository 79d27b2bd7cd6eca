# SPDX-License-Identifier: MIT
"""`triton-dist opt`: reads a module, verifies it, runs passes, prints it. It takes what `xdsl-opt` takes.

triton-dist opt kernel.ttir
triton-dist opt -p raise-distributed-carriers,convert-triton-distributed-to-host kernel.ttir
triton-dist opt --print-debuginfo < kernel.ttir
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Any, ClassVar

from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.exceptions import DiagnosticException, ParseError, PassFailedException, VerifyException
from xdsl.xdsl_opt_main import xDSLOptMain

from triton_dist import __version__
from triton_dist.compiler import pipeline
from triton_dist.errors import TritonDistError
from triton_dist.ir.dialects import DIALECTS, factory
from triton_dist.ir.parser import TritonParser
from triton_dist.ir.printer import print_text

_EXTENSIONS = ("mlir", "ttir")


class TritonDistOpt(xDSLOptMain):
    """xDSL's driver with our dialects (instead of xDSL's of the same name), passes, parser and printer."""

    version_format: ClassVar[str] = f"triton-dist {__version__}, built on xDSL {{xdsl_version}}"

    def register_all_dialects(self) -> None:
        self.ctx.load_dialect(Builtin)
        known = {name: partial(_load, name) for name in DIALECTS}
        others = Universe.get_multiverse().all_dialects
        for name, dialect in {**others, **known}.items():
            if name != "builtin":
                self.ctx.register_dialect(name, dialect)

    def register_all_frontends(self) -> None:
        super().register_all_frontends()
        for extension in _EXTENSIONS:
            self.available_frontends[extension] = self._parse

    def _parse(self, stream: IO[Any]) -> ModuleOp:
        # Bytes since xDSL 0.75, text before.
        parser = TritonParser(self.ctx, stream.read(), self.args.input_file or "stdin")
        return parser.parse_module(not self.args.no_implicit_module)

    def register_all_passes(self) -> None:
        super().register_all_passes()
        for name in pipeline.available():
            self.available_passes[name] = _pass_factory(name)

    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets["mlir"] = self._print

    def _print(self, module: ModuleOp, output: IO[str]) -> None:
        output.write(
            print_text(
                module,
                debuginfo=self.args.print_debuginfo,
                print_generic_format=self.args.print_op_generic,
                print_properties_as_attributes=self.args.print_no_properties,
            )
        )


def _load(name: str):
    return factory(name)()


def _pass_factory(name: str) -> Callable[[], type[ModulePass]]:
    return lambda: pipeline.load(name)


_MISTAKES = (
    TritonDistError,
    ParseError,
    VerifyException,
    PassFailedException,
    DiagnosticException,
    OSError,
    UnicodeDecodeError,
)
"""What the input can be wrong with; anything else is a defect of ours and shows its traceback."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool with these arguments; returns the exit status. A mistake in the input is one message on stderr."""
    try:
        driver = TritonDistOpt("Reads, verifies, transforms and prints modules of triton_dist.", args=args)
    except ValueError as error:
        # xDSL's way to say that the command line names a pass or an option that is not there.
        return _complain(error)
    try:
        driver.run()
    except _MISTAKES as error:
        return _complain(error)
    return 0


def _complain(error: Exception) -> int:
    print(f"error: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
