"""Outcomes of workloads with variants: clusters without one get nothing, and a record says which objects a cluster has of a Bundle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from gitsched.apis.gitsched.config import Config
from gitsched.apis.variant_values import make_lacking_finding
from gitsched.decide.encrypted import adapt_encrypted_objects
from gitsched.decide.missing_namespaces import find_missing_namespaces
from gitsched.decide.relations.remote_destinations import find_remote_destination
from gitsched.decide.variants.bundle_delivery import BundleDeliveries, find_bundle, read_delivery
from gitsched.model.delivery import DELIVERING_KINDS
from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import BUNDLE_KIND, BUNDLE_VERSION, MANIFESTS, TemplateVariants, Variant, WorkloadVariants
from gitsched.render.output_files import relative_path

_SHORT_ID = 10
"""Digits of a commit id in messages."""
_KEEP_CURE = "annotate the objects with kustomize.toolkit.fluxcd.io/prune: disabled or argocd.argoproj.io/sync-options: Prune=false"


def adapt_variants(
    document: Document, outcome: Outcome, variants: TemplateVariants, previous: Mapping[Key, Body], config: Config
) -> Outcome:
    """Return the outcome without clusters that have no variant, with findings about these, and with the records of Bundles.

    A cluster whose variant cannot be built keeps what the previous output has there. `previous` are the records of the previous output.
    """
    own = variants.get(document.key)
    if own is not None and document.key[:2] != BUNDLE_KIND:
        return _keep_variants(document, outcome, own, {t.cluster: () for t in outcome.previous_targets if t.cluster in own.failed})
    bundles = _list_bundles(document, outcome)
    if not bundles:
        return outcome
    if own is not None:
        outcome = _keep_encrypted_objects(outcome, own)
    kept = {key: read_kept_paths(previous.get(key)) for key in bundles}
    paths: dict[str, tuple[str, ...]] = {}
    for by_cluster in kept.values():
        for cluster, found in by_cluster.items():
            paths[cluster] = (*paths.get(cluster, ()), *found)
    outcome = outcome._replace(bundles=bundles, kept_paths=paths)
    for key in bundles:
        found_variants = variants.get(key) or WorkloadVariants((), {})
        commits = _read_commits_by_cluster(previous.get(key))
        tool = read_delivery(find_bundle(document, outcome, key))
        outcome = outcome._replace(
            findings=(*outcome.findings, *_find_changed_delivery(document, outcome, key, tool, previous.get(key)))
        )
        reported: Collection[str] = ()
        if tool != MANIFESTS:
            outcome, found_variants, reported = _keep_undeliverable(document, outcome, key, tool, found_variants, kept[key], config)
        outcome = _keep_variants(document, outcome, found_variants, kept[key], commits, bundle=key, reported=reported)
        missing = find_missing_namespaces(key, outcome, found_variants) if tool == MANIFESTS else ()
        outcome = outcome._replace(findings=(*outcome.findings, *_find_remote_destinations(outcome, found_variants), *missing))
        record = _make_record(key, outcome, found_variants, kept[key], commits, previous.get(key), tool, config)
        outcome = outcome._replace(records=(*outcome.records, (key, record)))
    return outcome


def _keep_encrypted_objects(outcome: Outcome, variants: WorkloadVariants) -> Outcome:
    if not any("sops" in built.body for variant in variants.variants for built in variant.objects):
        return outcome
    return adapt_encrypted_objects(outcome, variants)


def _list_bundles(document: Document, outcome: Outcome) -> tuple[Key, ...]:
    """Return the Bundles that an outcome delivers: the workload itself, or those among the objects that it consists of."""
    if document.key[:2] == BUNDLE_KIND:
        return (document.key,)
    objects = (key for key, _ in outcome.manifests or ())
    return tuple(key._replace(namespace=key.namespace or document.key.namespace) for key in objects if key[:2] == BUNDLE_KIND)


def read_kept_paths(record: Body | None) -> dict[str, tuple[str, ...]]:
    """Return the paths that the previous output has of a Bundle by cluster, given its record."""
    found: dict[str, tuple[str, ...]] = {}
    for entry in list_objects(get_field(record, "status", "variants")) if record is not None else ():
        objects, clusters = entry.get("objects"), entry.get("clusters")
        paths = tuple(map(str, objects)) if isinstance(objects, list) else ()
        found |= dict.fromkeys(map(str, clusters) if isinstance(clusters, list) else (), paths)
    return found


def _read_commits_by_cluster(record: Body | None) -> dict[str, str]:
    """Return the source commit of the objects that each cluster has of a Bundle, given its record."""
    found: dict[str, str] = {}
    for entry in list_objects(get_field(record, "status", "variants")) if record is not None else ():
        commit, clusters = entry.get("commit"), entry.get("clusters")
        if isinstance(commit, str) and isinstance(clusters, list):
            found |= dict.fromkeys(map(str, clusters), commit)
    return found


def _describe_commits(clusters: Iterable[str], commits: Mapping[str, str]) -> str:
    """Return which source commits the objects of some clusters are from, as the end of a message; "" if that is not known."""
    found = sorted({commits[cluster][:_SHORT_ID] for cluster in clusters if cluster in commits})
    return f", from commit{'s' if len(found) > 1 else ''} {format_names(found)}" if found else ""


def _find_changed_delivery(document: Document, outcome: Outcome, key: Key, tool: str, record: Body | None) -> Iterable[Finding]:
    """Yield a warning if clusters get a Bundle by another tool than before: the former one deletes what the next one creates."""
    targets = {target.cluster for target in outcome.targets if not target.keeps_manifest}
    changed: dict[str, list[str]] = {}
    for row in list_objects(get_field(record, "status", "variants")) if record is not None else []:
        before, clusters = str(row.get("delivery") or MANIFESTS), row.get("clusters")
        if before != tool and not row.get("kept") and isinstance(clusters, list):
            changed.setdefault(before, []).extend(name for name in map(str, clusters) if name in targets)
    for before, names in sorted(changed.items()):
        if names:
            cure = _KEEP_CURE if before == MANIFESTS else f"set spec.delivery.{before}.prune to false in gitsched.yaml"
            message = (
                f"{key}: the delivery to {format_names(sorted(names))} changes from {before} to {tool}: what delivered the objects before "
                f"deletes them, and {tool} creates them again. To keep them running, {cure}, reconcile with the former delivery, wait "
                "until the clusters have that, and change spec.delivery then"
            )
            yield Finding(
                "warning", "bundle-delivery-changed", message, locate_document(document), document.key.resource, is_change=True
            )


def _find_remote_destinations(outcome: Outcome, variants: WorkloadVariants) -> Iterable[Finding]:
    """Yield a finding for each object of a Bundle with which a delivery tool would deliver to another cluster."""
    clusters: dict[int, list[str]] = {}
    for target in outcome.targets:
        index = variants.by_cluster.get(target.cluster)
        if index is not None and not (target.evicting or target.keeps_manifest):
            clusters.setdefault(index, []).append(target.cluster)
    for index, names in clusters.items():
        for built in variants.variants[index].objects:
            if built.key.kind in DELIVERING_KINDS:
                finding = find_remote_destination(built, dict.fromkeys(names, built.body))
                if finding is not None:
                    yield finding


def _keep_undeliverable(
    document: Document,
    outcome: Outcome,
    key: Key,
    tool: str,
    variants: WorkloadVariants,
    kept: Mapping[str, Sequence[str]],
    config: Config,
) -> tuple[Outcome, WorkloadVariants, Collection[str]]:
    """Return the outcome with findings about what Flux or Argo CD cannot build, where clusters keep what they have; the variants that they
    can build; and these clusters."""
    deliveries = BundleDeliveries(key, tool, variants, config.delivery)
    findings, problems = tuple(deliveries.list_findings(document, outcome.targets)), deliveries.find_problems(outcome.targets)
    targets = [
        target._replace(keeps_manifest=True) if target.cluster in problems else target
        for target in outcome.targets
        if target.cluster not in problems or target.cluster in kept or document.key != key
    ]
    outcome = outcome._replace(findings=(*outcome.findings, *findings))
    if document.key == key:
        outcome = outcome._replace(targets=tuple(targets))
    by_cluster = {cluster: index for cluster, index in variants.by_cluster.items() if cluster not in problems}
    return outcome, variants._replace(by_cluster=by_cluster), problems.keys()


def _keep_variants(
    document: Document,
    outcome: Outcome,
    variants: WorkloadVariants,
    kept: Mapping[str, Sequence[str]],
    commits: Mapping[str, str] = {},
    bundle: Key | None = None,
    reported: Collection[str] = (),
) -> Outcome:
    """Return the outcome with the targets that get a variant or keep what they have. Clusters without a variant are findings, unless they
    are `reported` already."""
    whole = bundle is None or bundle == document.key
    targets: list[TargetCluster] = []
    without: dict[str, list[str]] = {}
    for target in outcome.targets:
        if target.cluster in variants.by_cluster or target.keeps_manifest or outcome.state == "stale":
            targets.append(target)
            continue
        if not target.evicting and target.cluster not in reported:
            without.setdefault(variants.failed.get(target.cluster, ""), []).append(target.cluster)
        if not whole:
            targets.append(target)
        elif target.cluster in kept and (target.evicting or target.cluster in variants.failed):
            targets.append(target._replace(keeps_manifest=True))
    findings = tuple(_find_without(document, bundle or document.key, without, kept, commits, variants))
    if whole:
        before = tuple(t for t in outcome.previous_targets if bundle is None or t.cluster in kept)
        state = "pending" if outcome.state == "placed" and not targets else outcome.state
        found = ((target.cluster, variants.find(target.cluster)) for target in targets if not target.keeps_manifest)
        names = {cluster: variant.path for cluster, variant in found if variant is not None}
        outcome = outcome._replace(targets=tuple(targets), previous_targets=before, state=state, variant_paths=names)
    return outcome._replace(findings=(*outcome.findings, *findings))


def _find_without(
    document: Document,
    key: Key,
    without: Mapping[str, Sequence[str]],
    kept: Mapping[str, Sequence[str]],
    commits: Mapping[str, str],
    variants: WorkloadVariants,
) -> Iterable[Finding]:
    """Yield a finding for each reason why chosen clusters get nothing."""
    for reason, clusters in without.items():
        new = sorted(cluster for cluster in clusters if cluster not in kept)
        old = sorted(cluster for cluster in clusters if cluster in kept)
        if any(cluster in variants.lacking for cluster in clusters):
            yield make_lacking_finding(document, key, variants, clusters, keep=old)
            continue
        if reason:
            origin = _describe_commits(old, commits)
            effects = (
                [f"{format_names(old)} {'keep what they have' if len(old) > 1 else 'keeps what it has'}{origin}"] if old else []
            )
            effects += [f"nothing is delivered to {format_names(new)}"] if new else []
            message = f"{key}: {reason}: {'; '.join(effects)}"
        else:
            message = (
                f"{key} has no variant for {format_names(sorted(clusters))}, which its policy chooses: nothing is delivered there; add "
                "a variant, or have the policy leave these clusters out"
            )
        yield Finding("warning", "bundle-no-variant", message, locate_document(document), document.key.resource)


def _make_record(
    key: Key,
    outcome: Outcome,
    variants: WorkloadVariants,
    kept: Mapping[str, tuple[str, ...]],
    commits: Mapping[str, str],
    previous: Body | None,
    tool: str,
    config: Config,
) -> Body:
    """Return the record of a Bundle: its variants with their clusters and the paths of their objects."""
    if outcome.state == "stale" and previous is not None:
        return previous
    entries: dict[tuple[str, ...], tuple[Body, list[str]]] = {}
    deliveries = BundleDeliveries(key, tool, variants, config.delivery) if tool != MANIFESTS else None
    for target in outcome.targets:
        variant = None if target.keeps_manifest else variants.find(target.cluster)
        if variant is not None:
            identity: tuple[str, ...] = ("", str(variants.by_cluster[target.cluster]))
            known = entries.get(identity)
            entry = known[0] if known is not None else _describe_variant(variant, _list_paths(variant, target, deliveries), tool)
        elif target.cluster in kept:
            commit = commits.get(target.cluster, "")
            identity = (*kept[target.cluster], commit)
            entry = {"kept": True, "objects": list(kept[target.cluster]), **({"commit": commit} if commit else {})}
        else:
            continue
        entries.setdefault(identity, (entry, []))[1].append(target.cluster)
    rows = [{**entry, "clusters": sorted(clusters)} for entry, clusters in entries.values()]
    metadata = {"name": key.name, "namespace": key.namespace}
    status = {"variants": sorted(rows, key=lambda row: row["clusters"])}
    return {"apiVersion": BUNDLE_VERSION, "kind": key.kind, "metadata": metadata, "status": status}


def _list_paths(variant: Variant, target: TargetCluster, deliveries: BundleDeliveries | None) -> list[str]:
    """Return the paths that the directory of a cluster has of a Bundle, besides Namespaces."""
    if deliveries is None:
        return sorted(relative_path(document.key) for document in variant.objects)
    delivery = deliveries.find(target)
    return deliveries.list_paths(delivery) if delivery is not None else []


def _describe_variant(variant: Variant, paths: list[str], tool: str) -> Body:
    members: Body = {"path": variant.path}
    if tool != MANIFESTS:
        members["delivery"] = tool
    if variant.commit:
        members["commit"] = variant.commit
    if variant.digest:
        members["digest"] = variant.digest
    if variant.values:
        members["values"] = dict(variant.values)
    return {**members, "objects": paths}


def read_commits(record: Body | None) -> dict[tuple[str, str], str]:
    """Return the commits that the record of a Bundle has for its variants, by path and digest."""
    rows = list_objects(get_field(record, "status", "variants")) if record is not None else []
    return {(str(row.get("path")), str(row.get("digest"))): row["commit"] for row in rows if isinstance(row.get("commit"), str)}
