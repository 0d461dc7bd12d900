"""The entry of Knative Eventing's vreplica scheduler in the registry of policy APIs.

Its documents are ordinary ones, which other APIs may place as well, so it has no group of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.export import Export, ExportInput, ExportResult
from gitsched.apis.knative import names
from gitsched.apis.knative.settings import SETTINGS
from gitsched.apis.knative.topology import TOPOLOGY
from gitsched.apis.live_apply import LiveApply
from gitsched.apis.policy_api import (
    DocumentValidator,
    GroupKind,
    PolicyAPI,
    PolicyEngine,
    RecordDescription,
    SharedWorkloads,
    StarterFiles,
)
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import ApiKinds, Body, Key

if TYPE_CHECKING:
    from gitsched.model.merge_patch import ApplicablePatches
    from gitsched.model.scheduling import RecordedDecision


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.knative.engine import KnativeEngine  # `validate` does not need it

    return KnativeEngine(snapshot)


def _find_validator(_group: str, kind: str) -> DocumentValidator | None:
    if kind == names.KAFKA:
        from gitsched.apis.knative.vpods import validate_kafka_source  # most repositories have no source

        return validate_kafka_source
    from gitsched.apis.knative.scheduler_policies import validate_policies  # most repositories have none of the two ConfigMaps

    return validate_policies


def _describe_record(key: Key, record: Body) -> RecordedDecision | None:
    from gitsched.apis.knative.recorded_decisions import describe_record  # most repositories have no record of it

    return describe_record(key, record)


def _export_patches(found: ExportInput) -> ExportResult:
    from gitsched.apis.knative.patches import (  # only `gitsched export` needs it
        format_kubectl_commands,
        make_patch_list,
        make_patches,
    )

    patches = make_patches(found.records, found.templates.values())
    return ExportResult(format_kubectl_commands(patches), make_patch_list(patches))


def _list_live_patches(records: Iterable[tuple[Key, Body]], cluster: str, groups: frozenset[str]) -> ApplicablePatches:
    from gitsched.apis.knative.live_patches import list_live_patches  # only `gitsched apply` needs it

    return list_live_patches(records, cluster, groups)


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


def _list_shared_kinds(snapshot: Snapshot) -> frozenset[GroupKind]:
    from gitsched.apis.knative.shared_sources import list_shared_kinds  # few sources have tenants

    return list_shared_kinds(snapshot)


def _count_vreplicas(snapshot: Snapshot) -> Mapping[Key, int]:
    from gitsched.apis.knative.shared_sources import count_vreplicas  # few sources have tenants

    return count_vreplicas(snapshot)


def _load_starter() -> StarterFiles:
    from gitsched.apis.knative.starter import STARTER  # only `gitsched init` needs it

    return STARTER


API = PolicyAPI(
    name="knative",
    groups=frozenset(),
    create_engine=_create_engine,
    kinds=ApiKinds(frozenset({names.GROUP}), config_map_data={"predicates": names.SCHEDULER, "priorities": names.DESCHEDULER}),
    active_objects=frozenset({("", "ConfigMap", names.SCHEDULER)}),
    active_templates=frozenset({(names.GROUP, names.KAFKA), *names.SCALABLE_KINDS}),
    settings=SETTINGS,
    find_validator=_find_validator,
    validated_objects={
        ("", "ConfigMap"): frozenset({names.SCHEDULER, names.DESCHEDULER}),
        (names.GROUP, names.KAFKA): frozenset(),
    },
    topology=TOPOLOGY,
    serializable=True,
    recorded_decisions=RecordDescription(None, _describe_record),
    preferred_targets="pod",
    shared_workloads=SharedWorkloads(_list_shared_kinds, _count_vreplicas),
    load_starter=_load_starter,
    export=Export("Print what only an API server can take, as patches.", _EXPORT_HELP, _export_patches),
    apply=LiveApply(
        "Set placements of event sources in a cluster.",
        _APPLY_HELP,
        frozenset({names.DOMAIN, f"*.{names.DOMAIN}", "apps"}),
        _list_live_patches,
    ),
    replica_paths={(names.GROUP, names.KAFKA): (("spec", "consumers"),)},
)
