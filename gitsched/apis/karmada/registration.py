"""Registration of the Karmada API: its groups, defaulting, validation and engine."""

from __future__ import annotations

from gitsched.apis.engine import DocumentValidator, PolicyAPI, PolicyEngine, Snapshot
from gitsched.apis.gitsched.config import Config
from gitsched.apis.karmada.defaulting import apply_defaults
from gitsched.apis.karmada.names import GROUPS, TAINT_POLICY_NO_EXECUTE
from gitsched.apis.karmada.topology import TOPOLOGY


def _open_engine(world: Snapshot) -> PolicyEngine:
    from gitsched.apis.karmada.engine import KarmadaEngine  # `validate` does not need it

    return KarmadaEngine(world)


def _list_ignored_codes(config: Config) -> frozenset[str]:
    return frozenset({TAINT_POLICY_NO_EXECUTE}) if config.karmada.allow_no_execute_taint_policy else frozenset()


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    if group not in GROUPS:
        return None
    from gitsched.apis.karmada.validation.admission import VALIDATORS  # where all documents are remembered, none is judged

    return VALIDATORS.get((group, kind))


API = PolicyAPI(
    "karmada",
    GROUPS,
    lambda _: True,
    _open_engine,
    apply_defaults,
    _find_validator,
    _list_ignored_codes,
    TOPOLOGY,
    serializable=True,
)
