"""The command line: `rollbook COMMAND …`.

A command's module is imported only when it is called, so that `rollbook --help` and quick
commands start at once.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

# Command → what it does, in the order of their use.
COMMANDS = {
    "init": "Create a book.",
    "import": "Import trajectory files of other tools.",
    "publish": "Register a weight version.",
    "reward": "Settle rewards that came late.",
    "heartbeat": "Note that a producer lives.",
    "assemble": "Make one assembler pass.",
    "read": "Write a batch to an Arrow file.",
    "ack": "Mark a batch as trained.",
    "release": "Put a batch's samples back into the pool.",
    "why": "Say why the next batch does not move.",
    "trace": "Show where a sample came from and what became of it.",
    "audit": "Check the invariants on every row.",
    "accept": "Judge the four acceptance criteria.",
    "sql": "List the named questions, or answer one.",
    "query": "Answer a read-only SQL query.",
    "schema": "Print every table and column.",
    "maintain": "Compact, checkpoint and vacuum.",
}


class Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order of their use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, from a module of its own name."""
        if cmd_name not in COMMANDS:
            return None
        name = {"import": "import_"}.get(cmd_name, cmd_name)
        module = importlib.import_module(f".commands.{name}", package=__package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and name the ones there are if it is none of them."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            known = ", ".join(COMMANDS)
            raise click.UsageError(f"no command {args[0]!r}; there are: {known}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rollbook")
def rollbook() -> None:
    """Keep the experience of long-running agents, and account for every turn of it.

    Exit codes: 0 = done, 1 = done in part or refused, 2 = wrong usage.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run a command; an error becomes one line on stderr and exit code 1 or 2."""
    try:
        rollbook(args=args, standalone_mode=False, prog_name="rollbook")
    except click.Abort:
        _fail("interrupted")
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except _expected() as error:
        _fail(str(error))


def _expected() -> tuple[type[Exception], ...]:
    """Return the errors that are told in one line; imported only once there is an error."""
    from ..validators.errors import RollbookError

    return RollbookError, OSError


def _fail(text: str) -> Any:
    click.echo(f"rollbook: {text}", err=True)
    sys.exit(1)
