"""Settings: one TOML file, read at the edge, frozen, and named by its fingerprint."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from ..validators.digests import canonical, digest
from ..validators.errors import SettingsInvalid

Reason = Literal["age_versions", "wait_seconds"]
Policy = Literal["sample", "group"]
Share = Annotated[float, Field(ge=0, le=1)]

# What a fault says, where pydantic speaks to a programmer.
_PLAINLY = {
    "extra_forbidden": "there is no such setting",
    "tuple_type": "it must be a list",
}


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class BatchSettings(_Section):
    """How large a batch is, what may be in it, and how long a learner may hold it."""

    turns: int = Field(default=4096, ge=1, le=2**53, description="turns that complete a batch (T)")
    lease_seconds: float = Field(
        default=3600, gt=0, le=2_592_000, description="an unacked batch comes out again after this"
    )
    max_unit_turns: int | None = Field(
        default=None, ge=1, description="a larger unit is discarded as oversize"
    )
    truncated_share: Share = Field(
        default=1.0, description="most truncated turns in a batch, as a share of its turns"
    )


class DiscardLine(_Section):
    """How old a sample may be; a limit that is left out does not apply.

    Over a hard limit (max) a sample is discarded; over a soft one it is kept and counted.
    """

    max_age_versions: int | None = Field(
        default=None, ge=0, description="weight versions; age = limit is kept, limit + 1 is not"
    )
    max_wait_seconds: float | None = Field(
        default=None, ge=0, description="seconds since the sample finished"
    )
    soft_age_versions: int | None = Field(default=None, ge=0, description="weight versions")
    soft_wait_seconds: float | None = Field(default=None, ge=0, description="seconds")

    @model_validator(mode="after")
    def _soft_below_hard(self) -> Self:
        for soft, hard in (
            ("soft_age_versions", "max_age_versions"),
            ("soft_wait_seconds", "max_wait_seconds"),
        ):
            below, above = getattr(self, soft), getattr(self, hard)
            if below is not None and above is not None and below > above:
                raise ValueError(f"{soft} {below} is above {hard} {above}: nothing would be kept")
        return self


class DurationClass(DiscardLine):
    """A class of tasks that are expected to run about as long, with a discard line of its own."""

    most_seconds: float | None = Field(
        default=None, gt=0, description="longest expected run; none: all that is longer still"
    )


class DefaultDiscardLine(DiscardLine):
    """The discard line of samples whose duration class has none of its own."""

    max_age_versions: int | None = Field(default=4, ge=0, description="weight versions")
    max_wait_seconds: float | None = Field(default=86_400, ge=0, description="seconds")
    reason_order: tuple[Reason, ...] = Field(
        default=("age_versions", "wait_seconds"),
        min_length=2,
        max_length=2,
        strict=False,
        description="the first that applies is the primary reason",
    )
    policy: Policy = Field(
        default="sample", description="whether a stale member takes its whole group with it"
    )

    @model_validator(mode="after")
    def _every_reason_has_a_place(self) -> Self:
        if len(set(self.reason_order)) < len(self.reason_order):
            raise ValueError(f"reason_order names {self.reason_order[0]} twice: name each once")
        return self


class GroupSettings(_Section):
    """Groups: samples of one draw of one prompt, taken whole."""

    size: int | None = Field(default=None, ge=2, description="members of a group; none: no groups")
    min_members: int | None = Field(
        default=None, ge=1, description="fewest valid members; none: all of them"
    )
    settle_seconds: float = Field(
        default=1800, ge=0, description="a group settles this long after its first member ended"
    )
    unusable: Policy = Field(
        default="sample", description="whether an unusable member takes its whole group with it"
    )
    flat: Literal["discard", "keep"] = Field(
        default="discard", description="what becomes of a group whose rewards are all equal"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.size and self.min_members and self.min_members > self.size:
            raise ValueError(
                f"min_members {self.min_members} is above size {self.size}: no group would do"
            )
        if self.min_members and not self.size:
            raise ValueError(f"min_members is {self.min_members} but size is not set")
        return self


class ShareSettings(_Section):
    """Which share of the turns is whose: by stratum `type/class`, or by task type."""

    mode: Literal["submitted", "configured"] = Field(
        default="submitted", description="shares as turns arrive, or as configured"
    )
    configured: dict[str, Share] = Field(
        default_factory=dict, description="share by stratum or task type"
    )
    least: dict[str, Share] = Field(
        default_factory=dict, description="least share of every batch, by stratum"
    )
    least_wait_seconds: float = Field(
        default=600, ge=0, description="how long a full batch waits for a least share"
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (total := sum(self.least.values())) > 1:
            raise ValueError(f"the shares in least add up to {total:g}, more than 1")
        if self.mode == "configured" and not sum(self.configured.values()):
            raise ValueError("mode is configured, but configured gives no share")
        if self.mode == "submitted" and self.configured:
            names = ", ".join(self.configured)
            raise ValueError(f"configured names {names}, but mode is submitted")
        for name, least in self.least.items():
            task_type, slash, _ = name.rpartition("/")
            if not slash:
                raise ValueError(f"least names {name}, but a stratum is a type/class, or type/any")
            of = name if name in self.configured else task_type
            if self.mode == "configured" and least > 0 and self.configured.get(of) == 0:
                raise ValueError(f"least.{name} is {least:g}, but configured.{of} is 0")
        return self


class TaskTypeSettings(_Section):
    """What holds for one task type."""

    success_at: float = Field(default=0.5, description="a lower reward is a failure")
    failure_share: Share = Field(
        default=1.0, description="failed turns / turns: aimed at, and never exceeded (f)"
    )


class EndSettings(_Section):
    """When the data end."""

    policy: Literal["hold", "flush_partial"] = Field(
        default="hold", description="what becomes of turns that fill no batch"
    )
    producer_timeout_seconds: float = Field(
        default=600, gt=0, description="a producer without a heartbeat for this long is dead"
    )


class AlarmSettings(_Section):
    """When an incident opens, and who is told."""

    dead_streak: int = Field(
        default=10, ge=1, description="this many unusable units in a row open an incident"
    )
    type_starved_samples: int = Field(
        default=10, ge=1, description="so many lost, and none of the type assigned: it is starved"
    )
    type_starved_seconds: float = Field(
        default=86_400, gt=0, description="a type that loses all it made in this time is starved"
    )
    hook_command: tuple[str, ...] = Field(
        default=(), strict=False, description="called with the incident as JSON on its input"
    )
    hook_url: str | None = Field(
        default=None, pattern=r"^https?://", description="the incident is posted there as JSON"
    )
    hook_timeout_seconds: float = Field(
        default=10, gt=0, le=600, description="a hook that takes longer has failed"
    )


class StorageSettings(_Section):
    """How the tables are written and kept."""

    group_rows: int = Field(
        default=10_000, ge=1, description="a group commit is due at this many rows"
    )
    group_seconds: float = Field(
        default=0.05, ge=0, le=10, description="… or this long after its first"
    )
    checkpoint_commits: int = Field(
        default=50, ge=1, description="commits between table checkpoints"
    )
    keep_days: int = Field(
        default=30, ge=1, description="days for which old table versions stay readable; at least 1"
    )
    target_file_mb: int = Field(default=256, ge=1, description="size that compaction aims at, MB")


class Settings(_Section):
    """Everything that can be set about a book."""

    batch: BatchSettings = BatchSettings()
    discard: DefaultDiscardLine = DefaultDiscardLine()
    duration_class: dict[str, DurationClass] = Field(
        default_factory=dict, description="bound and discard line by duration class"
    )
    groups: GroupSettings = GroupSettings()
    shares: ShareSettings = ShareSettings()
    default_task_type: TaskTypeSettings = TaskTypeSettings()
    task_type: dict[str, TaskTypeSettings] = Field(
        default_factory=dict, description="what holds for one task type"
    )
    end: EndSettings = EndSettings()
    alarms: AlarmSettings = AlarmSettings()
    storage: StorageSettings = StorageSettings()

    @model_validator(mode="after")
    def _every_line_fits(self) -> Self:
        """Refuse a class whose soft limit lies above the hard limit that it inherits."""
        for name, line in self.duration_class.items():
            for soft, hard in (
                ("soft_age_versions", "max_age_versions"),
                ("soft_wait_seconds", "max_wait_seconds"),
            ):
                below = getattr(line, soft)
                above = getattr(self.discard, hard) if getattr(line, hard) is None else None
                if below is not None and above is not None and below > above:
                    raise ValueError(
                        f"duration_class.{name}.{soft} {below} is above discard.{hard} {above}"
                    )
        return self

    @model_validator(mode="after")
    def _groups_may_settle(self) -> Self:
        """Refuse a line that takes members before a group that lacks one could settle."""
        lines: dict[str, DiscardLine] = {"discard": self.discard}
        lines |= {f"duration_class.{name}": line for name, line in self.duration_class.items()}
        for name, line in lines.items() if self.groups.size else ():
            wait = line.max_wait_seconds
            if wait is not None and wait < self.groups.settle_seconds:
                raise ValueError(
                    f"{name}.max_wait_seconds {wait:g} is below groups.settle_seconds"
                    f" {self.groups.settle_seconds:g}: no group that lacks a member would settle"
                )
        return self

    @model_validator(mode="after")
    def _classes_differ(self) -> Self:
        """Refuse two classes that a task would belong to alike."""
        bounded = any(line.most_seconds is not None for line in self.duration_class.values())
        taken: dict[float | None, str] = {}
        for name, line in self.duration_class.items():
            other = taken.setdefault(line.most_seconds, name)
            if bounded and other != name:
                bound = line.most_seconds
                both = f"duration_class.{other} and duration_class.{name}"
                raise ValueError(f"{both} have the same most_seconds: {bound}")
        return self

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read settings from a TOML file; raises SettingsInvalid with every fault in it."""
        try:
            return cls.model_validate(tomllib.loads(path.read_text()))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsInvalid(f"{path}: {error}") from None
        except ValidationError as broken:
            faults = "; ".join(map(_fault, broken.errors(include_url=False)))
            raise SettingsInvalid(f"{path}: {faults}") from None

    @property
    def document(self) -> str:
        """Return the settings as canonical JSON."""
        return canonical(self.model_dump(mode="json"))

    @property
    def fingerprint(self) -> str:
        """Return the settings fingerprint, which goes with every decision."""
        return digest(self.document)


def _fault(error: ErrorDetails) -> str:
    """Return a fault as a sentence; where settings contradict each other it names them itself."""
    where = ".".join(map(str, error["loc"]))
    if error["type"] == "value_error":
        text = error["msg"].removeprefix("Value error, ")
        return f"{where}: {text}" if where else text
    return f"{where} is {error['input']!r}: {_PLAINLY.get(error['type'], error['msg'])}"
