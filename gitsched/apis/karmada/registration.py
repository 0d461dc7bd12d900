"""Karmada's entry in the registry of policy APIs."""

from __future__ import annotations

from gitsched.apis.engine import PolicyEngine, Snapshot
from gitsched.apis.gitsched.config import Config
from gitsched.apis.karmada.names import GROUPS, RECORD_KINDS, TAINT_POLICY_NO_EXECUTE
from gitsched.apis.karmada.settings import SETTINGS
from gitsched.apis.karmada.topology import TOPOLOGY
from gitsched.apis.policy_api import DocumentValidator, PolicyAPI
from gitsched.model.document import Body


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.karmada.engine import KarmadaEngine  # `validate` does not need it

    return KarmadaEngine(snapshot)


def _apply_defaults(body: Body) -> Body:
    from gitsched.apis.karmada.defaulting import apply_defaults  # not needed when all documents come from the cache

    return apply_defaults(body)


def _list_ignored_codes(config: Config) -> frozenset[str]:
    allowed = config.settings_of(SETTINGS).allow_no_execute_taint_policy
    return frozenset({TAINT_POLICY_NO_EXECUTE}) if allowed else frozenset()


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    from gitsched.apis.karmada.validation.admission import VALIDATORS  # not needed when all documents come from the cache

    return VALIDATORS.get((group, kind))


API = PolicyAPI(
    name="karmada",
    groups=GROUPS,
    create_engine=_create_engine,
    active_records=RECORD_KINDS,
    settings=SETTINGS,
    apply_defaults=_apply_defaults,
    find_validator=_find_validator,
    list_ignored_codes=_list_ignored_codes,
    topology=TOPOLOGY,
    serializable=True,
)
