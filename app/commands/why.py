"""rollbook why."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from ..options import book_options, open_book
from ..output import cell, print_json, table

if TYPE_CHECKING:
    from ...ledger import Postmortem

# A funnel of more rows is summed over the task types.
_MOST_ROWS = 12


@click.command("why")
@click.option("--stream", default="train", show_default=True, help="The stream to explain.")
@book_options
def command(stream: str, uri: str, settings_path: Path | None, as_json: bool) -> None:
    """Say why the next batch does not move: what is missing, what holds it, what to do."""
    from ...ledger import explain

    with open_book(uri, settings_path) as book:
        found = explain(book.facts(stream))
    if as_json:
        print_json(asdict(found))
    else:
        room = get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
        click.echo("\n".join(lines(found, room)))


def lines(found: "Postmortem", room: int = sys.maxsize) -> list[str]:
    """Return a post-mortem as lines: the sentence, what to do, the funnel, what else is known."""
    also = [part for text in found.also for part in _folded(text, "  ", room)]
    return [
        *_folded(f"{found.sentence}.", "", room),
        *_folded(f"What to do: {found.advice}.", "", room),
        "",
        *_funnel(found.funnel, room),
        *(["", "Also:", *also] if also else []),
    ]


def _folded(text: str, indent: str, room: int) -> list[str]:
    """Return a text in lines; what goes on is set in by two more."""
    return wrap(
        cell(text),
        room,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _funnel(rows: Sequence[Mapping[str, Any]], room: int) -> list[str]:
    if not rows:
        return ["no sample is open"]
    if len(rows) <= _MOST_ROWS:
        names = ["step", "reason", "task type", "samples", "turns"]
        return table(names, [[row[name.replace(" ", "_")] for name in names] for row in rows], room)
    sums: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        summed = sums.setdefault((row["step"], row["reason"]), [0, 0])
        summed[0] += row["samples"]
        summed[1] += row["turns"]
    names = ["step", "reason", "samples", "turns"]
    return table(names, [[*key, *summed] for key, summed in sums.items()], room)
