"""When tasks run, and how much of a run a failure may cost."""

from .estimates import Estimate, class_of, estimate
from .recording import Exchange, Recording, Replay, as_request
from .redaction import Redactor
from .snapshots import Advice, Step, advise_snapshots, snapshot_is_due

__all__ = [
    "Advice",
    "Estimate",
    "Exchange",
    "Recording",
    "Redactor",
    "Replay",
    "Step",
    "advise_snapshots",
    "as_request",
    "class_of",
    "estimate",
    "snapshot_is_due",
]
