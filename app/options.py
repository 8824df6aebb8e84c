"""Options that several commands share, and the book that they open."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..store import Book, Settings


_Command = Callable[..., Any]


def book_options(command: _Command, *, is_required: bool = True) -> _Command:
    """Add `--book`, `--settings` and `--json`."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option(
            "--settings",
            "settings_path",
            type=click.Path(path_type=Path, dir_okay=False),
            envvar="ROLLBOOK_SETTINGS",
            show_envvar=True,
            help="Settings file; default: rollbook.toml in a local book.",
        ),
        click.option(
            "--book",
            "uri",
            envvar="ROLLBOOK_BOOK",
            show_envvar=True,
            required=is_required,
            callback=_address,
            metavar="URI",
            help="The book: a folder or an object-store address.",
        ),
    ):
        command = option(command)
    return command


def _address(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty")
    return value


def stream_option(command: _Command) -> _Command:
    """Add `--stream`."""
    return click.option(
        "--stream",
        type=click.Choice(["train", "replay"]),
        default="train",
        show_default=True,
        help="Originals and resamples, or replays.",
    )(command)


def format_options(command: _Command) -> _Command:
    """Add `--csv` and `--arrow FILE` beside `--json`."""
    for option in (
        click.option(
            "--arrow",
            "arrow_path",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Write an Arrow IPC file.",
        ),
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV."),
    ):
        command = option(command)
    return command


def json_object(text: str, option: str) -> dict[str, Any]:
    """Return an option's value as the JSON object that it must be."""
    try:
        document = json.loads(text)
        # Python alone reads and writes numbers that are not finite.
        json.dumps(document, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{option} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise click.UsageError(f"{option} must be a JSON object, it is {text!r}")
    return document


def read_settings(path: Path | None) -> "Settings | None":
    """Return the settings of the named file, if one is named."""
    from ..store import Settings

    return Settings.read(path) if path else None


def open_book(uri: str, settings_path: Path | None) -> "Book":
    """Open the book that a command works on."""
    from ..store import Book

    return Book.open(uri, read_settings(settings_path))
