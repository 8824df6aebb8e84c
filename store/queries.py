"""What a user's own SQL may do: read, and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from ..validators.errors import Refused

_READING = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}


def read_only(text: str) -> str:
    """Return the text if it is one statement that only reads; raises Refused otherwise."""
    try:
        text.encode()
        found = duckdb.extract_statements(text)
    except (duckdb.Error, UnicodeEncodeError) as error:
        raise Refused(f"not SQL: {error}") from None
    if len(found) != 1:
        raise Refused(f"one statement at a time, there are {len(found)}")
    if found[0].type not in _READING:
        kind = found[0].type.name
        raise Refused(f"a query may only read, this is a statement of kind {kind}")
    return text


@contextmanager
def as_refusal(question: str | None = None) -> Iterator[None]:
    """Turn what DuckDB says of a user's query or parameter into Refused.

    The line of a named question's own text, which the user has not written, is left out.
    """
    try:
        yield
    except (duckdb.Error, UnicodeEncodeError) as error:
        text = str(error).strip()
        if question:
            said, _, _ = text.partition("\n\nLINE ")
            text = f"{question}: {said}"
        raise Refused(text) from None
