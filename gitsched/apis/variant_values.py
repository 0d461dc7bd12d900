"""Findings about clusters that get no variant of a Bundle, because they lack a label or an annotation that its values name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gitsched.model.document import Document, Key
from gitsched.model.finding import FieldOrigin, Finding, format_names, locate_document
from gitsched.model.variants import WorkloadVariants


def make_lacking_finding(
    document: Document, key: Key, variants: WorkloadVariants, clusters: Sequence[str], keep: Collection[str] = ()
) -> Finding:
    """Return the warning about clusters that a policy chooses and that lack the same metadata. `document` is the workload that has the
    Bundle, `keep` are the clusters that keep what they have."""
    name, reason = variants.lacking[clusters[0]], variants.failed[clusters[0]]
    new, old = ([cluster for cluster in sorted(clusters) if (cluster in keep) == wanted] for wanted in (False, True))
    effects = [f"nothing is delivered to {format_names(new)}"] if new else []
    effects += [f"{format_names(old)} {'keep what they have' if len(old) > 1 else 'keeps what it has'}"] if old else []
    verb = "has" if len(clusters) == 1 else "have"
    message = (
        f"{key}: {format_names(sorted(clusters))} {verb} {reason}: {'; '.join(effects)}. Add it to the document of the cluster, or have "
        "the policy leave the cluster out"
    )
    field = FieldOrigin(document.origin, ("spec", "values", name)) if document.key == key and document.origin is not None else None
    return Finding("warning", "bundle-cluster-value", message, locate_document(document), document.key.resource, field)
