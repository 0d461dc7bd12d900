"""Krake as the registry knows it."""

from __future__ import annotations

from gitsched.apis.krake.defaults import default
from gitsched.apis.krake.names import APPLICATION, CLUSTER, GROUPS, MAGNUM_CLUSTER
from gitsched.apis.krake.sites import SITES
from gitsched.apis.world import Api, Check, Session, World

_DECIDED = (APPLICATION, CLUSTER, MAGNUM_CLUSTER)


def _is_used(world: World) -> bool:
    return any(kind in world.documents for kind in _DECIDED) or any((key.group, key.kind) in _DECIDED for key in world.broken)


def _open(world: World) -> Session:
    from gitsched.apis.krake.session import KrakeSession  # `validate` does not need it

    return KrakeSession(world)


def _rules(group: str, kind: str) -> Check | None:
    if group not in GROUPS:
        return None
    from gitsched.apis.krake.admission import RULES  # most repositories have no document of it

    return RULES.get((group, kind))


API = Api("krake", GROUPS, _is_used, _open, default, _rules, sites=SITES)
