"""Open Cluster Management's entry in the registry of policy APIs."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.engine import PolicyEngine, Snapshot
from gitsched.apis.ocm.names import (
    CLUSTER_SCORES,
    CLUSTER_SET,
    DECISION_BASIS,
    GITSCHED_GROUP,
    GROUP,
    GROUPS,
    MANAGED_CLUSTER,
    ROLLOUT_REPORT,
)
from gitsched.apis.ocm.topology import TOPOLOGY
from gitsched.apis.policy_api import DocumentValidator, PolicyAPI
from gitsched.model.document import ApiKinds, Body, Key


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.ocm.engine import OcmEngine  # most repositories have no Placement

    return OcmEngine(snapshot)


def _apply_defaults(body: Body) -> Body:
    from gitsched.apis.ocm.defaulting import default  # most repositories have no document of it

    return default(body)


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    from gitsched.apis.ocm.validation import VALIDATORS  # most repositories have no document of it

    return VALIDATORS.get((group, kind))


def _list_chosen_clusters(records: Mapping[Key, Body]) -> dict[Key, frozenset[str]]:
    from gitsched.apis.ocm.previous_decisions import list_chosen_clusters  # only comparisons of plans need it

    return list_chosen_clusters(records)


API = PolicyAPI(
    name="ocm",
    groups=GROUPS,
    kinds=ApiKinds(
        cluster_scoped=frozenset(
            {
                (GROUP, MANAGED_CLUSTER),
                (GROUP, CLUSTER_SET),
                (GITSCHED_GROUP, CLUSTER_SCORES),
                (GITSCHED_GROUP, DECISION_BASIS),
                (GITSCHED_GROUP, ROLLOUT_REPORT),
            }
        )
    ),
    create_engine=_create_engine,
    apply_defaults=_apply_defaults,
    find_validator=_find_validator,
    validated_objects={(GITSCHED_GROUP, CLUSTER_SCORES): frozenset()},
    topology=TOPOLOGY,
    chosen_clusters=_list_chosen_clusters,
)
