"""The four acceptance criteria, each passed or failed by its figures.

A figure has bounds: below `least` there is too little to judge by, above `most` it is a
failure. The figures of a criterion are those of its statement in `sql/accept/`, and the
number of offences against each rule of the audit that it stands on.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..store import Book
from .audit import audit

FOLDER = "accept"
# Criterion, by the name of its statement → what it says, and the rules that it stands on.
CRITERIA: dict[str, tuple[str, tuple[str, ...]]] = {
    "traceable": (
        "any sample can be traced to its environment image, weight version and attempt number",
        ("trained_without_evidence", "unknown_position", "duplicate_sample", "duplicate_position"),
    ),
    "complete_by_turns": (
        "a batch is complete by turns, and its truncated share stays inside the set line",
        ("short_batch", "overfull_batch", "batch_header", "truncated_share", "pass_settings"),
    ),
    "bounded_age": (
        "sample age has a hard cap; over it a sample is discarded, and the discard is counted",
        ("over_age", "discard_unexplained", "discard_below_limit", "discard_count", "two_ends"),
    ),
    "bounded_failure": (
        "the failure share is kept per task type, and no-gradient interruptions raise an alarm",
        ("failure_share", "untrainable_trained", "batch_without_gradient"),
    ),
}
Status = Literal["pass", "fail", "no_data"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number that a criterion is judged by, or that is told beside.

    Attributes:
        name: what was counted; a rule of the audit where it counts offences.
        value: the number; None is unknown, as the greatest of nothing is.
        least: below this there is too little to judge by.
        most: above this the criterion fails.
    """

    name: str
    value: float | None
    least: float | None = None
    most: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it fails the criterion."""
        return self.most is not None and (self.value is None or self.value > self.most)

    @property
    def is_lacking(self) -> bool:
        """Whether it is too little to judge by."""
        return self.least is not None and (self.value is None or self.value < self.least)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One acceptance criterion with the figures behind it."""

    name: str
    text: str
    status: Status
    figures: tuple[Figure, ...]


def acceptance(book: Book) -> tuple[Criterion, ...]:
    """Return the four criteria in order; a book without a trained batch is `no_data`."""
    offences = Counter(offence.rule for offence in audit(book))
    answers = book.answers(FOLDER)
    return tuple(
        _criterion(
            name,
            [Figure(*row.values()) for row in answers[f"{FOLDER}/{name}"].to_pylist()],
            offences,
        )
        for name in CRITERIA
    )


def _criterion(name: str, told: list[Figure], offences: Mapping[str, int]) -> Criterion:
    text, rules = CRITERIA[name]
    figures = (*told, *(Figure(rule, float(offences[rule]), most=0.0) for rule in rules))
    return Criterion(name, text, judged(figures), figures)


def judged(figures: tuple[Figure, ...]) -> Status:
    """Return what figures come to: a failure is one even where there is little to judge by."""
    if any(figure.is_over for figure in figures):
        return "fail"
    return "no_data" if any(figure.is_lacking for figure in figures) else "pass"
