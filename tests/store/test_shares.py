"""Every stratum gets its share of the turns in the long run, and its least share in a batch."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from random import Random
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rollbook.store.book import Book
from rollbook.store.settings import Settings

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook, Rows

Row = dict[str, Any]
NO_LIMITS: Row = {"max_age_versions": None, "max_wait_seconds": None}


def turns_by(book: Book, column: str, *batch_ids: str | None) -> Counter[str]:
    """Return the turns of some batches by a column of their samples."""
    counted: Counter[str] = Counter()
    for batch_id in batch_ids:
        for row in book.batch(str(batch_id)).table([column, "turns"]).to_pylist():
            counted[row[column]] += row["turns"]
    return counted


def many(sample: "Make", task_type: str, count: int, **changes: Any) -> list[Row]:
    """Return samples of a task type that ended as soon as they began, 10 turns each."""
    rows = [sample(f"{task_type}{nth:03}", task_type=task_type, turns=10) for nth in range(count)]
    return [row | {"started_at": row["finished_at"]} | changes for row in rows]


# -- shares --------------------------------------------------------------------------------------


def test_a_batch_has_the_mix_that_was_submitted_though_one_type_ended_first(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 200})
    earlier = clock.now - timedelta(hours=1)
    book.append(many(sample, "quick", 60, started_at=earlier, finished_at=earlier))
    book.append(many(sample, "slow", 20))

    made = book.assemble()

    assert turns_by(book, "task_type", made.batch_id) == {"quick": 150, "slow": 50}


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ({"a": 0.5, "b": 0.5}, {"a/x": 25, "a/y": 75, "b/x": 100}),
        ({"a": 3, "b": 1}, {"a/x": 37.5, "a/y": 112.5, "b/x": 50}),
        ({"a/x": 0.5, "a/y": 0.25, "b/x": 0.25}, {"a/x": 100, "a/y": 50, "b/x": 50}),
        ({"a": 1.0}, {"a/x": 50, "a/y": 150}),
    ],
)
def test_a_configured_share_is_of_a_stratum_or_of_a_task_type_and_then_split_as_submitted(
    open_book: "OpenBook", sample: "Make", configured: Mapping[str, float], expected: Row
) -> None:
    total = sum(configured.values())
    shares = {name: share / total for name, share in configured.items()}
    book = open_book(batch={"turns": 200}, shares={"mode": "configured", "configured": shares})
    for name, of_class, count in (("a", "x", 20), ("a", "y", 60), ("b", "x", 40)):
        rows = many(sample, name, count, duration_class=of_class)
        book.append([row | {"sample_id": f"{of_class}{row['sample_id']}"} for row in rows])

    made = book.assemble()

    rows = book.batch(str(made.batch_id)).table(["task_type", "duration_class"]).to_pylist()
    got = Counter(f"{row['task_type']}/{row['duration_class']}" for row in rows)
    assert set(got) == set(expected)
    for stratum, turns in expected.items():
        assert abs(10 * got[stratum] - turns) <= 10


def test_what_a_stratum_was_short_of_is_repaid_and_never_more_than_one_batch_of_it(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(
        batch={"turns": 100},
        discard=NO_LIMITS,
        shares={"mode": "configured", "configured": {"quick": 0.5, "slow": 0.5}},
    )
    book.append(many(sample, "quick", 100))
    book.append(many(sample, "slow", 1))
    first = [book.assemble().batch_id for _ in range(4)]
    book.append(many(sample, "slow", 101)[1:])

    later = [turns_by(book, "task_type", book.assemble().batch_id)["slow"] for _ in range(4)]

    assert turns_by(book, "task_type", *first) == {"quick": 390, "slow": 10}
    # It was 190 short; the batch of 100 that it is owed, and its half of these four.
    assert later[0] == 100
    assert sum(later) == 300


Mix = dict[str, tuple[int, int]]  # stratum → its weight, and the turns of its largest unit
RARE_AND_LARGE: Mix = {"a": (18, 2), "b": (1, 25), "c": (1, 25)}


def random_mix(seed: int) -> Mix:
    """Return a random mix of two to five strata."""
    chance = Random(seed)
    names = "abcde"[: 2 + seed % 4]
    return {name: (chance.choice([1, 2, 5, 20]), chance.choice([2, 8, 25])) for name in names}


def simulate(book: Book, rows: "Rows", clock: "FakeClock", mix: Mix, batches: int) -> None:
    """Make batches of 100 turns, eight after each delivery, which holds supply of all strata."""
    chance = Random(batches)
    for nth in range(batches):
        if nth % 8 == 0:
            book.append(
                [
                    rows.sample(
                        f"{nth}-{name}-{key}",
                        task_type=name,
                        turns=chance.randint(1, largest),
                        started_at=None,
                        finished_at=clock.now - timedelta(seconds=chance.randint(0, 59)),
                    )
                    for name, (_, largest) in mix.items()
                    for key in range(1_600 // (largest + 1) + 4)
                ]
            )
        clock.tick(10)
        assert book.assemble().batch_id


@pytest.mark.parametrize(
    ("mix", "batches"),
    [
        (RARE_AND_LARGE, 24),
        (random_mix(3), 16),
        *(
            pytest.param(mix, 1_000, marks=pytest.mark.chaos)
            for mix in (RARE_AND_LARGE, *map(random_mix, range(5)))
        ),
    ],
)
def test_in_the_long_run_no_stratum_is_further_from_its_share_than_the_largest_unit(
    open_book: "OpenBook",
    rows: "Rows",
    clock: "FakeClock",
    report: Callable[[str], None],
    *,
    mix: Mix,
    batches: int,
) -> None:
    total = sum(weight for weight, _ in mix.values())
    shares = {name: weight / total for name, (weight, _) in mix.items()}
    book = open_book(discard=NO_LIMITS, shares={"mode": "configured", "configured": shares})

    simulate(book, rows, clock, mix, batches)

    owed, worst = Counter[str](), 0.0
    told = book.query(TURNS_BY_BATCH).to_pylist()
    for row in told:
        owed[row["task_type"]] += row["all_turns"] * shares[row["task_type"]] - row["turns"]
        worst = max(worst, abs(owed[row["task_type"]]))
    largest = max(row["largest"] for row in told)
    assert len(told) == batches * len(mix)
    assert worst <= largest
    report(f"{batches} batches of {len(mix)} strata: at most {worst / largest:.2f} units off")


TURNS_BY_BATCH = """
    WITH got AS (
        SELECT
            d.sequence,
            s.task_type,
            CAST(SUM(s.turns) AS BIGINT) AS turns,
            MAX(s.turns) AS largest
        FROM dispositions AS d
        INNER JOIN samples AS s ON s.position = d.position
        WHERE d.kind = 'assigned'
        GROUP BY ALL
    )

    SELECT
        p.sequence,
        t.task_type,
        p.turns AS all_turns,
        COALESCE(g.turns, 0) AS turns,
        COALESCE(g.largest, 0) AS largest
    FROM dispositions AS p
    CROSS JOIN (SELECT DISTINCT task_type FROM samples) AS t
    LEFT JOIN got AS g ON g.sequence = p.sequence AND g.task_type = t.task_type
    WHERE p.kind = 'pass' AND p.batch_id IS NOT NULL
    ORDER BY p.sequence, t.task_type
"""


def test_strata_of_one_name_share_an_account_and_no_sample_is_taken_twice(
    open_book: "OpenBook", sample: "Make"
) -> None:
    """A task type may hold a slash: a/b of class c is called like a of class b/c."""
    book = open_book(batch={"turns": 100})
    book.append(many(sample, "a/b", 5, duration_class="c"))
    book.append([row | {"task_type": "a", "duration_class": "b/c"} for row in many(sample, "a", 5)])

    made = book.assemble()

    assert (made.samples, made.turns) == (10, 100)
    assert turns_by(book, "task_type", made.batch_id) == {"a/b": 50, "a": 50}


# -- what a stratum must have --------------------------------------------------------------------


@pytest.mark.parametrize("waited", [0, 599, 600])
@pytest.mark.parametrize("comes", [True, False])
def test_a_batch_waits_for_a_least_share_until_the_wait_is_over_and_then_says_what_it_lacks(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", *, waited: int, comes: bool
) -> None:
    least = {"rare/any": 0.2}
    book = open_book(batch={"turns": 100}, shares={"least": least, "least_wait_seconds": 600})
    book.append(many(sample, "common", 30))
    waits = book.assemble()
    clock.tick(waited)
    if comes:
        book.append(many(sample, "rare", 3))

    made = book.assemble()

    (latest,) = book.query(
        "SELECT unmet FROM dispositions WHERE kind = 'pass' ORDER BY sequence DESC LIMIT 1"
    ).to_pylist()
    assert (waits.batch_id, waits.blocker) == (None, "least_share")
    assert (made.batch_id is None) == (waited < 600 and not comes)
    assert latest["unmet"] == ([] if comes else ["rare/any"])
    if comes:
        assert turns_by(book, "task_type", made.batch_id) == {"common": 80, "rare": 20}


# -- the discard line by class -------------------------------------------------------------------


@pytest.mark.parametrize(("own_cap", "discarded"), [(None, 20), (6, 0)])
def test_f13_one_cap_for_all_takes_the_long_tasks_and_a_cap_of_their_own_keeps_them(
    open_book: "OpenBook", sample: "Make", own_cap: int | None, discarded: int
) -> None:
    """Per hour 100 of five minutes and 20 of 55, which are five versions old when they end."""
    classes = {"long": {"max_age_versions": own_cap}} if own_cap else {}
    book = open_book(batch={"turns": 240}, discard={"max_age_versions": 4}, duration_class=classes)
    book.append(
        many(sample, "short", 100, duration_class="short", env_seconds=300.0, weight_version=6)
    )
    book.append(
        many(sample, "long", 20, duration_class="long", env_seconds=3_300.0, weight_version=1)
    )
    book.publish(6)

    made = book.assemble()

    told = [
        (row["reason"], row["task_type"], row["samples"])
        for row in book.sql("discards").to_pylist()
    ]
    seconds = book.query("SELECT env_seconds FROM ledger WHERE task_type = 'long'").to_pylist()
    assert made.discarded == discarded
    assert told == ([("age_versions", "long", 20)] if discarded else [])
    assert sum(row["env_seconds"] for row in seconds) == 66_000
    expected = {"short": 240} if discarded else {"short": 200, "long": 40}
    assert turns_by(book, "task_type", made.batch_id) == expected


def test_over_a_soft_limit_a_sample_is_kept_and_counted(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(
        discard={"soft_age_versions": 2, "soft_wait_seconds": 60},
        duration_class={"patient": {"soft_age_versions": 4, "soft_wait_seconds": 600}},
    )
    book.append([sample("at the limit", weight_version=3), sample("over", weight_version=2)])
    book.append([sample("patient", weight_version=2, duration_class="patient")])
    book.publish(5)
    first = book.assemble()
    clock.tick(61)
    book.append([sample("fresh", weight_version=5, finished_at=clock.now)])

    made = book.assemble()

    soft = [
        sum(row["samples"] for row in each.funnel if row["reason"] == "over_soft_limit")
        for each in (first, made)
    ]
    assert soft == [1, 2]
    assert (made.samples, made.discarded) == (4, 0)


# -- gradient ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "rewards", "made"),
    [
        (10, [1, 1, 1, 1, 1, 1, 0, 1], "0126"),
        (10, [0, 0, 0, 0, 0, 0, 0, 1], "0127"),
        (10, [1, 1, 1, 1, 0, 1, 0], "0124"),
        (10, [1, 0, 1, 1, 1, 1], "0123"),
        (50, [1, 1, 0], "02"),
        (10, [0.5] * 8, ""),
    ],
)
def test_equal_rewards_in_front_do_not_stand_in_the_way_of_a_gradient_behind_them(
    open_book: "OpenBook",
    sample: "Make",
    clock: "FakeClock",
    *,
    turns: int,
    rewards: list[float],
    made: str,
) -> None:
    book = open_book(batch={"turns": 40})
    ends = [clock.now - timedelta(seconds=60 - nth) for nth in range(len(rewards))]
    book.append(
        [
            sample(nth, turns=turns, reward=float(reward), finished_at=end, started_at=None)
            for nth, (reward, end) in enumerate(zip(rewards, ends, strict=True))
        ]
    )

    found = book.assemble()

    assert found.blocker == (None if made else "no_gradient")
    rows = book.query("SELECT sample_id FROM dispositions WHERE kind = 'assigned' ORDER BY ordinal")
    assert "".join(rows.column(0).to_pylist()).replace("s", "") == made


# -- streams -------------------------------------------------------------------------------------


def test_a_replay_never_stands_beside_an_original_or_a_resample(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book()
    for nth in range(4):
        parent = {"parent_sample_id": f"s{nth}"}
        book.append([sample(nth), sample(f"{nth}'", origin="resample", **parent)])
        replayed = {"origin": "replay", "environment_snapshot_id": "snapshot", **parent}
        book.append([sample(f"{nth}''", **replayed)])

    passes = [book.assemble(stream=stream) for stream in ("replay", "train", "replay", "train")]

    by_stream = [
        sorted(turns_by(book, "origin", made.batch_id)) if made.batch_id else None
        for made in passes
    ]
    assert by_stream == [["replay"], ["original", "resample"], None, ["original", "resample"]]


def test_an_account_counts_all_that_arrived_though_passes_of_the_other_stream_lose_sight_of_it(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    """What a replay batch took within the hour lies below the low-water mark hours later."""
    book = open_book(batch={"turns": 10})
    replayed = {"origin": "replay", "environment_snapshot_id": "snapshot", "parent_sample_id": "s"}
    for nth in range(3):
        for stream, origin in (("train", {}), ("replay", replayed)):
            changes = dict.fromkeys(("started_at", "finished_at"), clock.now) | origin
            pair = many(sample, stream, 2, turns=5, **changes)
            book.append([row | {"sample_id": f"{row['sample_id']}-{nth}"} for row in pair])
        if nth == 0:
            book.ack(str(book.assemble(stream="replay").batch_id))
        book.ack(str(book.assemble().batch_id))
        clock.tick(7_200)
    book.assemble(stream="replay")

    (row,) = book.query(
        "SELECT balance FROM dispositions WHERE kind = 'pass' ORDER BY sequence DESC LIMIT 1"
    ).to_pylist()
    streams = json.loads(row["balance"])["streams"]
    settled = {name: [s["settled_turns"] for s in each["strata"]] for name, each in streams.items()}
    assert settled == {"replay": [30], "train": [30]}


# -- settings that contradict each other ---------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "names"),
    [
        (
            {"discard": {"soft_age_versions": 5, "max_age_versions": 4}},
            ["soft_age_versions 5", "max_age_versions 4"],
        ),
        (
            {"discard": {"soft_wait_seconds": 61, "max_wait_seconds": 60}},
            ["soft_wait_seconds 61", "max_wait_seconds 60"],
        ),
        (
            {"duration_class": {"long": {"soft_age_versions": 5}}},
            ["duration_class.long.soft_age_versions 5", "discard.max_age_versions 4"],
        ),
        ({"groups": {"size": 4, "min_members": 5}}, ["min_members 5", "size 4"]),
        ({"groups": {"min_members": 5}}, ["min_members is 5", "size"]),
        (
            {"groups": {"size": 4}, "discard": {"max_wait_seconds": 1799}},
            ["discard.max_wait_seconds 1799", "groups.settle_seconds 1800"],
        ),
        (
            {"groups": {"size": 4}, "duration_class": {"short": {"max_wait_seconds": 60}}},
            ["duration_class.short.max_wait_seconds 60", "groups.settle_seconds 1800"],
        ),
        ({"shares": {"least": {"a/x": 0.6, "b/x": 0.5}}}, ["least", "1.1"]),
        ({"shares": {"mode": "configured"}}, ["mode", "configured"]),
        ({"shares": {"configured": {"a": 1.0}}}, ["configured names a", "mode is submitted"]),
        (
            {
                "shares": {
                    "mode": "configured",
                    "configured": {"a/x": 0.0, "b": 1.0},
                    "least": {"a/x": 0.1},
                }
            },
            ["least.a/x is 0.1", "configured.a/x is 0"],
        ),
        (
            {
                "shares": {
                    "mode": "configured",
                    "configured": {"a": 0.0, "b": 1.0},
                    "least": {"a/x": 0.1},
                }
            },
            ["least.a/x is 0.1", "configured.a is 0"],
        ),
        ({"shares": {"least": {"a": 0.1}}}, ["least names a", "type/class"]),
    ],
)
def test_settings_that_contradict_each_other_are_refused_and_both_are_named(
    sections: Row, names: list[str]
) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(sections)

    for name in names:
        assert name in str(caught.value)


# -- the same batch, however it lies -------------------------------------------------------------

ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["short", "long"]),
        st.integers(1, 9),  # turns
        st.sampled_from([0.0, 0.5, 1.0]),  # reward
        st.integers(0, 3),  # age: equals are wanted
        st.integers(0, 6),  # group
    ),
    min_size=10,
    max_size=40,
)


@pytest.mark.parametrize("examples", [3, pytest.param(200, marks=pytest.mark.chaos)])
def test_the_batches_are_the_same_for_any_order_of_rows_any_files_and_any_number_of_threads(
    blank: Path,
    rows: "Rows",
    tmp_path_factory: pytest.TempPathFactory,
    examples: int,
) -> None:
    made: list[str] = []

    def all_batches(limits: Settings, deliveries: list[list[Row]], *, is_plain: bool) -> list[str]:
        root = tmp_path_factory.mktemp("same") / "book"
        copytree(blank, root)
        with Book.open(root, limits, clock=rows.FakeClock()) as book:
            for delivery in deliveries:
                book.append(delivery)
            if not is_plain:
                list(book.maintain())
                book._assembler._look()[0].query("SET threads = 1")
            while book.assemble().batch_id:
                pass
            chosen = book.query(
                "SELECT batch_id || ' ' || ordinal || ' ' || sample_id AS line FROM dispositions"
                " WHERE kind = 'assigned' ORDER BY sequence, ordinal"
            )
            return [str(line) for line in chosen.column(0).to_pylist()]

    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(arrivals=ARRIVALS, size=st.sampled_from([None, 3]), chance=st.randoms())
    def agrees(arrivals: list[tuple[Any, ...]], size: int | None, chance: Random) -> None:
        limits = Settings.model_validate(
            {
                "batch": {"turns": 24, "truncated_share": 0.5},
                "groups": {"size": size, "min_members": size and 1, "settle_seconds": 0},
                "default_task_type": {"failure_share": 0.4},
            }
        )
        started = rows.FakeClock().now
        delivery = [
            rows.sample(
                nth,
                task_type=name,
                duration_class=of_class,
                turns=turns,
                reward=reward,
                group_id=f"g{group}",
                started_at=None,
                finished_at=started - timedelta(seconds=age),
            )
            for nth, (name, of_class, turns, reward, age, group) in enumerate(arrivals)
        ]
        parts = [delivery[: len(delivery) // 2], delivery[len(delivery) // 2 :]]
        shuffled = [chance.sample(part, len(part)) for part in parts]

        first = all_batches(limits, parts, is_plain=True)
        again = all_batches(limits, shuffled, is_plain=False)

        made.extend(first)
        assert first == again

    agrees()

    assert made
