"""When tasks run, and how much of a run a failure may cost."""

from .snapshots import Advice, Step, advise_snapshots, snapshot_is_due

__all__ = ["Advice", "Step", "advise_snapshots", "snapshot_is_due"]
