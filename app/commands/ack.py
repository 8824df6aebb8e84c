"""rollbook ack."""

from pathlib import Path

import click

from ..options import book_options, json_object, open_book
from ..output import counted, print_json


@click.command("ack")
@click.argument("batch")
@click.option(
    "--figures",
    metavar="JSON",
    help="Object of what the learner hands back: ess_share, clipped_share, any other.",
)
@book_options
def command(
    batch: str, figures: str | None, uri: str, settings_path: Path | None, as_json: bool
) -> None:
    """Mark BATCH as trained; again it changes nothing."""
    document = None if figures is None else json_object(figures, "--figures")
    with open_book(uri, settings_path) as book:
        done = book.ack(batch, document)
    if as_json:
        print_json(done)
    else:
        when = "trained" if done.is_first else "was marked as trained before"
        click.echo(f"batch {batch} {when}: {counted(done.samples, 'sample')}")
