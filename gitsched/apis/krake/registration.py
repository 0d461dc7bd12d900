"""Krake's entry in the registry of policy APIs."""

from __future__ import annotations

from gitsched.apis.export import Export, ExportOption
from gitsched.apis.krake.names import (
    APPLICATION,
    CLUSTER,
    CORE,
    GLOBAL_CLOUD,
    GROUPS,
    INFRASTRUCTURE,
    MAGNUM_CLUSTER,
    METRIC_KINDS,
    METRICS_PROVIDER_KINDS,
)
from gitsched.apis.krake.secrets import SECRET_FIELDS
from gitsched.apis.krake.settings import SETTINGS
from gitsched.apis.krake.topology import TOPOLOGY
from gitsched.apis.policy_api import (
    CommandSupport,
    MetricSource,
    PolicyAPI,
    RecordDescription,
)
from gitsched.apis.registered import Registered
from gitsched.model.document import ApiKinds, Body

_CONSTRAINT_TARGETS = {"Application": "cluster", "Cluster": "cloud"}


def apply_defaults(body: Body) -> Body:
    """Return the body with the constraints that Krake's command line always sends; the same object when it has them."""
    wanted = _CONSTRAINT_TARGETS.get(str(body.get("kind")))
    spec = body.get("spec")
    if wanted is None or body.get("api") != "kubernetes" or not isinstance(spec, dict) or spec.get("constraints") is not None:
        return body
    return {**body, "spec": {**spec, "constraints": {wanted: {}}}}


_EXPORT_HELP = """Print the bindings of Clusters to clouds and of MagnumClusters to projects as requests.

The text is commands for a shell: curl with the URL of Krake's API in the variable KRAKE_API, or with --for magnum the openstack client. An
object is created unless it exists, then it is bound. Turn Krake's scheduler off. Applications are not printed, because their manifests are
delivered from the output branch."""
_EXPORT_OPTIONS = (
    ExportOption(
        "for",
        "krake: requests to Krake's API; magnum: creation of the MagnumClusters in their projects.",
        choices=("krake", "magnum"),
        default="krake",
    ),
)


API = PolicyAPI(
    name="krake",
    groups=GROUPS,
    create_engine=Registered("gitsched.apis.krake.engine", "KrakeEngine"),
    list_selectors=lambda _: (),
    kinds=ApiKinds(
        cluster_scoped=frozenset(
            (*METRIC_KINDS[:1], *METRICS_PROVIDER_KINDS[:1], GLOBAL_CLOUD, (INFRASTRUCTURE, "GlobalInfrastructureProvider"))
        ),
        unversioned_groups=dict.fromkeys(GROUPS, "krake"),
        secret_fields=SECRET_FIELDS,
    ),
    active_kinds=frozenset({APPLICATION, CLUSTER, MAGNUM_CLUSTER}),
    settings=SETTINGS,
    apply_defaults=apply_defaults,
    find_validator=Registered("gitsched.apis.krake.validation", "find_validator"),
    embedded_objects={APPLICATION: ("spec", "manifest")},
    remove_secrets=Registered("gitsched.apis.krake.secrets", "remove_secrets"),
    read_removed_workload=Registered("gitsched.apis.krake.removed_workload", "read_removed_workload"),
    metrics=MetricSource(
        frozenset({CORE}),
        Registered("gitsched.apis.krake.metric_queries", "list_metric_queries"),
        "krake-not-asked",
        "krake-provider-changed",
    ),
    load_cluster_format=Registered("gitsched.apis.krake.cluster_facts", "CLUSTER_FORMAT").load,
    topology=TOPOLOGY,
    serializable=True,
    recorded_decisions=RecordDescription(
        frozenset({APPLICATION, CLUSTER, MAGNUM_CLUSTER}), Registered("gitsched.apis.krake.recorded_decisions", "describe_record")
    ),
    preferred_targets="workload",
    commands=CommandSupport(
        load_starter=Registered("gitsched.apis.krake.starter", "STARTER").load,
        load_hub_objects=Registered("gitsched.apis.krake.adoption", "HUB_OBJECTS").load,
        export=Export(
            "Print the bindings to clouds and projects for Krake's API or Magnum.",
            _EXPORT_HELP,
            Registered("gitsched.apis.krake.api_requests", "make_export"),
            _EXPORT_OPTIONS,
        ),
        explained_kinds=("Application", "Cluster", "MagnumCluster"),
        short_names={"app": "Application"},
    ),
)
