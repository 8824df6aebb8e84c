"""A pass takes the discard line first, then fills a batch by turns: full, or not at all."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.store.book import Book
from rollbook.validators.digests import digest

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook

NO_WAIT = {"max_wait_seconds": None}


def states(book: Book) -> dict[str, list[str]]:
    """Return the samples by state, each list in order."""
    rows = book.query(
        "SELECT state, list(sample_id ORDER BY sample_id) AS ids FROM sample_state GROUP BY state"
    )
    return {row["state"]: row["ids"] for row in rows.to_pylist()}


def discards(book: Book) -> list[dict[str, Any]]:
    """Return all discards in order of sample."""
    rows = book.query("SELECT * FROM dispositions WHERE kind = 'discarded' ORDER BY sample_id")
    told = ["sample_id", "reason", "reasons", "age_versions", "age_seconds", "limit"]
    return list(rows.select(told).to_pylist())


def ids(book: Book, batch_id: str | None) -> list[str]:
    """Return the samples of a batch in the order in which they were chosen."""
    rows = book.batch(str(batch_id)).rows.sort_by("ordinal")
    return [str(key) for key in rows.column("sample_id").to_pylist()]


# -- a full batch or none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "taken"),
    [
        ([25, 25, 25, 25], 4),
        ([25, 25, 25, 24, 1], 5),
        ([99, 99, 1], 2),
        ([99, 100, 1], 2),
        ([1, 100], 2),
        ([1, 500], 2),
        ([99], 0),
        ([], 0),
    ],
)
def test_a_batch_is_cut_at_the_first_sample_at_which_its_turns_are_complete(
    book: Book, sample: "Make", turns: list[int], taken: int
) -> None:
    book.append([sample(key, turns=count) for key, count in enumerate(turns)])

    made = book.assemble()

    assert made.samples == taken
    assert made.turns == sum(turns[:taken])
    assert (made.batch_id is not None) == (taken > 0)
    assert made.missing_turns == (0 if taken else 100 - sum(turns))


def test_a_pass_that_changes_nothing_is_noted_once_for_each_new_blocker(
    book: Book, sample: "Make"
) -> None:
    book.append([sample(1)])

    short = [book.assemble() for _ in range(3)]
    book.append([sample(1, sample_id=f"twin{key}") for key in range(3)])
    flat = [book.assemble() for _ in range(3)]

    assert [made.batch_id for made in (*short, *flat)] == [None] * 6
    journal = book.query("SELECT kind, blocker, sample_id FROM dispositions ORDER BY sequence")
    assert journal.to_pylist() == [
        {"kind": "pass", "blocker": blocker, "sample_id": None}
        for blocker in ("short", "no_gradient")
    ]


@pytest.mark.parametrize(("rewards", "samples"), [([0.5] * 4, 0), ([0.5] * 3 + [0.6], 4)])
def test_without_groups_a_batch_whose_rewards_are_all_equal_is_not_emitted(
    book: Book, sample: "Make", rewards: list[float], samples: int
) -> None:
    book.append([sample(key, reward=reward) for key, reward in enumerate(rewards)])

    made = book.assemble()

    assert (made.samples, made.blocker) == (samples, None if samples else "no_gradient")
    assert made.discarded == 0


def test_the_oldest_go_first_and_equals_by_id(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    ages = {"b": 10, "a": 10, "young": 1, "oldest": 60, "z": 10}
    book.append(
        [sample(key, finished_at=clock.now - timedelta(seconds=age)) for key, age in ages.items()]
    )

    made = book.assemble()

    assert ids(book, made.batch_id) == ["soldest", "sa", "sb", "sz"]


def test_f03_what_failed_never_counts_towards_a_batch(book: Book, sample: "Make") -> None:
    kinds = ["env_error", "timed_out", "cancelled", "late"]
    book.append([sample(key, status=kinds[key % 4], turns=25) for key in range(128)])

    first = book.assemble()
    book.append([sample(f"good{key}") for key in range(4)])
    second = book.assemble()

    assert (first.batch_id, first.missing_turns) == (None, 100)
    assert {row["reason"]: row["samples"] for row in first.funnel} == {"never_trainable": 128}
    assert (second.samples, second.turns) == (4, 100)
    assert book.query("SELECT SUM(samples) AS n FROM ledger").to_pylist() == [{"n": 132}]


def test_truncated_samples_are_trained_on_and_a_null_reward_is_awaited(
    book: Book, sample: "Make"
) -> None:
    book.append(
        [
            sample("cut", status="truncated", limit="turns"),
            sample("ungraded", reward=None),
            sample("zero", reward=0.0),
        ]
    )

    assert states(book) == {"awaiting_reward": ["sungraded"], "pending": ["scut", "szero"]}


# -- the discard line ----------------------------------------------------------------------------


def test_f10a_age_at_the_cap_is_kept_and_one_more_is_discarded(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(discard=NO_WAIT)
    book.append([sample("6", weight_version=6), sample("5", weight_version=5)])
    book.publish(10)

    made = book.assemble()

    assert made.discarded == 1
    assert states(book) == {"pending": ["s6"], "discarded": ["s5"]}
    assert discards(book) == [
        {
            "sample_id": "s5",
            "reason": "age_versions",
            "reasons": ["age_versions"],
            "age_versions": 5,
            "age_seconds": 0.0,
            "limit": 4.0,
        }
    ]


def test_f10b_age_is_measured_when_the_batch_is_cut_and_not_when_it_was_queued(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(discard=NO_WAIT)
    book.publish(8)
    book.append([sample(key, weight_version=6) for key in range(4)])
    book.publish(11)

    made = book.assemble()

    assert (made.batch_id, made.discarded) == (None, 4)
    assert {row["age_versions"] for row in discards(book)} == {5}


@pytest.mark.parametrize(("fresh", "batch", "missing"), [(5, 5, 0), (4, 0, 20)])
def test_f10c_stale_samples_are_discarded_before_the_batch_is_counted(
    open_book: "OpenBook", sample: "Make", fresh: int, batch: int, missing: int
) -> None:
    book = open_book(discard=NO_WAIT)
    book.append([sample(f"stale{key}", turns=20, weight_version=5) for key in range(5)])
    book.append([sample(f"fresh{key}", turns=20, weight_version=6) for key in range(fresh)])
    book.publish(10)

    made = book.assemble()

    assert (made.samples, made.missing_turns, made.discarded) == (batch, missing, 5)
    assert len(discards(book)) == 5


@pytest.mark.parametrize(
    ("order", "primary", "limit"),
    [
        (["age_versions", "wait_seconds"], "age_versions", 4.0),
        (["wait_seconds", "age_versions"], "wait_seconds", 60.0),
    ],
)
def test_f10e_of_two_reasons_the_configured_first_is_primary_and_both_are_kept(
    open_book: "OpenBook",
    sample: "Make",
    clock: "FakeClock",
    *,
    order: list[str],
    primary: str,
    limit: float,
) -> None:
    book = open_book(discard={"max_wait_seconds": 60, "reason_order": order})
    book.append([sample(1)])
    book.publish(6)
    clock.tick(61)

    made = book.assemble()

    (discard,) = discards(book)
    assert made.discarded == 1
    assert (discard["reason"], discard["limit"]) == (primary, limit)
    assert set(discard["reasons"]) == {"age_versions", "wait_seconds"}
    assert discard["age_seconds"] == 61.0


@pytest.mark.parametrize(("waited", "kept"), [(59.999999, 1), (60, 1), (60.000001, 0)])
def test_a_wait_at_the_limit_is_kept_and_a_microsecond_more_is_discarded(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", waited: float, kept: int
) -> None:
    book = open_book(discard={"max_wait_seconds": 60})
    book.append([sample(1)])
    clock.tick(waited)

    made = book.assemble()

    assert made.discarded == 1 - kept


def test_a_duration_class_may_have_a_discard_line_of_its_own(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(
        discard={"max_wait_seconds": 60},
        duration_class={"long": {"max_wait_seconds": 600}, "patient": {"max_age_versions": 9}},
    )
    for name in ("short", "long", "patient"):
        book.append([sample(name, duration_class=name)])
    book.append([sample("none")])
    clock.tick(61)
    book.publish(8)

    book.assemble()

    assert {row["sample_id"]: row["reasons"] for row in discards(book)} == {
        "snone": ["age_versions", "wait_seconds"],
        "sshort": ["age_versions", "wait_seconds"],
        "slong": ["age_versions"],
        "spatient": ["wait_seconds"],
    }


def test_a_limit_that_is_left_out_does_not_apply(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(discard={"max_age_versions": None, "max_wait_seconds": None})
    book.append([sample(1)])
    book.publish(1_000)
    clock.tick(10_000_000)

    assert book.assemble().discarded == 0


def test_before_any_weights_are_published_no_sample_has_an_age_in_versions(
    book: Book, sample: "Make"
) -> None:
    book.append([sample(key) for key in range(4)])

    made = book.assemble()

    rows = book.batch(str(made.batch_id)).rows
    assert (made.samples, rows.column("age_versions").to_pylist()) == (4, [None] * 4)


def test_a_sample_that_awaits_its_reward_ages_and_is_discarded_like_any_other(
    book: Book, sample: "Make"
) -> None:
    book.append([sample(1, reward=None)])
    book.publish(6)

    book.assemble()

    assert states(book) == {"discarded": ["s1"]}


def test_what_was_discarded_stays_so_whatever_is_settled_later(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book()
    book.append([sample(1, reward=None)])
    book.publish(6)
    book.assemble()

    book.reward([{"sample_id": "s1", "reward": 1.0, "grader": "g", "rewarded_at": clock.now}])
    relaxed = open_book(discard={"max_age_versions": 100})
    relaxed.assemble()

    assert states(relaxed) == {"discarded": ["s1"]}


# -- weight versions -----------------------------------------------------------------------------


def test_f11_age_counts_from_the_version_at_dispatch_and_turns_are_split_by_version(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(batch={"turns": 12}, discard=NO_WAIT)
    split = [
        {"weight_version": version, "turns": turns} for version, turns in ((7, 3), (8, 1), (9, 2))
    ]
    spanning = sample(1, turns=6, weight_version=7, weight_version_end=9, turns_by_version=split)
    book.append([spanning | {"sample_id": f"s{key}", "reward": key / 4} for key in range(4)])
    book.publish(11)

    kept = book.assemble()
    book.publish(12)
    discarded = book.assemble()

    assert (kept.samples, discarded.samples, discarded.discarded) == (2, 0, 2)
    assert book.batch(str(kept.batch_id)).rows.column("age_versions").to_pylist() == [4, 4]
    assert [row["age_versions"] for row in discards(book)] == [5, 5]


def test_f11_a_sample_over_three_versions_is_billed_its_six_turns_and_never_eighteen(
    book: Book, sample: "Make"
) -> None:
    split = [
        {"weight_version": version, "turns": turns} for version, turns in ((7, 3), (8, 1), (9, 2))
    ]
    book.append(
        [sample(1, turns=6, weight_version=7, weight_version_end=9, turns_by_version=split)]
    )

    by_start = book.query("SELECT weight_version, turns FROM ledger").to_pylist()
    by_version = book.query(
        "SELECT split.weight_version AS version, SUM(split.turns) AS turns"
        " FROM (SELECT unnest(turns_by_version) AS split FROM samples) GROUP BY ALL ORDER BY 1"
    ).to_pylist()

    assert by_start == [{"weight_version": 7, "turns": 6}]
    assert [(row["version"], int(row["turns"])) for row in by_version] == [(7, 3), (8, 1), (9, 2)]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"weight_version_end": 6}, "versions_reversed"),
        ({"turns_by_version": [{"weight_version": 7, "turns": 18}]}, "turns_by_version"),
    ],
)
def test_f11_a_split_that_does_not_add_up_is_refused(
    book: Book, sample: "Make", change: dict[str, Any], rule: str
) -> None:
    receipt = book.append([sample(1, turns=6, weight_version=7, **change)])

    assert (receipt.added, dict(receipt.rules)) == (0, {rule: 1})


# -- what a pass leaves behind -------------------------------------------------------------------


def test_a_pass_keeps_its_funnel_its_settings_and_the_versions_it_read(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(discard=NO_WAIT)
    book.append([sample(f"stale{key}", weight_version=1) for key in range(2)])
    book.append([sample(key, weight_version=9) for key in range(5)])
    book.append(
        [
            sample("broken", status="env_error"),
            sample("ungraded", weight_version=9, reward=None),
            sample("ungraded and stale", reward=None),
        ]
    )
    book.publish(9)
    versions = {name: table.snapshot().version for name, table in book.tables.items()}

    made = book.assemble()

    (decision,) = book.query("SELECT * FROM decision").to_pylist()
    assert {
        (row["step"], row["reason"]): (row["samples"], row["turns"])
        for row in json.loads(decision["funnel"])
    } == {
        ("waiting", "awaiting_reward"): (1, 25),
        ("held", "never_trainable"): (1, 25),
        ("discarded", "age_versions"): (3, 75),
        ("ready", "ready"): (5, 125),
        ("assigned", "assigned"): (4, 100),
    }
    assert decision["batch_id"] == made.batch_id
    assert (decision["target_turns"], decision["turns"], decision["samples"]) == (100, 100, 4)
    assert decision["weight_version"] == 9
    for name, version in json.loads(decision["table_versions"]).items():
        assert versions[name] == version
    assert set(json.loads(decision["table_versions"])) >= {"samples", "rewards", "weights"}


def test_the_settings_that_a_decision_cites_are_kept_under_their_fingerprint(
    open_book: "OpenBook", sample: "Make"
) -> None:
    with open_book(batch={"turns": 50}, discard={"max_age_versions": 2}) as book:
        book.append([sample(1), sample(2)])
        book.assemble()
        fingerprint = book.settings.fingerprint

    rows = open_book().query(
        "SELECT c.kind, c.document FROM decision AS d"
        " INNER JOIN configs AS c ON c.fingerprint = d.settings_fingerprint"
    )

    (kept,) = rows.to_pylist()
    assert kept["kind"] == "settings"
    assert json.loads(kept["document"])["discard"]["max_age_versions"] == 2
    assert digest(kept["document"]) == fingerprint


def test_every_discard_has_a_reason_a_limit_and_its_settings_on_the_pass(
    book: Book, sample: "Make", clock: "FakeClock"
) -> None:
    book.append([sample(key, weight_version=key) for key in range(6)])
    book.publish(6)
    clock.tick(86_401)
    book.assemble()

    unexplained = book.query(
        "SELECT d.sample_id FROM dispositions AS d"
        " LEFT JOIN decision AS p ON p.sequence = d.sequence"
        " WHERE d.kind = 'discarded' AND ("
        '    d.reason IS NULL OR d."limit" IS NULL OR p.settings_fingerprint IS NULL)'
    )

    assert len(discards(book)) == 6
    assert unexplained.num_rows == 0


def test_an_age_is_live_until_it_is_decided_and_frozen_from_then_on(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 50}, discard=NO_WAIT)
    book.append([sample(1), sample(2), sample(3)])
    book.publish(2)
    clock.tick(10)
    book.assemble()
    book.publish(4)
    clock.tick(10)

    ages = book.query("SELECT * EXCLUDE (position) FROM sample_age ORDER BY sample_id").to_pylist()

    assert ages == [
        {"sample_id": "s1", "age_versions": 1, "age_seconds": 10.0, "is_frozen": True},
        {"sample_id": "s2", "age_versions": 1, "age_seconds": 10.0, "is_frozen": True},
        {"sample_id": "s3", "age_versions": 3, "age_seconds": 20.0, "is_frozen": False},
    ]


def test_the_batch_does_not_depend_on_the_order_of_rows_nor_on_how_they_were_appended(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", tmp_path_factory: Any
) -> None:
    """Equally old samples of one delivery go by id, those of several by delivery."""
    rows = [
        sample(key, turns=7 + key, finished_at=clock.now - timedelta(seconds=key // 4))
        for key in range(12)
    ]
    book = open_book(batch={"turns": 60})
    book.append(rows)
    other = Book.create(tmp_path_factory.mktemp("other") / "book", book.settings, clock=clock)
    for part in (rows[8:], rows[4:8][::-1], rows[:4]):
        other.append(part)
    list(other.maintain())

    with other:
        assert ids(book, book.assemble().batch_id) == ids(other, other.assemble().batch_id)


def test_a_stream_that_is_not_there_is_refused(book: Book) -> None:
    for ask in (
        lambda: book.assemble(stream="reply"),
        lambda: next(book.batches("L", stream="reply")),
        lambda: book.facts("reply"),
    ):
        with pytest.raises(ValueError, match="no stream 'reply': there are train and replay"):
            ask()
