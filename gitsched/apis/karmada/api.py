"""Karmada as the registry knows it."""

from __future__ import annotations

from gitsched.apis.gitsched.config import Config
from gitsched.apis.karmada.defaults import default
from gitsched.apis.karmada.names import GROUPS, TAINT_POLICY_NO_EXECUTE
from gitsched.apis.karmada.sites import SITES
from gitsched.apis.world import Api, Check, Session, World


def _open(world: World) -> Session:
    from gitsched.apis.karmada.session import KarmadaSession  # `validate` does not need it

    return KarmadaSession(world)


def _waive(config: Config) -> frozenset[str]:
    return frozenset({TAINT_POLICY_NO_EXECUTE}) if config.karmada.allow_no_execute_taint_policy else frozenset()


def _rules(group: str, kind: str) -> Check | None:
    if group not in GROUPS:
        return None
    from gitsched.apis.karmada.admission import RULES  # where all documents are remembered, none is judged

    return RULES.get((group, kind))


API = Api("karmada", GROUPS, lambda _: True, _open, default, _rules, _waive, SITES, resumes=True)
