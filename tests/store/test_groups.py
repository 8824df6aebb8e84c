"""A group is taken whole: it settles, is judged and enters a batch, or goes, as one unit."""

from collections import Counter
from datetime import timedelta
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from rollbook.store.book import Book

if TYPE_CHECKING:
    from tests.store.conftest import FakeClock, Make, OpenBook

Row = dict[str, Any]


def discards(book: Book) -> dict[str, str]:
    """Return sample → primary reason of all discards."""
    rows = book.query("SELECT sample_id, reason FROM dispositions WHERE kind = 'discarded'")
    return {row["sample_id"]: row["reason"] for row in rows.to_pylist()}


def taken(book: Book, batch_id: str | None) -> list[str]:
    """Return the samples of a batch, in order of id; none if there is no batch."""
    if batch_id is None:
        return []
    return sorted(book.batch(batch_id).rows.column("sample_id").to_pylist())


def groups_of(sample: "Make", *rewards: list[float], turns: int = 25) -> list[Row]:
    """Return groups named g0, g1 …, whose members are named s0-0, s0-1 …, with these rewards."""
    return [
        sample(f"{group}-{nth}", group_id=f"g{group}", reward=reward, turns=turns)
        for group, each in enumerate(rewards)
        for nth, reward in enumerate(each)
    ]


# -- settling ------------------------------------------------------------------------------------


def f04_group(sample: "Make", clock: "FakeClock", members: range) -> list[Row]:
    """Return members that ended 60, 65, 70 … seconds after the start."""
    return [
        sample(nth, group_id="g", finished_at=clock.now + timedelta(seconds=60 + 5 * nth))
        for nth in members
    ]


@pytest.mark.parametrize("restart_at", [None, 1_000])
def test_f04_a_group_settles_without_its_straggler_by_the_clock_in_the_data(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", restart_at: int | None
) -> None:
    groups = {"size": 8, "min_members": 4, "settle_seconds": 1_800}
    book = open_book(groups=groups)
    seven = f04_group(sample, clock, range(7))
    clock.tick(90)
    book.append(seven)
    if restart_at:
        clock.tick(restart_at - 90)
        assert book.assemble().batch_id is None
        book.close()
        book = open_book(groups=groups)
    clock.tick(1_859.999999 - (restart_at or 90))
    before = book.assemble()
    clock.tick(0.000001)

    made = book.assemble()

    assert (before.batch_id, before.blocker) == (None, "short")
    assert {(row["step"], row["reason"], row["samples"]) for row in before.funnel} == {
        ("waiting", "group_open", 7)
    }
    assert (made.samples, made.discarded) == (7, 0)


def test_f04_the_straggler_of_a_settled_group_is_stored_billed_and_not_trained(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(groups={"size": 8, "min_members": 4})
    members = f04_group(sample, clock, range(8))
    clock.tick(1_860)
    book.append(members[:7])
    first = book.assemble()
    clock.tick(140)
    book.append(members[7:])

    second = book.assemble()

    assert (first.samples, second.samples, second.discarded) == (7, 0, 1)
    assert discards(book) == {"s7": "wait_exceeded"}
    assert book.query("SELECT SUM(samples) AS n FROM ledger").to_pylist() == [{"n": 8}]


def test_f04_with_eight_valid_members_wanted_the_seven_are_discarded_and_then_the_eighth(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(groups={"size": 8})
    members = f04_group(sample, clock, range(8))
    clock.tick(1_860)
    book.append(members[:7])
    book.assemble()
    clock.tick(140)
    book.append(members[7:])

    book.assemble()

    assert Counter(discards(book).values()) == {"group_incomplete": 7, "wait_exceeded": 1}
    assert discards(book)["s7"] == "wait_exceeded"


def test_a_late_member_of_a_trained_group_is_never_trained(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(groups={"size": 5, "min_members": 2, "settle_seconds": 60})
    book.append(groups_of(sample, [0.0, 0.5, 0.75, 1.0]))
    clock.tick(60)
    book.ack(str(book.assemble().batch_id))
    book.append([sample("late", group_id="g0")])

    made = book.assemble()

    assert (made.batch_id, discards(book)) == (None, {"slate": "wait_exceeded"})


@pytest.mark.parametrize("line", [{}, {"max_wait_seconds": 3_600}])
def test_late_members_make_no_second_group_though_all_before_them_was_decided_long_ago(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", line: Row
) -> None:
    """The low-water mark waits for groups that lack members as long as a sample may wait."""
    book = open_book(
        batch={"turns": 50},
        groups={"size": 4, "min_members": 2, "settle_seconds": 60},
        discard=line,
        duration_class={"long": {"max_wait_seconds": 86_400}},
    )
    book.append([sample(key, group_id="g", duration_class="long") for key in range(2)])
    clock.tick(60)
    book.ack(str(book.assemble().batch_id))
    for hour in range(3):
        clock.tick(3_600)
        rows = [sample(f"{hour}-{key}", group_id=f"h{hour}") for key in range(4)]
        book.append([row | {"finished_at": clock.now} for row in rows])
        book.ack(str(book.assemble().batch_id))
    changes = {"group_id": "g", "duration_class": "long", "finished_at": clock.now}
    book.append([sample(f"late{key}", **changes) for key in range(2)])
    clock.tick(60)

    made = book.assemble()

    assert made.batch_id is None
    assert discards(book) == {"slate0": "wait_exceeded", "slate1": "wait_exceeded"}


def test_a_group_that_awaits_a_reward_settles_without_it_and_leaves_it_behind(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(groups={"size": 5, "min_members": 4, "settle_seconds": 60})
    book.append(groups_of(sample, [0.0, 0.5, 0.75, 1.0]))
    book.append([sample("ungraded", group_id="g0", reward=None)])
    before = book.assemble()
    clock.tick(60)

    made = book.assemble()

    assert (before.samples, made.samples) == (0, 4)
    assert discards(book) == {"sungraded": "wait_exceeded"}


def test_a_group_of_unpublished_weights_waits_for_them_however_long(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    """All its members are there: to lose them as incomplete would blame the group."""
    book = open_book(groups={"size": 4, "settle_seconds": 60})
    book.publish(1)
    rewards = [0.0, 0.5, 0.75, 1.0]
    book.append(
        [
            sample(nth, group_id="g", reward=reward, weight_version=1 + nth % 2)
            for nth, reward in enumerate(rewards)
        ]
    )
    reasons = {entry["reason"] for entry in book.assemble().funnel}
    clock.tick(61)
    reasons |= {entry["reason"] for entry in book.assemble().funnel}
    book.publish(2)

    made = book.assemble()

    assert reasons == {"unpublished"}
    assert (made.samples, made.discarded) == (4, 0)


def test_a_group_of_unpublished_weights_that_lacks_a_member_settles_once_they_are_published(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(groups={"size": 4, "settle_seconds": 60})
    book.publish(1)
    book.append([sample(nth, group_id="g", weight_version=2) for nth in range(3)])
    open_as = [entry["reason"] for entry in book.assemble().funnel]
    clock.tick(61)
    open_as += [entry["reason"] for entry in book.assemble().funnel]
    book.publish(2)

    made = book.assemble()

    assert open_as == ["group_open", "unpublished"]
    assert (made.samples, made.discarded) == (0, 3)


def test_a_whole_group_waits_for_its_reward_and_not_for_members(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(groups={"size": 3})
    book.append([sample(nth, group_id="whole", reward=[0.0, 1.0, None][nth]) for nth in range(3)])
    book.append([sample(nth, group_id="short", reward=[0, 0, 0, 0.0, None][nth]) for nth in (3, 4)])

    made = book.assemble()

    assert {(entry["reason"], entry["samples"]) for entry in made.funnel} == {
        ("awaiting_reward", 3),
        ("group_open", 2),
    }


@pytest.mark.parametrize("left", ["extra", "ungraded"])
def test_a_group_that_is_ready_waits_for_its_batch_without_those_that_it_left_behind(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", left: str
) -> None:
    """They are discarded at once, and the group is still not late."""
    size = 2 if left == "extra" else 3
    book = open_book(
        batch={"turns": 100}, groups={"size": size, "min_members": 2, "settle_seconds": 60}
    )
    earlier = [clock.now - timedelta(seconds=age) for age in (3, 2)]
    book.append([sample(n, group_id="g", finished_at=earlier[n]) for n in range(2)])
    book.append([sample(left, group_id="g", reward=None if left == "ungraded" else 1.0)])
    clock.tick(60)
    short = [book.assemble() for _ in range(3)]
    book.append([sample(nth, group_id="h", reward=nth / 9) for nth in range(3, 3 + size)])

    made = book.assemble()

    assert [each.pending_turns for each in short] == [50, 50, 50]
    assert discards(book) == {
        f"s{left}": "group_extra" if left == "extra" else "wait_exceeded",
    }
    assert {"s0", "s1"} < set(taken(book, made.batch_id))


def test_a_released_group_comes_again_though_a_member_came_too_late_meanwhile(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(
        batch={"turns": 50}, groups={"size": 3, "min_members": 2, "settle_seconds": 60}
    )
    book.append([sample(nth, group_id="g") for nth in range(2)])
    clock.tick(60)
    first = book.assemble()
    book.append([sample("late", group_id="g")])
    book.assemble()
    book.release(str(first.batch_id))

    again = book.assemble()

    assert taken(book, again.batch_id) == ["s0", "s1"]
    assert discards(book) == {"slate": "wait_exceeded"}


def test_a_late_report_is_no_member(open_book: "OpenBook", sample: "Make") -> None:
    """It is of an attempt that another one has replaced: it spoils and completes no group."""
    book = open_book(batch={"turns": 50}, groups={"size": 2, "unusable": "group"})
    book.append([sample(0, group_id="g"), sample("report", group_id="g", status="late")])
    before = book.assemble()
    book.append([sample(1, group_id="g")])

    made = book.assemble()

    assert (before.batch_id, before.discarded) == (None, 0)
    assert taken(book, made.batch_id) == ["s0", "s1"]
    assert discards(book) == {}


def test_a_released_group_comes_again_whole(open_book: "OpenBook", sample: "Make") -> None:
    book = open_book(groups={"size": 4})
    book.append(groups_of(sample, [0.0, 0.5, 0.75, 1.0]))
    first = book.assemble()
    book.release(str(first.batch_id))

    again = book.assemble()

    assert again.batch_id != first.batch_id
    assert taken(book, again.batch_id) == taken(book, first.batch_id)
    assert discards(book) == {}


# -- identity ------------------------------------------------------------------------------------


def test_f06_two_draws_of_one_prompt_are_two_groups(open_book: "OpenBook", sample: "Make") -> None:
    book = open_book(groups={"size": 2})
    book.append(
        [row | {"task_id": "prompt P"} for row in groups_of(sample, [1.0, 1.0], [0.0, 0.0])]
    )

    made = book.assemble()

    reasons = book.query(
        "SELECT s.group_id, d.reasons, COUNT(*) AS n FROM dispositions AS d"
        " JOIN samples AS s ON s.sample_id = d.sample_id GROUP BY ALL ORDER BY 1"
    )
    assert made.batch_id is None
    assert reasons.to_pylist() == [
        {"group_id": "g0", "reasons": ["flat", "too_easy"], "n": 2},
        {"group_id": "g1", "reasons": ["flat", "too_hard"], "n": 2},
    ]


@pytest.mark.parametrize("name", [str, lambda _: None])
def test_f06_groups_of_one_are_incomplete_and_told_against_the_size_that_was_expected(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock", name: Any
) -> None:
    book = open_book(batch={"turns": 50}, groups={"size": 2, "settle_seconds": 60})
    book.append([sample(key, group_id=name(key)) for key in range(4)])
    clock.tick(60)

    made = book.assemble()

    rows = book.query(
        "SELECT DISTINCT reason, \"limit\" FROM dispositions WHERE kind = 'discarded'"
    )
    assert (made.batch_id, made.discarded) == (None, 4)
    assert rows.to_pylist() == [{"reason": "group_incomplete", "limit": 2.0}]


def test_members_beyond_the_size_of_a_group_are_discarded_the_youngest_first(
    open_book: "OpenBook", sample: "Make", clock: "FakeClock"
) -> None:
    book = open_book(batch={"turns": 50}, groups={"size": 2})
    book.append(
        [
            sample(key, group_id="g", finished_at=clock.now - timedelta(seconds=age))
            for key, age in (("young", 1), ("oldest", 9), ("old", 5))
        ]
    )

    made = book.assemble()

    assert taken(book, made.batch_id) == ["sold", "soldest"]
    assert discards(book) == {"syoung": "group_extra"}


# -- members that cannot be used -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "min_members", "kept", "reasons"),
    [
        ("sample", 4, 7, {"age_versions": 1}),
        ("sample", 8, 0, {"age_versions": 1, "group_incomplete": 7}),
        ("group", 4, 0, {"age_versions": 1, "sibling": 7}),
    ],
)
def test_f10d_a_stale_member_goes_alone_or_takes_its_group_with_it(
    open_book: "OpenBook",
    sample: "Make",
    *,
    policy: str,
    min_members: int,
    kept: int,
    reasons: dict[str, int],
) -> None:
    book = open_book(
        discard={"max_age_versions": 4, "policy": policy},
        groups={"size": 8, "min_members": min_members},
    )
    book.append([sample(key, group_id="g", weight_version=min(5 + key, 6)) for key in range(8)])
    book.publish(10)

    made = book.assemble()

    assert made.samples == kept
    assert Counter(discards(book).values()) == reasons
    assert discards(book)["s0"] == "age_versions"


@pytest.mark.parametrize(
    ("policy", "kept", "reasons"), [("sample", 3, {}), ("group", 0, {"sibling": 3})]
)
def test_f17_a_broken_environment_is_no_failed_member(
    open_book: "OpenBook", sample: "Make", policy: str, kept: int, reasons: dict[str, int]
) -> None:
    book = open_book(batch={"turns": 75}, groups={"size": 4, "min_members": 3, "unusable": policy})
    rows = groups_of(sample, [1.0, 1.0, 0.0, 0.0])
    rows[3] |= {"status": "env_error"}
    book.append(rows)

    made = book.assemble()

    assert taken(book, made.batch_id) == [f"s0-{nth}" for nth in range(kept)]
    assert Counter(discards(book).values()) == reasons
    headers = book.query("SELECT failed_turns FROM dispositions WHERE batch_id IS NOT NULL")
    assert {row["failed_turns"] for row in headers.to_pylist()} <= {25, None}
    assert book.query("SELECT SUM(samples) AS n FROM ledger").to_pylist() == [{"n": 4}]


@pytest.mark.parametrize(("turns", "kept"), [(25, 4), (26, 0)])
def test_a_group_of_more_turns_than_a_unit_may_have_is_oversize(
    open_book: "OpenBook", sample: "Make", turns: int, kept: int
) -> None:
    book = open_book(batch={"turns": 100, "max_unit_turns": 100}, groups={"size": 4})
    book.append(groups_of(sample, [0.0, 0.5, 0.75, 1.0], turns=turns))

    made = book.assemble()

    assert made.samples == kept
    assert set(discards(book).values()) == (set() if kept else {"oversize"})


def test_groups_are_taken_whole_though_the_turns_suffice_before(
    open_book: "OpenBook", sample: "Make"
) -> None:
    book = open_book(batch={"turns": 110}, groups={"size": 4})
    book.append(groups_of(sample, *[[0.0, 0.5, 0.75, 1.0]] * 3))

    made = book.assemble()

    assert taken(book, made.batch_id) == [f"s{group}-{nth}" for group in (0, 1) for nth in range(4)]
    assert (made.samples, made.turns) == (8, 200)


# -- no gradient ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "is_flat"),
    [
        ([0.1] * 3, True),
        ([0.2] * 7, True),
        ([0.95] * 7, True),
        ([0.7] * 6, True),
        ([0.1, 0.1, 0.1000001], False),
        ([0.0, 1e-9, 0.0], True),
        ([0.0, 1.1e-9, 0.0], False),
        ([0.1 + 0.2, 0.3, 0.3], True),
        ([-1.0, 1.0, 0.0], False),
    ],
)
def test_f18_a_group_is_flat_by_the_spread_of_its_rewards_in_whatever_order_they_came(
    open_book: "OpenBook", sample: "Make", *, rewards: list[float], is_flat: bool
) -> None:
    orders = sorted(set(permutations(rewards)))
    book = open_book(batch={"turns": 10_000}, groups={"size": len(rewards)})
    book.append(groups_of(sample, *(list(order) for order in orders), turns=1))

    made = book.assemble()

    assert made.discarded == (len(rewards) * len(orders) if is_flat else 0)
    assert set(discards(book).values()) == ({"flat"} if is_flat else set())


@pytest.mark.parametrize(("other", "kept"), [([1.0, 0.0], 4), ([0.0, 0.0], 0)])
def test_flat_groups_that_are_kept_still_need_a_group_with_a_gradient_beside_them(
    open_book: "OpenBook", sample: "Make", other: list[float], kept: int
) -> None:
    book = open_book(groups={"size": 2, "flat": "keep"})
    book.append(groups_of(sample, [1.0, 1.0], other))

    made = book.assemble()

    assert made.samples == kept
    assert made.blocker == (None if kept else "no_gradient")
    assert made.discarded == 0
