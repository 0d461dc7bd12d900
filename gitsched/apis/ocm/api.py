"""Open Cluster Management as the registry knows it."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.ocm.defaults import default
from gitsched.apis.ocm.names import GROUPS
from gitsched.apis.ocm.sites import SITES
from gitsched.apis.world import Api, Check, Session, World
from gitsched.model.document import Body, Key


def _is_used(world: World) -> bool:
    return any(group in GROUPS for group, _ in world.documents) or any(key.group in GROUPS for key in world.broken)


def _open(world: World) -> Session:
    from gitsched.apis.ocm.session import OcmSession  # most repositories have no Placement

    return OcmSession(world)


def _rules(group: str, kind: str) -> Check | None:
    if group not in (*GROUPS, "gitsched.io"):  # ClusterScores is gitsched's own
        return None
    from gitsched.apis.ocm.admission import RULES  # most repositories have no document of it

    return RULES.get((group, kind))


def _list_choices(records: Mapping[Key, Body]) -> dict[Key, frozenset[str]]:
    from gitsched.apis.ocm.history import list_choices  # only reviews ask

    return list_choices(records)


API = Api("ocm", GROUPS, _is_used, _open, default, _rules, sites=SITES, choices=_list_choices)
