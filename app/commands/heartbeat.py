"""rollbook heartbeat."""

from pathlib import Path

import click

from ..options import book_options, open_book
from ..output import counted, print_json


@click.command("heartbeat")
@click.argument("producer")
@click.option(
    "--in-flight",
    required=True,
    type=click.IntRange(min=0, max=2**31 - 1),
    help="Samples that it is making.",
)
@click.option(
    "--in-flight-turns",
    type=click.IntRange(min=0, max=2**63 - 1),
    help="The most turns that these may still bring; default: not known.",
)
@click.option("--exhausted", "is_exhausted", is_flag=True, help="It has no task left to start.")
@book_options
def command(
    producer: str,
    in_flight: int,
    in_flight_turns: int | None,
    is_exhausted: bool,
    uri: str,
    settings_path: Path | None,
    as_json: bool,
) -> None:
    """Note that PRODUCER lives, and what it is making.

    A producer that was exhausted and beats again without the mark has found more to do.
    """
    with open_book(uri, settings_path) as book:
        book.heartbeat(
            producer,
            in_flight=in_flight,
            in_flight_turns=in_flight_turns,
            is_exhausted=is_exhausted,
        )
    if as_json:
        print_json(
            {
                "producer": producer,
                "in_flight": in_flight,
                "in_flight_turns": in_flight_turns,
                "is_exhausted": is_exhausted,
            }
        )
        return
    most = "" if in_flight_turns is None else f", at most {counted(in_flight_turns, 'turn')}"
    ended = ", no task left to start" if is_exhausted else ""
    click.echo(f"{producer} lives: {counted(in_flight, 'sample')} in flight{most}{ended}")
