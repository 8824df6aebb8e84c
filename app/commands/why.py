"""rollbook why."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..options import book_options, open_book
from ..output import print_json, print_table

if TYPE_CHECKING:
    from ...ledger import Postmortem


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
        _print(found)


def _print(found: "Postmortem") -> None:
    click.echo(f"{found.sentence}.")
    click.echo(f"What to do: {found.advice}.\n")
    names = ["step", "reason", "task type", "samples", "turns"]
    print_table(names, [list(row.values()) for row in found.funnel])
    others = [b for b in found.blockers if b.text not in found.sentence]
    if others:
        click.echo("\nAlso:")
    for blocker in others:
        click.echo(f"  {blocker.text}")
