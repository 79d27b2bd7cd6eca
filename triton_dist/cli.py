# SPDX-License-Identifier: MIT
"""The command line: `triton-dist doctor | run | opt | backends`."""

from __future__ import annotations

import importlib
from itertools import groupby
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from triton_dist.backends.base import Backend

app = typer.Typer(
    name="triton-dist",
    help="Multi-device kernels written once in Triton.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# `run` and `opt` have parsers of their own: everything after the command goes to them, --help too.
_FORWARD = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command()
def doctor() -> None:
    """Show versions, the back end in use and why, probes, settings; each line OK or how to mend it."""
    from rich.console import Console
    from rich.table import Table

    from triton_dist.doctor import examine

    console = Console()
    findings = examine()
    for section, lines in groupby(findings, key=lambda finding: finding.section):
        table = Table(title=section, title_justify="left", show_header=False, box=None, pad_edge=False)
        for line in lines:
            table.add_row("[green]ok[/]" if line.ok else "[red]fix[/]", line.name, line.value, line.fix)
        console.print(table, "")
    raise typer.Exit(0 if all(finding.ok for finding in findings) else 1)


@app.command(context_settings=_FORWARD)
def run(context: typer.Context) -> None:
    """Start a script on several PEs: triton-dist run -n 4 script.py [ARGS]."""
    raise typer.Exit(_forward("triton_dist.shmem.launcher", context))


@app.command(context_settings=_FORWARD)
def opt(context: typer.Context) -> None:
    """Read, verify, transform and print IR, as xdsl-opt does: triton-dist opt [-p pass,pass] [FILE]."""
    raise typer.Exit(_forward("triton_dist.compiler.opt", context))


@app.command()
def backends() -> None:
    """List the back ends and what each can do in this version."""
    from rich.console import Console
    from rich.table import Table

    from triton_dist import backends as registry
    from triton_dist.errors import TritonDistError

    table = Table("name", "for", "tool", "lowering", box=None, pad_edge=False)
    for name in registry.names():
        try:
            backend = registry.get(name)
            table.add_row(name, backend.title, backend.smi or "", _lowering(backend))
        except TritonDistError as error:
            table.add_row(name, "", "", str(error))
    Console().print(table)


def _lowering(backend: Backend) -> str:
    from triton_dist.errors import NotInThisVersion

    try:
        return ", ".join(backend.pipeline())
    except NotInThisVersion:
        return "not in this version"


def _forward(module: str, context: typer.Context) -> int:
    """Call `main(arguments)` of a module, imported only now."""
    return importlib.import_module(module).main(list(context.args)) or 0


def main() -> None:
    """The entry point of the `triton-dist` script."""
    from triton_dist.errors import TritonDistError

    try:
        app()
    except TritonDistError as error:
        typer.echo(f"triton-dist: {error}", err=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
