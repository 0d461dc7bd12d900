"""The clusters that a Placement chooses, scheduled by the Python API."""

from __future__ import annotations

import gitsched
from gitsched.model.time import parse_time
from tests.builders.ocm import GROUP, Body

NOW = parse_time("2026-03-02T08:00:00Z")


def list_chosen(documents: list[Body], previous: list[Body] | None = None, name: str = "p") -> list[str]:
    """Schedule documents and return the clusters in the PlacementDecisions of a Placement."""
    result = gitsched.schedule(documents, previous=previous or [], now=NOW)
    return [
        entry["clusterName"]
        for body in result.documents
        if body["kind"] == "PlacementDecision" and body["metadata"]["labels"][f"{GROUP}/placement"] == name
        for entry in body["status"]["decisions"]
    ]
