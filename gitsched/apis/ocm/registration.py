"""The registry entry of Open Cluster Management; the engine and the validators are imported when used."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.engine import DocumentValidator, PolicyAPI, PolicyEngine, Snapshot
from gitsched.apis.ocm.defaulting import default
from gitsched.apis.ocm.names import GROUPS
from gitsched.apis.ocm.topology import TOPOLOGY
from gitsched.model.document import Body, Key


def _is_used(world: Snapshot) -> bool:
    return any(group in GROUPS for group, _ in world.documents) or any(key.group in GROUPS for key in world.quarantined)


def _open_engine(world: Snapshot) -> PolicyEngine:
    from gitsched.apis.ocm.engine import OcmEngine  # most repositories have no Placement

    return OcmEngine(world)


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    if group not in (*GROUPS, "gitsched.io"):  # ClusterScores is gitsched's own
        return None
    from gitsched.apis.ocm.validation import VALIDATORS  # most repositories have no document of it

    return VALIDATORS.get((group, kind))


def _list_chosen_clusters(records: Mapping[Key, Body]) -> dict[Key, frozenset[str]]:
    from gitsched.apis.ocm.previous_decisions import list_chosen_clusters  # only reviews ask

    return list_chosen_clusters(records)


API = PolicyAPI(
    "ocm", GROUPS, _is_used, _open_engine, default, _find_validator, topology=TOPOLOGY, chosen_clusters=_list_chosen_clusters
)
