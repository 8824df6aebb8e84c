"""How long tasks run and wait, what a failure costs, and runs again on recorded answers.

Parts for a scheduler; there is none here yet that runs tasks.
"""

from .estimates import Estimate, class_of, estimate
from .recording import Exchange, Recording, Replay, as_request
from .redaction import Redactor
from .snapshots import Advice, Step, advise_snapshots, failure_rate, snapshot_is_due

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
    "failure_rate",
    "snapshot_is_due",
]
