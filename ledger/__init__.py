"""The books derived from facts: what was spent, by whom, on what, and what became of it."""

from .acceptance import Criterion, Figure, acceptance
from .audit import Offence, audit, rules
from .postmortem import Blocker, Postmortem, explain
from .story import Story, Wait, tell
from .trace import Trace, trace

__all__ = [
    "Blocker",
    "Criterion",
    "Figure",
    "Offence",
    "Postmortem",
    "Story",
    "Trace",
    "Wait",
    "acceptance",
    "audit",
    "explain",
    "rules",
    "tell",
    "trace",
]
