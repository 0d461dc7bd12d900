"""The entry of Knative Eventing's vreplica scheduler in the registry of policy APIs.

Its documents are ordinary ones, which other APIs may place as well, so it has no group of its own.
"""

from __future__ import annotations

from gitsched.apis.engine import PolicyEngine, Snapshot
from gitsched.apis.knative import names
from gitsched.apis.knative.settings import SETTINGS
from gitsched.apis.knative.topology import TOPOLOGY
from gitsched.apis.policy_api import DocumentValidator, PolicyAPI
from gitsched.model.document import ApiKinds


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.knative.engine import KnativeEngine  # `validate` does not need it

    return KnativeEngine(snapshot)


def _find_validator(_group: str, kind: str) -> DocumentValidator | None:
    if kind == names.KAFKA:
        from gitsched.apis.knative.vpods import validate_kafka_source  # most repositories have no source

        return validate_kafka_source
    from gitsched.apis.knative.scheduler_policies import validate_policies  # nor one of the two ConfigMaps

    return validate_policies


API = PolicyAPI(
    name="knative",
    groups=frozenset(),
    create_engine=_create_engine,
    kinds=ApiKinds(frozenset({names.GROUP})),
    active_objects=frozenset({("", "ConfigMap", names.SCHEDULER)}),
    settings=SETTINGS,
    find_validator=_find_validator,
    validated_objects={
        ("", "ConfigMap"): frozenset({names.SCHEDULER, names.DESCHEDULER}),
        (names.GROUP, names.KAFKA): frozenset(),
    },
    topology=TOPOLOGY,
    replica_paths={(names.GROUP, names.KAFKA): (("spec", "consumers"),)},
)
