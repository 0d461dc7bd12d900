"""Report that a source has policies of Karmada, no Cluster of Karmada, and clusters of other APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gitsched.apis.karmada import names
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.snapshot import Snapshot
from gitsched.apis.topology import list_cluster_kinds
from gitsched.model.document import Document, Key
from gitsched.model.finding import UNSCHEDULABLE, Finding, locate_document


def count_other_clusters(snapshot: Snapshot) -> Mapping[tuple[str, str], int]:
    """Return the number of clusters of other APIs by group and kind, sorted; none where there are none."""
    kinds = sorted(kind for kind in list_cluster_kinds() if kind != (names.CLUSTER_GROUP, names.CLUSTER))
    return {kind: len(snapshot.documents[kind]) for kind in kinds if snapshot.documents.get(kind)}


def find_missing_clusters(
    counts: Mapping[tuple[str, str], int],
    templates: Iterable[Document],
    find_policy: Callable[[Document], tuple[PropagationPolicy | None, Key | None]],
) -> tuple[Finding, ...]:
    """Return one warning for all workloads, if a policy selects one. `counts` are the clusters of other APIs, at least one."""
    selected = ((template, find_policy(template)[0]) for template in templates)
    template, policy = next(((template, policy) for template, policy in selected if policy is not None), (None, None))
    if template is None or policy is None:
        return ()
    found = " and ".join(f"{count} {kind}{'s' if count > 1 else ''} of {group}" for (group, kind), count in counts.items())
    message = (
        f"no workload that a policy of Karmada selects can be scheduled, such as {template.key} of {policy.key.title}: "
        f"the source has {found}, but no Cluster of {names.CLUSTER_GROUP}, and Karmada's policies choose from no other kind; "
        "add a Cluster for each (gitsched init shows one), or select the workloads with policies of the other API"
    )
    return (Finding("warning", UNSCHEDULABLE, message, locate_document(policy.document), policy.key.resource),)
