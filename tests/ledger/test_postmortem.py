"""The verdict follows from facts alone: what explains the stall, in the order that it is asked."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rollbook.ledger import Postmortem, explain
from rollbook.ledger.postmortem import ADVICE
from rollbook.store.facts import Facts, lost_since
from rollbook.store.settings import Settings

Row = dict[str, Any]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
THEN, AT = NOW - timedelta(seconds=601), "2026-03-01 11:49:59Z"
PLAIN: Row = {
    "now": NOW,
    "target_turns": 100,
    "ready_turns": 60,
    "blocker": "short",
    "unmet": [],
    "flat_sides": [],
    "enough_since": None,
    "funnel": [{"step": "ready", "reason": "ready", "task_type": "a", "samples": 3, "turns": 60}],
    "held": [],
    "unacked": [],
    "refused": [],
    "lacking": [],
    "broken": [],
    "discarded": [],
    "incidents": [],
    "last_arrival_at": THEN,
    "current_version": 2,
    "last_published_at": THEN,
    "stamped_version": 5,
    "end_policy": "hold",
}
NOBODY: Row = {
    "producers": 0,
    "live": 0,
    "last_beat_at": None,
    "is_exhausted": False,
    "exhausted_at": None,
    "in_flight": 0,
    "in_flight_turns": 0,
}
LIVE = NOBODY | {"producers": 2, "live": 1, "last_beat_at": NOW, "in_flight": 2}
DEAD = NOBODY | {"producers": 2, "last_beat_at": THEN}
FULL: Row = {"blocker": None, "ready_turns": 100, "enough_since": THEN}


def why(supply: Row | None = None, **changes: Any) -> Postmortem:
    """Return the verdict on 60 of 100 turns that nobody adds to, but for the changes."""
    given: dict[str, Any] = {**PLAIN, "supply": supply or NOBODY, **changes}
    return explain(Facts(**given))


def held(reason: str, turns: int, task_type: str = "a", since: datetime | None = THEN) -> Row:
    """Return turns in two samples that are held."""
    named = {"reason": reason, "task_type": task_type, "since": since}
    return {**named, "samples": 2, "turns": turns}


def lost(turns: int, samples: int = 1, **names: Any) -> Row:
    """Return turns in samples that were lost."""
    return {"samples": samples, "turns": turns, "unstated": 0, "first_at": THEN, **names}


def refused(turns: int, samples: int = 1, unstated: int = 0) -> Row:
    """Return samples without a tenant, some of which state no turns."""
    return lost(turns, samples, rule="missing", field="tenant") | {"unstated": unstated}


def batch(learner: str | None, lease_until: datetime | None) -> Row:
    """Return a batch that is not acked."""
    named = {"batch_id": "train-00000001", "turns": 110, "assembled_at": THEN}
    return {**named, "learner": learner, "lease_until": lease_until}


OUT, RUNNING = batch("L", THEN), batch("L", NOW + timedelta(seconds=1))
NOT_ACKED = f"batch train-00000001 (110 turns) is held by L, not acked since {AT}"


@pytest.mark.parametrize(
    ("facts", "verdict", "sentence"),
    [
        # What stops a batch that is there comes before all else.
        ({"unacked": [OUT]}, "learner_not_acking", NOT_ACKED),
        ({"unacked": [batch("L", NOW)]}, "learner_not_acking", NOT_ACKED),
        ({"unacked": [OUT], "refused": [refused(900)]}, "learner_not_acking", NOT_ACKED),
        (
            {"unacked": [OUT, OUT, RUNNING]},
            "learner_not_acking",
            f"batch train-00000001 (110 turns) is held by L, not acked (and 1 more) since {AT}",
        ),
        (
            {"unacked": [batch(None, None)]},
            "not_taken",
            f"batch train-00000001 (110 turns) waits for a learner to take it since {AT}",
        ),
        # What keeps turns out: alone, if it could have filled what is missing.
        (
            {"held": [held("failure_quota", 30), held("failure_quota", 10, "b")]},
            "failure_quota",
            f"the failure quota holds 40 turns of a, b since {AT}",
        ),
        (
            {"held": [held("truncation_line", 20, name) for name in "abcd"]},
            "truncation_line",
            f"the truncation line holds 80 turns of a, b, c and 1 more since {AT}",
        ),
        (
            {"held": [held("unpublished", 40, since=NOW)]},
            "unpublished",
            f"40 turns were made by weights above 2, the newest published (up to 5) since {AT}",
        ),
        (
            {"held": [held("awaiting_reward", 40, since=None)]},
            "awaiting_reward",
            "40 turns in 2 samples await their reward",
        ),
        (
            {"held": [held("group_open", 40)]},
            "group_open",
            f"40 turns stand in groups that have not settled since {AT}",
        ),
        ({"refused": [refused(40)]}, "gate", f"gate: tenant missing × 1 since {AT}"),
        (
            {"lacking": [lost(40, 2, gap="weight_version")]},
            "evidence_missing",
            f"gate: weight_version missing × 2 since {AT}",
        ),
        (
            {"broken": [lost(0, 2, status="timed_out")]},
            "broken",
            f"timed_out × 2, never trained on since {AT}",
        ),
        (
            {
                "discarded": [
                    lost(30, reason="age_versions", task_type="a"),
                    lost(10, reason="wait_seconds", task_type="b"),
                ]
            },
            "discard_line",
            f"the discard line took 40 turns, most of a for age_versions since {AT}",
        ),
        (
            {"discarded": [lost(40, reason="age_versions", task_type="a")]},
            "discard_line",
            f"the discard line took 40 turns of a for age_versions since {AT}",
        ),
        (
            {"discarded": [lost(40, reason="oversize", task_type="a")]},
            "oversize",
            f"max_unit_turns took 40 turns of a since {AT}",
        ),
        # The largest of those that suffice, whichever it is.
        (
            {"held": [held("awaiting_reward", 45)], "refused": [refused(1_500, 60)]},
            "gate",
            f"gate: tenant missing × 60 since {AT}",
        ),
        # Several together, no more than suffice.
        (
            {
                "held": [held("failure_quota", 15), held("awaiting_reward", 5)],
                "refused": [refused(30)],
            },
            "gate",
            f"gate: tenant missing × 1 since {AT};"
            f" the failure quota holds 15 turns of a since {AT}",
        ),
        # The supply, where all of it together could not have filled the batch.
        (
            {"held": [held("failure_quota", 15)], "refused": [refused(24)]},
            "no_reports",
            f"no producer reports what it is making; last sample arrived {AT}",
        ),
        ({"last_arrival_at": None}, "empty", "nothing was ever submitted"),
        (
            {"last_arrival_at": None, "refused": [refused(9)]},
            "no_reports",
            "no producer reports what it is making; no sample ever arrived",
        ),
        ({"supply": DEAD}, "producers_dead", f"no live producer since {AT}"),
        (
            {"supply": DEAD | {"is_exhausted": True, "exhausted_at": THEN}},
            "producers_dead",
            f"no live producer since {AT}; source exhausted",
        ),
        (
            {"supply": LIVE | {"is_exhausted": True, "exhausted_at": THEN, "in_flight_turns": 39}},
            "exhausted",
            f"source exhausted since {AT}; last sample arrived {AT}",
        ),
        (
            {"supply": LIVE | {"in_flight_turns": 20}},
            "in_flight",
            f"not enough samples in flight (20 of 40 turns); last sample arrived {AT}",
        ),
        (
            {"supply": LIVE | {"is_exhausted": True, "in_flight_turns": 40}},
            "waiting",
            f"2 samples in flight (40 turns); last sample arrived {AT}",
        ),
        (
            {"supply": LIVE | {"in_flight_turns": None}},
            "waiting",
            f"2 samples in flight (turns not reported); last sample arrived {AT}",
        ),
    ],
)
def test_a_short_batch_is_explained_by_the_first_that_could_have_filled_it(
    facts: Row, verdict: str, sentence: str
) -> None:
    found = why(**facts)

    assert found.sentence == f"short by 40 turns of 100; {sentence}"
    assert (found.verdict, found.missing_turns) == (verdict, 40)
    assert found.blockers[0].name == verdict


@pytest.mark.parametrize(
    ("facts", "verdict", "sentence"),
    [
        ({}, "ready", f"100 turns are ready and nobody assembles since {AT}"),
        ({"supply": DEAD}, "ready", f"100 turns are ready and nobody assembles since {AT}"),
        ({"unacked": [RUNNING]}, "learner_not_acking", NOT_ACKED),
        (
            {"blocker": "no_gradient", "flat_sides": ["too_easy", "too_hard"]},
            "no_gradient",
            "100 turns are ready, but their rewards are all equal (too easy and too hard)"
            f" since {AT}",
        ),
        (
            {"blocker": "least_share", "unmet": ["a/any", "b/any"]},
            "least_share",
            f"100 turns are ready, but a/any, b/any below the least share since {AT}",
        ),
    ],
)
def test_a_full_batch_is_not_called_short(facts: Row, verdict: str, sentence: str) -> None:
    found = why(**FULL | facts)

    assert (found.verdict, found.sentence, found.missing_turns) == (verdict, sentence, 0)


@pytest.mark.parametrize(
    ("ready", "samples", "is_blamed"), [(3, 1, False), (3, 2, True), (0, 1, True)]
)
def test_refused_rows_that_state_no_turns_count_as_much_as_a_ready_sample(
    ready: int, samples: int, *, is_blamed: bool
) -> None:
    """Here that is 20 turns; where none is ready any refusal could have filled the batch."""
    row = {"step": "ready", "reason": "ready", "task_type": "a", "samples": ready, "turns": 60}

    found = why(funnel=[row] if ready else [], refused=[refused(0, samples, samples)])

    assert (found.verdict == "gate") is is_blamed


def test_discards_of_the_next_pass_count_as_those_that_were_made() -> None:
    row = {"step": "discarded", "reason": "age_versions", "task_type": "a"}
    due = [*PLAIN["funnel"], row | {"samples": 1, "turns": 25}]

    found = why(funnel=due, discarded=[lost(15, reason="age_versions", task_type="a")])

    assert "the discard line took 40 turns" in found.sentence


def test_a_row_that_breaks_several_rules_does_not_count_for_each_of_them() -> None:
    two = [refused(20), refused(20) | {"field": "seed"}]

    assert why(refused=two).verdict == "no_reports"


def test_what_the_sentence_leaves_out_is_listed_once() -> None:
    found = why(
        supply=DEAD | {"is_exhausted": True},
        held=[held("failure_quota", 15)],
        unacked=[RUNNING],
        incidents=[{"kind": "dead_streak", "subject": "train", "opened_at": THEN}],
    )

    assert found.also == (
        f"the failure quota holds 15 turns of a since {AT}",
        "end.policy is hold: 60 turns wait",
        "batch train-00000001 is held by L until 2026-03-01 12:00:01Z",
        f"last sample arrived {AT}",
        f"incident dead_streak of train open since {AT}",
    )


@pytest.mark.parametrize(
    ("policy", "in_flight", "may_flush"),
    [("hold", 0, False), ("flush_partial", 1, False), ("flush_partial", 0, True)],
)
def test_a_short_batch_is_advised_only_where_the_next_pass_would_make_it(
    policy: str, in_flight: int, *, may_flush: bool
) -> None:
    supply = LIVE | {"is_exhausted": True, "in_flight": in_flight, "in_flight_turns": 0}

    found = why(supply=supply, end_policy=policy)

    assert ("a short batch can be made now" in found.advice) is may_flush


def test_a_policy_that_flushes_already_is_not_advised() -> None:
    supply = LIVE | {"is_exhausted": True, "in_flight": 0, "in_flight_turns": 0}

    found = why(supply=supply, end_policy="flush_partial", ready_turns=0)

    assert found.verdict == "exhausted"
    assert found.advice == "add tasks; a short batch can be made once all in flight has ended"
    assert not [text for text in found.also if "end.policy" in text]


def test_several_causes_have_the_advice_of_each() -> None:
    found = why(held=[held("failure_quota", 20), held("awaiting_reward", 20)])

    assert found.advice == f"{ADVICE['failure_quota']}; {ADVICE['awaiting_reward']}"


@pytest.mark.parametrize(
    ("wait", "long_wait", "last_batch_at", "since"),
    [
        (600.0, None, None, NOW - timedelta(seconds=600)),
        (600.0, 900.0, None, NOW - timedelta(seconds=900)),
        (600.0, 300.0, None, NOW - timedelta(seconds=600)),
        (600.0, None, THEN, NOW - timedelta(seconds=600)),
        (900.0, None, THEN, THEN),
        (None, 300.0, THEN, THEN),
        (None, None, None, None),
        (1e300, None, THEN, THEN),
    ],
)
def test_losses_count_since_the_last_batch_and_no_longer_back_than_a_sample_may_wait(
    wait: float | None,
    long_wait: float | None,
    last_batch_at: datetime | None,
    since: datetime | None,
) -> None:
    settings = Settings.model_validate(
        {
            "discard": {"max_wait_seconds": wait},
            "duration_class": {"long": {"max_wait_seconds": long_wait}},
        }
    )

    assert lost_since(settings, last_batch_at, NOW) == since
