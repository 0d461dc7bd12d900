"""Karmada as the registry knows it."""

from __future__ import annotations

from gitsched.apis.karmada.admission import RULES
from gitsched.apis.karmada.defaults import default
from gitsched.apis.karmada.names import GROUPS
from gitsched.apis.world import Api, Session, World


def _open(world: World) -> Session:
    from gitsched.apis.karmada.session import KarmadaSession  # `validate` does not need it

    return KarmadaSession(world)


API = Api("karmada", GROUPS, lambda _: True, _open, default, RULES)
