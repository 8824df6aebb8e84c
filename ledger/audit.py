"""The invariants of a book, checked on its rows.

Each rule is a statement in `sql/check/` that returns the rows which break it: none means that
it holds. Nothing here repairs anything; a row that was written stays.
"""

from dataclasses import dataclass

from ..sql import statements
from ..store import Book

FOLDER = "check"


@dataclass(frozen=True, slots=True, order=True)
class Offence:
    """One row that breaks a rule.

    Attributes:
        rule: the rule, which is the name of its statement.
        subject: what breaks it: a sample, a batch, a pass, a position, or a tenant's task type.
        detail: the figures that show it.
    """

    rule: str
    subject: str
    detail: str


def rules() -> dict[str, str]:
    """Return every rule with the question that its statement asks."""
    return {found.name.partition("/")[2]: found.question for found in statements(FOLDER)}


def audit(book: Book) -> list[Offence]:
    """Return all offences of a book, in order of rule; none means that every rule holds."""
    answers = book.answers(FOLDER).values()
    return [Offence(**row) for rows in answers for row in rows.to_pylist()]
