"""What the decisions that stand were made from.

Upstream's decisions feed back into themselves: with a negative weight for Steady they flip for ever, and Placements under Balance may
swap. So that the same commit is decided once, the record of a run that changed something says what it had read, and at which moment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.gitsched.config import GROUP as OWN_GROUP
from gitsched.apis.gitsched.config import VERSION as OWN_VERSION
from gitsched.apis.ocm.names import GROUP
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.time import format_time, parse_time

KEY = Key(OWN_GROUP, "DecisionBasis", "", "open-cluster-management")
_write = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_DIGEST, _MOMENT = "gitsched.io/digest", "gitsched.io/decided-at"


class Basis(NamedTuple):
    """`digest` names the documents, `moment` is when they were decided about last with another result than before."""

    digest: str
    moment: datetime


def digest_documents(documents: Mapping[tuple[str, str], tuple[Document, ...]], broken: Iterable[Key]) -> str:
    """All of Open Cluster Management's documents: where they have a blob by its name, else by what they say."""
    state = hashlib.sha256()
    for (group, kind), entries in sorted(documents.items()):
        if group == GROUP:
            for document in entries:
                state.update(
                    f"{kind} {document.key.namespace}/{document.key.name} {_content(document)}\n".encode("utf-8", "replace")
                )
    for key in sorted(key for key in broken if key.group == GROUP):
        state.update(f"broken {key}\n".encode("utf-8", "replace"))
    return state.hexdigest()[:32]


def _content(document: Document) -> str:
    origin = document.origin
    if origin is not None and origin.blob:
        return f"{origin.blob} {origin[2]} {origin.item}"
    return _write(document.body)


def read_basis(record: Body | None) -> Basis | None:
    """The basis in a record."""
    noted = text_map(member(record or {}, "metadata", "annotations"))
    moment = parse_time(noted.get(_MOMENT))
    return Basis(noted[_DIGEST], moment) if moment is not None and _DIGEST in noted else None


def write_basis(basis: Basis) -> tuple[Key, Body]:
    """The record of a basis."""
    annotations = {_DIGEST: basis.digest, _MOMENT: format_time(basis.moment)}
    metadata = {"name": KEY.name, "annotations": annotations}
    return KEY, {"apiVersion": f"{KEY.group}/{OWN_VERSION}", "kind": KEY.kind, "metadata": metadata}
