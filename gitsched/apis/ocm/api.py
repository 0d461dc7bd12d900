"""Open Cluster Management as the registry knows it."""

from __future__ import annotations

from gitsched.apis.ocm.admission import RULES
from gitsched.apis.ocm.defaults import default
from gitsched.apis.ocm.names import GROUPS
from gitsched.apis.ocm.sites import SITES
from gitsched.apis.world import Api, Session, World


def _is_used(world: World) -> bool:
    return any(group in GROUPS for group, _ in world.documents) or any(key.group in GROUPS for key in world.broken)


def _open(world: World) -> Session:
    from gitsched.apis.ocm.session import OcmSession  # most repositories have no Placement

    return OcmSession(world)


API = Api("ocm", GROUPS, _is_used, _open, default, RULES, sites=SITES)
