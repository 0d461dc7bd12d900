"""Encrypted manifests: what SOPS encrypted is delivered unchanged, and what is sealed for one cluster is reported where others get it."""

from __future__ import annotations

from gitsched.kinds.table import find_kind
from gitsched.model.document import Document, Key, as_string_map, get_field, is_encrypted, read_annotations
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import WorkloadVariants

SEALING_KEY = "gitsched.io/sealing-key"
"""An annotation of a SealedSecret; the value "shared" says that all clusters of the fleet have the same sealing key."""

_SCOPES = ("cluster-wide", "namespace-wide")
_MAX_NAMES = 5


def adapt_encrypted(document: Document, outcome: Outcome) -> Outcome:
    """Return the outcome of an encrypted document with an unchanged manifest for each cluster, and with findings."""
    findings: tuple[Finding, ...] = ()
    if is_encrypted(document.body):
        changed = [target.cluster for target in outcome.targets if _is_changed(document, target)]
        outcome = outcome._replace(targets=tuple(target._replace(edits=(), body=None) for target in outcome.targets))
        findings = (_make_sops_finding(document, changed),) if changed else ()
    row = find_kind(document.key.group, document.key.kind)
    if row is not None and row.sealed:
        findings = (*findings, *_find_sealed(document, outcome))
    return outcome._replace(findings=(*outcome.findings, *findings))


def adapt_encrypted_objects(outcome: Outcome, variants: WorkloadVariants) -> Outcome:
    """Return the outcome of a Bundle with unchanged manifests of the objects that SOPS encrypted, and with findings about these."""
    changed: dict[Key, tuple[Document, list[str]]] = {}
    targets = []
    for target in outcome.targets:
        variant = variants.find(target.cluster)
        for document in variant.objects if variant is not None and (target.bodies or target.edits) else ():
            if not is_encrypted(document.body):
                continue
            edits = target.edits if target.workload == document.key else ()
            body = dict(target.bodies).get(document.key)
            if _is_changed(document, target._replace(edits=edits, body=body)):
                changed.setdefault(document.key, (document, []))[1].append(target.cluster)
            bodies = tuple(entry for entry in target.bodies if entry[0] != document.key)
            target = target._replace(edits=() if edits else target.edits, bodies=bodies)
        targets.append(target)
    if targets == list(outcome.targets):
        return outcome
    findings = (_make_sops_finding(document, clusters) for document, clusters in changed.values())
    return outcome._replace(targets=tuple(targets), findings=(*outcome.findings, *findings))


def _is_changed(document: Document, target: TargetCluster) -> bool:
    edits = any(get_field(document.body, *path.split(".")) != count for path, count in target.edits)
    return edits or (target.body is not None and target.body != document.body)


def _make_sops_finding(document: Document, clusters: list[str]) -> Finding:
    message = (
        f"{document.key} is encrypted by SOPS, so its manifest is not changed: neither overrides nor a division of its replicas apply in "
        f"{format_names(clusters, _MAX_NAMES)}; leave it out of them, or encrypt only the Secret that it needs"
    )
    return Finding("warning", "sops-unchanged", message, locate_document(document), document.key.resource)


def _find_sealed(document: Document, outcome: Outcome) -> tuple[Finding, ...]:
    annotations = read_annotations(document.body)
    if annotations.get(SEALING_KEY) == "shared":
        return ()
    clusters = sorted(target.cluster for target in outcome.targets if not target.evicting)
    before = sorted(target.cluster for target in outcome.previous_targets if not target.evicting)
    if len(clusters) > 1:
        where = f"goes to {len(clusters)} clusters ({format_names(clusters, _MAX_NAMES)})"
    elif clusters and before and not set(clusters) <= set(before):
        where = f"moves from {format_names(before, _MAX_NAMES)} to {format_names(clusters, _MAX_NAMES)}"
    else:
        return ()
    sealed = {**annotations, **as_string_map(get_field(document.body, "spec", "template", "metadata", "annotations"))}
    scope = next((scope for scope in _SCOPES if sealed.get(f"sealedsecrets.bitnami.com/{scope}") == "true"), "")
    note = f" (its scope, {scope}, is within one cluster)" if scope else ""
    message = (
        f"{document.key} {where}, but it was sealed with the key of one cluster's controller{note}: a cluster with another key cannot "
        f"unseal it; seal one for each cluster, or give the clusters the same key and annotate it with {SEALING_KEY}: shared"
    )
    return (Finding("warning", "sealed-for-one-cluster", message, locate_document(document), document.key.resource),)
