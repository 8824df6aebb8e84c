"""The store: Delta tables, exactly-once ingest, atomic batches, Arrow out.

The only package that touches Delta. Start at `Book`.
"""

from .assembly import Ack
from .batch import Batch
from .book import Book
from .facts import Facts
from .hindsight import Decision, Rederived
from .passes import Pass
from .receipts import Receipt
from .settings import Settings

__all__ = [
    "Ack",
    "Batch",
    "Book",
    "Decision",
    "Facts",
    "Pass",
    "Receipt",
    "Rederived",
    "Settings",
]
