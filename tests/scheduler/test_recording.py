"""A replay gives what was recorded, in its order, and nothing else."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.scheduler.recording import Exchange, Recording, Replay, as_request
from rollbook.validators.errors import RecordingBroken, ReplayMiss

POLL, GET = b'{"job":7}', b'{"path":"x"}'
EXCHANGES = st.lists(
    st.builds(
        Exchange,
        tool=st.sampled_from(["poll", "get"]),
        request=st.binary(max_size=9),
        response=st.binary(max_size=300),
        status=st.sampled_from(["ok", "error", "timeout"]),
        seconds=st.none() | st.floats(0, 9),
        lane=st.sampled_from(["", "a", "b"]),
    ),
    max_size=9,
)


def polled() -> Recording:
    """Return a recording of an agent that polls a job and tries twice to get a file."""
    answers = [
        ("poll", POLL, b"running", "ok"),
        ("get", GET, b"", "error"),
        ("poll", POLL, b"running", "ok"),
        ("poll", POLL, b"done", "ok"),
        ("get", GET, b"content", "ok"),
    ]
    return Recording([Exchange(*answer) for answer in answers])


def test_f45_equal_requests_get_their_answers_one_after_the_other() -> None:
    replay = Replay(polled())

    given = [
        replay.answer(tool, request).response
        for tool, request in (("poll", POLL), ("get", GET), ("poll", POLL), ("poll", POLL))
    ]

    assert given == [b"running", b"", b"running", b"done"]
    assert (replay.used, replay.outcome) == (4, "underrun")
    assert replay.answer("get", GET).response == b"content"
    assert replay.outcome == "exact"


def test_f45_one_poll_too_many_is_a_miss_that_says_so_and_stays_one() -> None:
    replay = Replay(Recording([Exchange("poll", POLL, b"done")]))
    replay.answer("poll", POLL)

    for _ in range(2):
        with pytest.raises(ReplayMiss, match=r'call 1 .* poll {"job":7}, but .* was the last one'):
            replay.answer("poll", POLL)

    assert (replay.outcome, replay.used) == ("exhausted", 1)


def test_a_tool_that_may_be_repeated_gives_its_last_answer_again_and_only_to_the_same_request() -> (
    None
):
    replay = Replay(Recording([Exchange("poll", POLL, b"done")]), repeated=["poll"])

    assert [replay.answer("poll", POLL).response for _ in range(3)] == [b"done"] * 3
    assert replay.outcome == "exact"
    with pytest.raises(ReplayMiss):
        replay.answer("poll", b'{"job":8}')


@pytest.mark.parametrize(
    ("tool", "request_"), [("poll", b'{"job":8}'), ("get", POLL), ("poll", b"")]
)
def test_another_request_than_the_recorded_one_diverges_there_and_gets_no_answer(
    tool: str, request_: bytes
) -> None:
    replay = Replay(polled())
    replay.answer("poll", POLL)
    replay.answer("get", GET)

    with pytest.raises(ReplayMiss, match="call 2 of the replay is") as missed:
        replay.answer(tool, request_)

    assert (missed.value.outcome, missed.value.at, replay.outcome) == ("diverged", 2, "diverged")
    with pytest.raises(ReplayMiss):
        replay.answer("poll", POLL)


def test_calls_side_by_side_keep_the_order_of_their_lane_and_of_no_other() -> None:
    sent = [Exchange("get", b"1", b"A", lane="a"), Exchange("get", b"2", b"B", lane="b")]
    replay = Replay(Recording(sent))

    assert replay.answer("get", b"2", lane="b").response == b"B"
    assert replay.answer("get", b"1", lane="a").response == b"A"
    assert replay.outcome == "exact"
    assert Recording(sent).dependency_digest == Recording(sent[::-1]).dependency_digest


@given(EXCHANGES)
def test_a_recording_comes_back_to_the_byte_and_its_own_calls_replay_exactly(
    exchanges: list[Exchange],
) -> None:
    recording = Recording(exchanges)

    back = Recording.from_bytes(recording.to_bytes())
    replay = Replay(back)
    given = [replay.answer(e.tool, e.request, lane=e.lane) for e in exchanges]

    assert back == recording
    assert (given, replay.outcome) == (exchanges, "exact")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(range(256)),
        b"\x1f\x8b\x08\x00",
        b"\xff\xfe invalid utf-8 \xc3",
        b"x" * (10 << 20),
    ],
    ids=["empty", "all bytes", "gzip", "not UTF-8", "10 MiB"],
)
def test_f47_bodies_of_every_kind_come_back_to_the_byte(body: bytes) -> None:
    recording = Recording([Exchange("get", body, body)])

    (found,) = Recording.from_bytes(recording.to_bytes()).exchanges

    assert (found.request, found.response) == (body, body)


@given(EXCHANGES, st.data())
def test_neither_order_nor_number_nor_a_byte_changes_unseen(
    exchanges: list[Exchange], data: st.DataObject
) -> None:
    content = bytearray(Recording(exchanges).to_bytes())
    lines = bytes(content).splitlines(keepends=True)
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))

    if len(lines) > 1:
        with pytest.raises(RecordingBroken, match="exchanges and digest"):
            Recording.from_bytes(b"".join(lines[:-1]))
    try:
        changed = Recording.from_bytes(bytes(content))
    except RecordingBroken:
        return
    # What no digest covers: how long a call took, and how its lane is called.
    assert [(e.tool, e.request, e.response, e.status) for e in changed.exchanges] == [
        (e.tool, e.request, e.response, e.status) for e in exchanges
    ]


@pytest.mark.parametrize("content", [b"", b"no recording", b"[]\n", b'{"exchanges":1}\n', b"\xff"])
def test_what_is_no_recording_is_refused(content: bytes) -> None:
    with pytest.raises(RecordingBroken, match="a recording cannot be read"):
        Recording.from_bytes(content)


def test_the_requests_have_a_digest_that_answers_do_not_change() -> None:
    one, other = (Recording([Exchange("get", GET, answer)]) for answer in (b"a", b"b"))

    assert one.requests_digest == other.requests_digest
    assert one.dependency_digest != other.dependency_digest
    assert Recording([Exchange("put", GET, b"a")]).requests_digest != one.requests_digest


def test_equal_arguments_are_equal_requests_but_for_what_is_left_out() -> None:
    arguments = {"b": [1, {"z": None, "a": "ü"}], "a": 1, "request_id": "r-1"}
    again = {"request_id": "r-2", "a": 1, "b": [1, {"a": "ü", "z": None}]}

    assert as_request(arguments) != as_request(again)
    assert as_request(arguments, without=["request_id"]) == as_request(
        again, without=["request_id"]
    )
    assert as_request({"a": 1}) != as_request({"a": "1"})


def test_a_miss_travels_between_processes() -> None:
    replay = Replay(Recording())
    with pytest.raises(ReplayMiss) as missed:
        replay.answer("get", GET)

    back = pickle.loads(pickle.dumps(missed.value))  # noqa: S301 - our own

    assert (str(back), back.outcome, back.at) == (str(missed.value), "exhausted", 0)
    assert str(back) == 'call 0 of the replay is get {"path":"x"}, but nothing was recorded there'
