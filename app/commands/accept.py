"""rollbook accept."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..options import book_options, open_book
from ..output import cell, paragraph, print_json, terminal_room

if TYPE_CHECKING:
    from ...ledger import Criterion, Figure


@click.command("accept")
@book_options
def command(uri: str, settings_path: Path | None, as_json: bool) -> None:
    """Judge the four acceptance criteria; exit code 1 unless all are passed."""
    from ...ledger import acceptance

    with open_book(uri, settings_path) as book:
        criteria = acceptance(book)
    if as_json:
        print_json([asdict(criterion) for criterion in criteria])
    else:
        blocks = [lines(number, found, terminal_room()) for number, found in enumerate(criteria, 1)]
        click.echo("\n\n".join("\n".join(block) for block in blocks))
    if any(criterion.status != "pass" for criterion in criteria):
        sys.exit(1)


def lines(number: int, criterion: "Criterion", room: int = sys.maxsize) -> list[str]:
    """Return a criterion as lines: its status and text, then the figures behind it."""
    width = max(len(figure.name) for figure in criterion.figures)
    values = [cell(figure.value) for figure in criterion.figures]
    widest = max(map(len, values))
    title = f"{number}  {criterion.status:<7}  "
    return [
        *paragraph(criterion.text, room, first=title, then=" " * len(title)),
        *(
            f"   {figure.name:<{width}}  {value:>{widest}}  {_bound(figure)}".rstrip()
            for figure, value in zip(criterion.figures, values, strict=True)
        ),
    ]


def _bound(figure: "Figure") -> str:
    """Return the bound of a figure, marked where it is broken."""
    if figure.most is not None:
        return f"at most {cell(figure.most)}{'  ✗' if figure.is_over else ''}"
    if figure.least is not None:
        return f"at least {cell(figure.least)}{'  ✗' if figure.is_lacking else ''}"
    return ""
