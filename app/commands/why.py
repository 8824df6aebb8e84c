"""rollbook why."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options import book_options, open_book, stream_option
from ..output import counted, paragraph, print_json, table, terminal_room

if TYPE_CHECKING:
    from ...ledger import Postmortem, Story
    from ...store import Book, Rederived

# A funnel of more rows is summed over the task types.
_MOST_ROWS = 12


def _moment(_context: click.Context, _option: click.Parameter, text: str | None) -> Any:
    """Read a moment; without its zone it would mean another one elsewhere."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no ISO 8601 time") from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no time zone: add Z or an offset")
    return found


@click.command("why")
@stream_option
@click.option("--at", metavar="TIME", callback=_moment, help="As it was then; ISO 8601 with zone.")
@click.option("--batch", "batch_id", metavar="BATCH", help="How this batch came to be instead.")
@click.option("--verify", is_flag=True, help="Make the decision behind BATCH again, and compare.")
@book_options
def command(
    *,
    stream: str,
    at: datetime | None,
    batch_id: str | None,
    verify: bool,
    uri: str,
    settings_path: Path | None,
    as_json: bool,
) -> None:
    """Say why the next batch does not move: what is missing, what holds it, what to do.

    With --verify, exit code 1 if the decision comes out otherwise.
    """
    if at and batch_id:
        raise click.UsageError("--at and --batch are two questions: give one of them")
    if verify and not batch_id:
        raise click.UsageError("--verify needs a batch: give --batch")
    with open_book(uri, settings_path) as book:
        if batch_id:
            _tell_batch(book, batch_id, verify=verify, as_json=as_json)
        else:
            _tell_next(book, stream, at, as_json=as_json)


def _tell_next(book: "Book", stream: str, at: datetime | None, *, as_json: bool) -> None:
    from ...ledger import explain

    found = explain(book.facts(stream, at=at))
    if as_json:
        print_json(asdict(found))
    else:
        click.echo("\n".join(lines(found, terminal_room())))


def _tell_batch(book: "Book", batch_id: str, *, verify: bool, as_json: bool) -> None:
    from ...ledger import tell

    story = tell(book.decision(batch_id))
    derived = book.rederive(batch_id) if verify else None
    if as_json:
        print_json(asdict(story) | ({"derived": _as_json(derived)} if derived else {}))
    else:
        click.echo("\n".join(story_lines(story, terminal_room())))
    if derived and not as_json:
        click.echo("\n".join(["", *verdict_lines(derived, terminal_room())]))
    if derived and not derived.is_same:
        sys.exit(1)


def _as_json(derived: "Rederived") -> dict[str, Any]:
    return {"is_same": derived.is_same, **asdict(derived)}


def story_lines(story: "Story", room: int = sys.maxsize) -> list[str]:
    """Return how a batch came to be as lines: the sentence, the funnel, what was read."""
    versions = ", ".join(f"{name} {version}" for name, version in story.table_versions.items())
    return [
        *paragraph(f"{story.sentence}.", room),
        "",
        *_funnel(story.funnel, room),
        "",
        *paragraph(f"read at table versions: {versions}", room),
        *paragraph(f"under settings {story.settings_fingerprint}", room),
    ]


def verdict_lines(derived: "Rederived", room: int = sys.maxsize) -> list[str]:
    """Return what came of making a decision again; every row that differs is shown."""
    if derived.is_same:
        rows = counted(derived.rows, "row")
        return [f"derived again: the same in all of {rows}"]
    names = list(derived.differences[0])
    rows_of = [list(row.values()) for row in derived.differences]
    many = counted(len(rows_of), "row")
    return [f"derived again: {many} differ", "", *table(names, rows_of, room)]


def lines(found: "Postmortem", room: int = sys.maxsize) -> list[str]:
    """Return a post-mortem as lines: the sentence, what to do, the funnel, what else is known."""
    also = [part for text in found.also for part in paragraph(text, room, first="  ", then="    ")]
    return [
        *paragraph(f"{found.sentence}.", room),
        *paragraph(f"What to do: {found.advice}.", room),
        "",
        *_funnel(found.funnel, room),
        *(["", "Also:", *also] if also else []),
    ]


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
