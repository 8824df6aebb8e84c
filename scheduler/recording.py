"""What the outside world answered, in order, so that a rollout can be run again without it.

An exchange is one attempt of an external call: a request, and what came back. Its place counts,
not only its request: an agent that polls asks the same thing three times and gets three answers.
Calls that run side by side each have a lane of their own; within a lane the order is strict.

A recording has two digests. That over requests says whether two rollouts asked the same. That
over everything is the dependency digest of a sample: what it depends on besides its environment.
Both are chains, so that neither order nor number can change unseen.

A replay never asks the world. The next request must be the next one that was recorded; if it is
not, the replay has diverged there and answers nothing more. Only `exact` may be called a replay.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from ..validators.digests import canonical, chain, digest
from ..validators.errors import RecordingBroken, ReplayMiss

Outcome = Literal["exact", "diverged", "exhausted", "underrun"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One attempt of an external call.

    Attributes:
        tool: the tool that was called.
        request: what was asked, as bytes in canonical form.
        response: what came back, byte for byte; empty where nothing did.
        status: how it ended: ok, error, timeout or cancelled.
        seconds: how long it took; None where that is not known.
        lane: which of the calls that ran side by side it belongs to.
    """

    tool: str
    request: bytes
    response: bytes
    status: str = "ok"
    seconds: float | None = None
    lane: str = ""

    @property
    def request_digest(self) -> str:
        """Return the digest of tool and request: the same bytes to another tool are another."""
        return asked(self.tool, self.request)


def asked(tool: str, request: bytes) -> str:
    """Return the digest of a request to a tool."""
    return digest(b"\0".join((tool.encode(), request)))


def as_request(arguments: Any, *, without: Sequence[str] = ()) -> bytes:
    """Return a call's arguments in canonical form: equal values, equal bytes.

    Args:
        arguments: a JSON document.
        without: names of top-level members that change from run to run and mean nothing, such
            as a request id. They are left out, so a recording should name the rule in its tool.
    """
    if isinstance(arguments, Mapping):
        arguments = {name: value for name, value in arguments.items() if name not in without}
    return canonical(arguments).encode()


@dataclass(slots=True)
class Recording:
    """All exchanges of one rollout, in the order in which they were sent."""

    exchanges: list[Exchange] = field(default_factory=list)

    def add(self, exchange: Exchange) -> None:
        """Note the next exchange."""
        self.exchanges.append(exchange)

    @property
    def requests_digest(self) -> str:
        """Return the digest over what was asked, in the order of each lane."""
        return chain((each.lane, each.request_digest, "") for each in self._by_lane())

    @property
    def dependency_digest(self) -> str:
        """Return the digest over all that was asked and answered, in the order of each lane."""
        return chain(
            (each.request_digest, digest(each.response), each.status) for each in self._by_lane()
        )

    def _by_lane(self) -> list[Exchange]:
        """Return the exchanges lane by lane: how lanes fell between each other means nothing."""
        return sorted(self.exchanges, key=lambda each: each.lane)

    def to_bytes(self) -> bytes:
        """Return it as JSON lines, a header with its digest first."""
        lines = [canonical({"exchanges": len(self.exchanges), "digest": self.dependency_digest})]
        lines += [canonical(_spelled(each)) for each in self.exchanges]
        return ("\n".join(lines) + "\n").encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read it back; raises RecordingBroken if it is not what was written."""
        try:
            header, *lines = [json.loads(line) for line in content.decode().splitlines()]
            found = cls([_read(line) for line in lines])
            noted = (header["exchanges"], header["digest"])
        except (ValueError, KeyError, TypeError) as error:
            raise RecordingBroken(f"a recording cannot be read: {error!r}") from None
        if (have := (len(found.exchanges), found.dependency_digest)) != noted:
            raise RecordingBroken(
                f"a recording has {have[0]} exchanges and digest {have[1]}, but {noted[0]} and"
                f" {noted[1]} were written"
            )
        return found


def _spelled(exchange: Exchange) -> dict[str, Any]:
    return {
        "tool": exchange.tool,
        "request": base64.b64encode(exchange.request).decode(),
        "response": base64.b64encode(exchange.response).decode(),
        "status": exchange.status,
        "seconds": exchange.seconds,
        "lane": exchange.lane,
    }


def _read(line: Mapping[str, Any]) -> Exchange:
    return Exchange(
        tool=line["tool"],
        request=base64.b64decode(line["request"], validate=True),
        response=base64.b64decode(line["response"], validate=True),
        status=line["status"],
        seconds=line["seconds"],
        lane=line["lane"],
    )


class Replay:
    """Answers calls from a recording, each exchange once and in order.

    Args:
        recording: what is answered from.
        repeated: tools whose last answer is given again when there is none left; of all others
            a call too many is a miss.
    """

    def __init__(self, recording: Recording, *, repeated: Iterable[str] = ()) -> None:
        self._lanes: dict[str, list[tuple[int, Exchange]]] = {}
        for place, exchange in enumerate(recording.exchanges):
            self._lanes.setdefault(exchange.lane, []).append((place, exchange))
        self._next = dict.fromkeys(self._lanes, 0)
        self._repeated = frozenset(repeated)
        self._total = len(recording.exchanges)
        self.missed: ReplayMiss | None = None

    @property
    def used(self) -> int:
        """Return how many exchanges were given out; repeated answers do not count again."""
        return sum(self._next.values())

    @property
    def outcome(self) -> Outcome:
        """Return what the replay has come to: `exact` only if all was asked for, and no more."""
        if self.missed is not None:
            return self.missed.outcome
        return "exact" if self.used == self._total else "underrun"

    def answer(self, tool: str, request: bytes, *, lane: str = "") -> Exchange:
        """Return the recorded exchange for the next call of a lane.

        Raises ReplayMiss if another call was recorded there, or none; and again ever after.
        """
        if self.missed is not None:
            raise self.missed
        recorded = self._lanes.get(lane, [])
        place = self._next.get(lane, 0)
        if place < len(recorded):
            at, exchange = recorded[place]
            if exchange.request_digest == asked(tool, request):
                self._next[lane] = place + 1
                return exchange
            raise self._miss("diverged", at, tool, request, exchange)
        last = recorded[-1][1] if recorded else None
        if last and tool in self._repeated and last.request_digest == asked(tool, request):
            return last
        raise self._miss("exhausted", self._total, tool, request, last)

    def _miss(
        self,
        outcome: Literal["diverged", "exhausted"],
        at: int,
        tool: str,
        request: bytes,
        recorded: Exchange | None,
    ) -> ReplayMiss:
        known = f"{recorded.tool} {_shown(recorded.request)}" if recorded else "nothing"
        where = "the last one recorded" if recorded and outcome == "exhausted" else "recorded there"
        text = f"call {at} of the replay is {tool} {_shown(request)}, but {known} was {where}"
        self.missed = ReplayMiss(text, outcome, at)
        return self.missed


def _shown(request: bytes, most: int = 80) -> str:
    text = request.decode("utf-8", "replace")
    return text if len(text) <= most else f"{text[:most]}… ({len(request):,} bytes)"
