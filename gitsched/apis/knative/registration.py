"""The entry of Knative Eventing's vreplica scheduler in the registry of policy APIs.

Its documents are ordinary ones, which other APIs may place as well, so it has no group of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.export import Export
from gitsched.apis.knative import names
from gitsched.apis.knative.settings import SETTINGS
from gitsched.apis.knative.topology import TOPOLOGY
from gitsched.apis.live_apply import LiveApply
from gitsched.apis.policy_api import (
    CommandSupport,
    DocumentValidator,
    PolicyAPI,
    RecordDescription,
    SharedWorkloads,
)
from gitsched.apis.registered import Registered
from gitsched.model.document import ApiKinds

_VALIDATORS: Mapping[str, DocumentValidator] = {
    names.KAFKA: Registered("gitsched.apis.knative.vpods", "validate_kafka_source"),
    "ConfigMap": Registered("gitsched.apis.knative.scheduler_policies", "validate_policies"),
    **dict.fromkeys(names.DESCRIBED_KINDS, Registered("gitsched.apis.knative.source_fields", "list_unknown_fields")),
}
_APPLY_HELP = (
    "Set status.placements of event sources in a cluster to what the output branch records.\n\n"
    "Reads the output branch at one commit, and patches through kubectl only what differs. With --scale, also replicas of the "
    "StatefulSets: more before the placements, fewer after all of them."
)
_EXPORT_HELP = (
    "Print decisions as patches: placements of event sources, marks of pods to be emptied, "
    "replicas.\n\n"
    "These values are in a status, or in objects that other tools apply, so they cannot be delivered from Git. The text is "
    "kubectl commands for a shell. Values that the documents of the source already have are omitted."
)


API = PolicyAPI(
    name="knative",
    groups=frozenset(),
    create_engine=Registered("gitsched.apis.knative.engine", "KnativeEngine"),
    kinds=ApiKinds(frozenset({names.GROUP}), config_map_data={"predicates": names.SCHEDULER, "priorities": names.DESCHEDULER}),
    active_objects=frozenset({("", "ConfigMap", names.SCHEDULER)}),
    active_templates=frozenset({(names.GROUP, names.KAFKA), *names.SCALABLE_KINDS}),
    settings=SETTINGS,
    find_validator=lambda _, kind: _VALIDATORS[kind],
    validated_objects={
        ("", "ConfigMap"): frozenset({names.SCHEDULER, names.DESCHEDULER}),
        **{(names.GROUP, kind): frozenset() for kind in (names.KAFKA, *names.DESCRIBED_KINDS)},
    },
    topology=TOPOLOGY,
    serializable=True,
    recorded_decisions=RecordDescription(None, Registered("gitsched.apis.knative.recorded_decisions", "describe_record")),
    preferred_targets="pod",
    shared_workloads=SharedWorkloads(
        Registered("gitsched.apis.knative.shared_sources", "list_shared_kinds"),
        Registered("gitsched.apis.knative.shared_sources", "count_vreplicas"),
    ),
    commands=CommandSupport(
        load_starter=Registered("gitsched.apis.knative.starter", "STARTER").load,
        export=Export(
            "Print what only an API server can take, as patches.",
            _EXPORT_HELP,
            Registered("gitsched.apis.knative.patches", "export_patches"),
        ),
        apply=LiveApply(
            "Set placements of event sources in a cluster.",
            _APPLY_HELP,
            frozenset({names.DOMAIN, f"*.{names.DOMAIN}", "apps"}),
            Registered("gitsched.apis.knative.live_patches", "list_live_patches"),
        ),
    ),
)
