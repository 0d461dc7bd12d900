"""Event sources of several tenants that the same StatefulSets run."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.knative.adapters import find_vreplica_paths
from gitsched.apis.knative.consumer_wishes import HPA_KIND, SCALED_OBJECT_KIND, read_consumer_wishes
from gitsched.apis.knative.vpods import read_desired_vreplicas, validate_source
from gitsched.apis.policy_api import GroupKind
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Key


def list_shared_kinds(snapshot: Snapshot) -> frozenset[GroupKind]:
    """Return the kinds of event sources, and of what says how many consumers one of them has."""
    return frozenset({*find_vreplica_paths(snapshot), HPA_KIND, SCALED_OBJECT_KIND})


def count_vreplicas(snapshot: Snapshot) -> Mapping[Key, int]:
    """Return the number of vreplicas that each valid source asks for, or an autoscaler for it."""
    paths, wishes = find_vreplica_paths(snapshot), read_consumer_wishes(snapshot.templates)
    found: dict[Key, int] = {}
    for key, document in snapshot.templates.items():
        path = paths.get(key[:2])
        if path is None or next(iter(validate_source(document.body, path)), None) is not None:
            continue
        wish = wishes.get(key)
        found[key] = max(read_desired_vreplicas(document.body, path), (wish.consumers or 0) if wish is not None else 0)
    return found
