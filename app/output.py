"""Printing: tables for people, JSON, CSV and Arrow for programs."""

import csv
import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pyarrow as pa

# Numbers that name something are not grouped by thousands.
_NAMING = {
    "attempt",
    "ordinal",
    "position",
    "seed",
    "sequence",
    "weight_version",
    "weight_version_end",
}
# A column of text is not folded below this many characters.
_NARROWEST = 20


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which takes an s unless there is exactly one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plain(value: Any) -> Any:
    """Return a value as JSON keeps it; money keeps all its digits as text."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return str(value)


def print_json(value: Any) -> None:
    """Print a value, a dataclass or a list of rows as JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    click.echo(json.dumps(_sayable(value), default=plain, indent=2, ensure_ascii=False))


def _sayable(value: Any) -> Any:
    """Return a value with numbers that JSON has no word for, as nan, as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _sayable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(inner) for inner in value]
    return value


def print_rows(
    rows: "pa.Table", *, as_json: bool, as_csv: bool = False, arrow_path: Path | None = None
) -> None:
    """Print rows in the form that was asked for."""
    if sum((as_json, as_csv, arrow_path is not None)) > 1:
        raise click.UsageError("one of --json, --csv and --arrow at a time")
    # Two columns of a query may have one name, so rows are lists here, not mappings.
    values = [list(row) for row in zip(*(c.to_pylist() for c in rows.columns), strict=True)]
    if arrow_path is not None:
        write_arrow(rows, arrow_path)
        click.echo(f"{counted(rows.num_rows, 'row')} in {arrow_path}", err=True)
    elif as_json:
        print_json([_record(rows.column_names, row) for row in values])
    elif as_csv:
        _print_csv(rows.column_names, values)
    else:
        print_table(rows.column_names, values)


def _record(names: Sequence[str], row: list[Any]) -> dict[str, Any]:
    if twice := [name for name in names if names.count(name) > 1]:
        raise click.UsageError(f"JSON cannot tell apart two columns named {twice[0]!r}: rename one")
    return dict(zip(names, row, strict=True))


def write_arrow(rows: "pa.Table | pa.RecordBatchReader", path: Path) -> None:
    """Write rows to an Arrow IPC file."""
    import pyarrow as pa

    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, rows.schema) as writer:
        if isinstance(rows, pa.Table):
            writer.write_table(rows)
        else:
            for batch in rows:
                writer.write_batch(batch)


def _print_csv(names: list[str], rows: list[list[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell_csv(value) for value in row] for row in rows)
    click.echo(text.getvalue(), nl=False)


def _cell_csv(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | dict):
        return json.dumps(value, default=plain)
    return plain(value)


def print_table(names: list[str], rows: list[list[Any]]) -> None:
    """Print rows as a table that fits the terminal, if there is one."""
    click.echo("\n".join(table(names, rows, terminal_room())))


def terminal_room() -> int:
    """Return the columns of the terminal; where there is none, nothing need be folded."""
    return get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def paragraph(text: str, room: int, *, first: str = "", then: str = "  ") -> list[str]:
    """Return a text in lines, of which the first and the others begin as given."""
    return wrap(
        cell(text),
        room,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(names: list[str], rows: list[list[Any]], room: int = sys.maxsize) -> list[str]:
    """Return rows as the lines of a table; where it is wider than `room`, text is folded.

    Where that does not help, each row becomes a block.
    """
    if not rows:
        return ["no rows"]
    cells = [[cell(v, name) for v, name in zip(row, names, strict=True)] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    if _total(widths) > room:
        widths = _narrowed(names, rows, cells, widths, room)
    if _total(widths) > room:
        return [line for row in cells for line in _block(names, row, room)]
    is_number = [_is_numeric(column) for column in zip(*rows, strict=True)]
    head = [names, ["─" * width for width in widths]]
    return [part for line in (*head, *cells) for part in _lines(line, widths, is_number)]


def _total(widths: list[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _narrowed(
    names: list[str],
    rows: list[list[Any]],
    cells: list[list[str]],
    widths: list[int],
    room: int,
) -> list[int]:
    """Return widths with the widest columns of text narrowed, no further than a word."""
    least = [
        max(_NARROWEST, len(name), *(len(word) for text in column for word in text.split()))
        if all(isinstance(value, str | None) for value in values)
        else width
        for name, values, column, width in zip(
            names, zip(*rows, strict=True), zip(*cells, strict=True), widths, strict=True
        )
    ]
    narrowed = [min(width, max(room, low)) for width, low in zip(widths, least, strict=True)]
    while _total(narrowed) > room:
        spare = [place for place, width in enumerate(narrowed) if width > least[place]]
        if not spare:
            return widths
        narrowed[max(spare, key=narrowed.__getitem__)] -= 1
    return narrowed


def _is_numeric(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in known
    )


def _lines(cells: list[str], widths: list[int], is_number: list[bool]) -> Iterator[str]:
    folded = [_folded(text, width) for text, width in zip(cells, widths, strict=True)]
    for parts in zip_longest(*folded, fillvalue=""):
        placed = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(parts, widths, is_number, strict=True)
        ]
        yield "  ".join(placed).rstrip()


def _block(names: list[str], row: list[str], room: int) -> Iterator[str]:
    width = max(map(len, names))
    for name, text in zip(names, row, strict=True):
        first, *rest = _folded(text, room - width - 2)
        yield f"{name.ljust(width)}  {first}".rstrip()
        yield from (f"{' ' * width}  {part}" for part in rest)
    yield ""


def _folded(text: str, width: int) -> list[str]:
    """Return a text in lines; a word that is too long stays whole."""
    if len(text) <= width:
        return [text]
    return wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]


def cell(value: Any, name: str = "") -> str:
    """Return a value as it stands in a table; unknown is a dash, never a zero."""
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, int):
        return str(value) if name in _NAMING else f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}{'Z' if value.tzinfo else ''}"
    if isinstance(value, list | dict):
        return json.dumps(value, default=plain, ensure_ascii=False)
    return _printable(str(plain(value)))


def _decimal(value: float) -> str:
    """Return a float with three decimals, or where these say nothing, three digits."""
    if value and not 0.001 <= abs(value) < 1e15:
        return f"{value:.3g}"
    return f"{value + 0.0:,.3f}".rstrip("0").rstrip(".")


def _printable(text: str) -> str:
    """Return a text without what would break a line or steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
