"""Open Cluster Management as the registry knows it."""

from __future__ import annotations

from gitsched.apis.ocm.defaults import default
from gitsched.apis.ocm.names import GROUPS
from gitsched.apis.ocm.sites import SITES
from gitsched.apis.world import Api, Check, Session, World


def _is_used(world: World) -> bool:
    return any(group in GROUPS for group, _ in world.documents) or any(key.group in GROUPS for key in world.broken)


def _open(world: World) -> Session:
    from gitsched.apis.ocm.session import OcmSession  # most repositories have no Placement

    return OcmSession(world)


def _rules(group: str, kind: str) -> Check | None:
    if group not in GROUPS:
        return None
    from gitsched.apis.ocm.admission import RULES  # most repositories have no document of it

    return RULES.get((group, kind))


API = Api("ocm", GROUPS, _is_used, _open, default, _rules, sites=SITES)
