"""Fields of event sources that Knative's definitions do not have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from gitsched.apis.schemas import load_field_table, make_schema
from gitsched.manifests.schema import SchemaPruner
from gitsched.model.document import parse_api_group

if TYPE_CHECKING:
    from gitsched.model.document import Body
    from gitsched.model.finding import Issue

_DESCRIBED = "is unknown to Knative, which refuses or drops it"


def list_unknown_fields(body: Body) -> Iterator[Issue]:
    """Yield a warning for each field that the definition of a source does not have; nothing for a version that is not in the table. The
    object is delivered with the field."""
    api_version = str(body.get("apiVersion") or "")
    pruner = _make_pruner(parse_api_group(api_version), api_version.rpartition("/")[2], str(body.get("kind")))
    if pruner is not None:
        yield from pruner.prune(body)[1]


@cache
def _make_pruner(group: str, version: str, kind: str) -> SchemaPruner | None:
    for entry in load_field_table("knative"):
        if entry.group == group and version in entry.versions and kind in entry.kinds:
            return SchemaPruner(make_schema(entry), described=_DESCRIBED)
    return None
