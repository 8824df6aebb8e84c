"""When tasks run, and how much of a run a failure may cost."""

from .estimates import Estimate, class_of, estimate
from .snapshots import Advice, Step, advise_snapshots, snapshot_is_due

__all__ = [
    "Advice",
    "Estimate",
    "Step",
    "advise_snapshots",
    "class_of",
    "estimate",
    "snapshot_is_due",
]
