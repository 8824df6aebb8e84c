"""rollbook assemble."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options import book_options, open_book, stream_option
from ..output import cell, counted, print_json

if TYPE_CHECKING:
    from ...store import Pass


@click.command("assemble")
@click.option("--learner", help="Lease the batch to this learner.")
@stream_option
@book_options
def command(
    learner: str | None, stream: str, uri: str, settings_path: Path | None, as_json: bool
) -> None:
    """Make one pass: discard what is over age, and cut a batch if the turns suffice.

    A batch whose lease ran out comes out again under its id before a new one is made.
    """
    with open_book(uri, settings_path) as book:
        made = book.assemble(learner, stream=stream)
        incidents = [] if as_json else book.sql("report/incidents", open_only=True).to_pylist()
    if as_json:
        print_json({**asdict(made), "missing_turns": made.missing_turns})
    else:
        click.echo("\n".join([describe(made), *map(_incident, incidents)]))


def describe(made: "Pass") -> str:
    """Return what a pass came to, in a sentence and one line for each reason."""
    if made.batch_id:
        again = " comes out again" if made.is_redelivered else ""
        first = f"batch {made.batch_id}{again}: {_size(made)} in {counted(made.samples, 'sample')}"
    else:
        first = f"no batch: {_blocked(made)} ({made.pending_turns:,} pending)"
    return "\n".join([first, *_stopped(made)])


def _size(made: "Pass") -> str:
    """Return the turns of a batch, beside those that would complete it where it is partial."""
    if made.is_partial:
        return f"partial, {made.turns:,} of {counted(made.target_turns, 'turn')}"
    return counted(made.turns, "turn")


def _blocked(made: "Pass") -> str:
    """Return why there is no batch."""
    if made.blocker == "no_gradient":
        return "nothing in it carries a gradient"
    if made.blocker == "least_share":
        return "a stratum lacks its least share, see rollbook why"
    return f"short by {made.missing_turns:,} of {counted(made.target_turns, 'turn')}"


def _incident(found: Mapping[str, Any]) -> str:
    """Return an open incident as one line; what it is about comes last, for it may be long."""
    return f"  incident   {found['kind']:<12} since {cell(found['opened_at'])}  {found['subject']}"


def _stopped(made: "Pass") -> list[str]:
    """Return a line for each reason for which samples stopped on their way, of all task types."""
    samples: Counter[tuple[str, str]] = Counter()
    turns: Counter[tuple[str, str]] = Counter()
    for row in made.funnel:
        if row["step"] in ("held", "discarded", "waiting"):
            samples[row["step"], row["reason"]] += row["samples"]
            turns[row["step"], row["reason"]] += row["turns"]
    return [
        f"  {step:<9}  {counted(count, 'sample'):>14}"
        f"  {counted(turns[step, reason], 'turn'):>14}  {reason}"
        for (step, reason), count in samples.items()
    ]
