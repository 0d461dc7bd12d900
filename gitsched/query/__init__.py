"""A database of queries: pure functions whose results are computed again only if something that they read has changed.

See docs/development/queries.md for the algorithm with an example.
"""

from gitsched.query.canonical import Codec, Key, digest_value
from gitsched.query.database import Database
from gitsched.query.errors import (
    CycleError,
    DamagedStoreError,
    QueryError,
    QueryFailedError,
    ReadOrderError,
    StaleForkError,
    UntrackedReadError,
)
from gitsched.query.schema import Query, Relation, Schema, Step
from gitsched.query.store import BufferedStore, MemoryStore, Store

__all__ = [
    "BufferedStore",
    "Codec",
    "CycleError",
    "DamagedStoreError",
    "Database",
    "Key",
    "MemoryStore",
    "Query",
    "QueryError",
    "QueryFailedError",
    "ReadOrderError",
    "Relation",
    "Schema",
    "StaleForkError",
    "Step",
    "Store",
    "UntrackedReadError",
    "digest_value",
]
