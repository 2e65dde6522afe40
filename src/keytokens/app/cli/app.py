"""The commands together, and what every one of them does with an error."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer

from ..._version import __version__
from ...base.errors import KeyTokensError
from . import leave_at_once
from .common import too_late_to_interrupt
from .demo import demo
from .evaluate import evaluate
from .explain import explain
from .figure import figure
from .fit import fit
from .lab import lab
from .predict import predict
from .report import report
from .serve import serve
from .verify import verify

app = typer.Typer(
    name="keytokens",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, evaluate, predict, explain, report, verify, figure, serve):
    app.command()(command)
app.add_typer(lab)

_INTERRUPTED = 130

# what the parser raises: typer has its base class from click, from outside or inside of itself, as its version likes
_ParserRefusal: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


@app.callback(invoke_without_command=True)
def _keytokens(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """A text classifier that shows, and proves, which tokens decide."""
    if version:
        typer.echo(f"keytokens {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str] | None) -> int:
    """Run a command and return its exit code; whatever goes wrong for a known reason is one line on stderr.

    From its end on Ctrl-C does nothing: the process is about to end.
    """
    try:
        if signal.getsignal(signal.SIGINT) is leave_at_once:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a command has something to clear away
        code = int(app(args=arguments, prog_name="keytokens", standalone_mode=False) or 0)
        too_late_to_interrupt()  # the rest is clearing away
    except KeyTokensError as error:
        return _fail(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except MemoryError:
        return _fail("not enough memory for this much data.", 2)
    except _ParserRefusal as error:
        message = error.format_message()
        return _fail(f"{message.rstrip('.')}. See `keytokens --help` or `keytokens COMMAND --help`.", 2)
    # some versions of typer turn Ctrl-C into this code themselves
    return _fail("interrupted; what was there before is unchanged.", code) if code == _INTERRUPTED else code


def _fail(message: str, code: int) -> int:
    too_late_to_interrupt()
    print("keytokens: " + " ".join(message.split()), file=sys.stderr)
    return code
