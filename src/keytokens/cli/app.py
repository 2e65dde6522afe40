"""The commands together, and what every one of them does with an error."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import click
import typer

from .._version import __version__
from ..errors import KeyTokensError
from .demo import demo
from .explain import explain
from .fit import fit
from .predict import predict

__all__ = ["app", "main"]

app = typer.Typer(
    name="keytokens",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, predict, explain):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keytokens {__version__}")
        raise typer.Exit


@app.callback()
def _keytokens(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A text classifier that shows, and proves, which tokens decide."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command; exit code 0 for success, 1 for a failed check, 2 for bad input, 130 for Ctrl-C."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        result = app(args=arguments, prog_name="keytokens", standalone_mode=False)
    except KeyTokensError as error:
        return _fail(str(error), 2)
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _fail("interrupted; what was there before is unchanged.", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return _fail(f"{error.format_message().rstrip('.')}. Cure: see `keytokens --help`.", 2)
    except MemoryError:
        return _fail("not enough memory for this much data.", 2)
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - stays open until the interpreter ends
        return 0
    return int(result or 0)


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"keytokens: {line}", file=sys.stderr)
    return code
