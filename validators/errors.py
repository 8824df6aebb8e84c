"""The errors that Rollbook raises on purpose.

    RollbookError
    ├── Transient            the same call may succeed later
    │   ├── CommitRaceLost   somebody else committed first, more often than we retry
    │   └── WriterStale      rows waited too long between their making and their commit
    └── Permanent            the same call will fail again
        ├── BookMissing      there is no book at this address
        ├── BookTooNew       a newer Rollbook wrote this book
        ├── BookUnreadable   a table uses a feature that we would read wrongly, or is damaged
        ├── VersionExpired   a table version was vacuumed away
        ├── Unknown          no such sample, batch, statement or column
        ├── Refused          the request contradicts what the book holds
        ├── SettingsInvalid  the configuration file breaks a rule
        ├── RecordingBroken  a recording is not what was written
        ├── ReplayMiss       a replay was asked for what was not recorded there
        └── SecretFound      what would be written holds a secret

A programmer's mistake raises a standard exception. A bad row is neither: it is a
`Finding`, stored and counted. To add an error, decide first whether a retry can help,
then derive it from that branch. Every error carries one finished sentence, so it travels
between processes as it is.
"""

from typing import Literal


class RollbookError(Exception):
    """Base of every operating failure; its text says what, which value, which bound, what to do."""


class Transient(RollbookError):
    """The same call may succeed when it is made again."""


class CommitRaceLost(Transient):
    """Other writers committed first on every one of our attempts."""


class WriterStale(Transient):
    """Rows took longer from their making to their commit than readers wait for."""


class Permanent(RollbookError):
    """The same call will fail again."""


class BookMissing(Permanent):
    """There is no book at this address."""


class BookTooNew(Permanent):
    """A newer Rollbook wrote this book."""


class BookUnreadable(Permanent):
    """A table uses a storage feature that would be read wrongly, or is damaged."""


class VersionExpired(Permanent):
    """A table version that something cites was vacuumed away."""


class Unknown(Permanent):
    """No such sample, batch, statement or column."""


class Refused(Permanent):
    """The request contradicts what the book already holds."""


class SettingsInvalid(Permanent):
    """The configuration breaks a rule."""


class RecordingBroken(Permanent):
    """A recording cannot be read, or is not what was written."""


class ReplayMiss(Permanent):
    """A replay was asked for a call that was not recorded there.

    Attributes:
        outcome: `diverged` if another call was recorded there, `exhausted` if none was.
        at: the place in the recording, 0 = first.
    """

    def __init__(
        self, text: str, outcome: Literal["diverged", "exhausted"] = "exhausted", at: int = 0
    ) -> None:
        super().__init__(text, outcome, at)
        self.outcome: Literal["diverged", "exhausted"] = outcome
        self.at = at

    def __str__(self) -> str:
        """Return the sentence."""
        return str(self.args[0])


class SecretFound(Permanent):
    """What would be written holds a secret, or what looks like one."""
