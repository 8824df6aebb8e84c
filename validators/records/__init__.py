"""The tables: one record class each, the only place where a column is declared.

A producer fills a plain record (`Sample`); what the book itself adds to it when it is
stored stands in the `Stored…` class beside it.
"""

from .configs import Config
from .dispositions import Disposition
from .incidents import Incident
from .quarantine import FindingRecord, Quarantined
from .rewards import Reward, StoredReward
from .samples import Sample, StoredSample, TurnsByVersion
from .supply import Heartbeat
from .trajectories import Call, StoredCall, StoredTrajectory, Trajectory
from .weights import Weight

TABLES = {
    "samples": StoredSample,
    "rewards": StoredReward,
    "trajectories": StoredTrajectory,
    "calls": StoredCall,
    "weights": Weight,
    "dispositions": Disposition,
    "quarantine": Quarantined,
    "configs": Config,
    "heartbeats": Heartbeat,
    "incidents": Incident,
}

__all__ = [
    "TABLES",
    "Call",
    "Config",
    "Disposition",
    "FindingRecord",
    "Heartbeat",
    "Incident",
    "Quarantined",
    "Reward",
    "Sample",
    "StoredCall",
    "StoredReward",
    "StoredSample",
    "StoredTrajectory",
    "Trajectory",
    "TurnsByVersion",
    "Weight",
]
