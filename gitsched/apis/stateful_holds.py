"""Decide which stateful workloads keep their clusters: what their data is, and whether they are released."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping

from gitsched.kinds.persistent_data import DataVolume, claim_key, describe_claim, is_claim, list_claim_names, list_data
from gitsched.model.document import Document, Key, read_annotations
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.holds import (
    HELD_ANNOTATION,
    NO_RELEASES,
    RELEASE_ANNOTATION,
    HeldPlacement,
    Releases,
    describe_release,
    split_names,
)
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.variants import TemplateVariants
from gitsched.report.lines import format_cluster

Replicas = Mapping[str, int | None]
MAX_DATA = 5
"""The maximum number of claims and templates of claims that a message lists."""


def _never(_key: Key) -> bool:
    return False


class Holds:
    """The data of the workloads of one snapshot, and what releases them."""

    __slots__ = ("_adopted", "_holds_data", "_releases", "_templates", "_users", "_variants")

    def __init__(
        self,
        templates: Mapping[Key, Document],
        variants: TemplateVariants | None = None,
        releases: Releases | None = None,
        adopted: Mapping[str, str] | None = None,
        *,
        holds_data: bool = True,
    ) -> None:
        """`adopted` says for objects that gitsched took over why they keep their placement, by key as text; without `holds_data`, data
        holds no workload."""
        self._templates, self._variants, self._releases = templates, variants or {}, releases or NO_RELEASES
        self._adopted, self._holds_data = adopted or {}, holds_data
        self._users: dict[Key, list[Document]] | None = None

    def list_data(self, document: Document) -> tuple[str, ...]:
        """Return the data of a workload, one line each; () for a workload without data."""
        found = list_data(document.body)
        variants = self._variants.get(document.key)
        for variant in variants.variants if variants is not None else ():
            found += (volume for each in variant.objects for volume in list_data(each.body))
        if is_claim(document.key) and self._is_opted_out(document):
            return ()
        lines = list(dict.fromkeys(str(self._describe(volume, document.key.namespace)) for volume in found))
        more = len(lines) - MAX_DATA
        return (*lines[:MAX_DATA], f"{more} more") if more > 0 else tuple(lines)

    def find_adopted(self, document: Document, leaving: Collection[str] = ()) -> str:
        """Return why an object that gitsched took over keeps its placement; "" if it does not, or is released."""
        reason = self._adopted.get(str(document.key), "") if self._adopted else ""
        return "" if not reason or self.is_released(document, leaving) else reason

    def drop_released(self, document: Document, before: Replicas, clusters: Container[str]) -> Replicas:
        """Return the previous clusters of a workload, without those that have no document and that it may leave."""
        lost = [name for name in before if name not in clusters]
        released = {name for name in lost if self.is_released(document, [name])}
        return {name: count for name, count in before.items() if name not in released}

    def find_hold(
        self,
        document: Document,
        before: Replicas,
        after: Replicas,
        *,
        reason: str,
        clusters: Container[str],
        divided: bool = False,
        resized: bool = False,
        evicted: bool = False,
        is_rebalanced: Callable[[Key], bool] = _never,
    ) -> HeldPlacement | None:
        """Return why a workload keeps the clusters that it had; None if it has no data, leaves no cluster or is released.

        A workload whose replicas are divided also keeps its clusters when it would get a further one. `clusters` are those with a
        document. `is_rebalanced` says whether a rebalance was requested for a workload. With `resized`, an adopted workload that would get
        other replicas in the same clusters is held, too.
        """
        leaving = sorted(before.keys() - after.keys())
        moving = leaving or (sorted(after.keys() - before.keys()) if divided and before else [])
        if not moving and not (resized and self._adopted):
            return None
        data = self.list_data(document) if self._holds_data and moving else ()
        adopted = "" if evicted else self.find_adopted(document, moving)
        if not (data or adopted) or self.is_released(document, moving, is_rebalanced):
            return None
        lost = tuple(name for name in before if name not in clusters)
        return HeldPlacement(before, after, reason, data, tuple(leaving), lost, evicted, adopted)

    def is_released(self, document: Document, leaving: Collection[str], is_rebalanced: Callable[[Key], bool] = _never) -> bool:
        """Return whether a workload may leave some clusters. A claim is released with all workloads that mount it."""
        if self._releases.releases(document.key, leaving):
            return True
        annotated = read_annotations(document.body).get(RELEASE_ANNOTATION)
        if annotated is not None and set(leaving) <= split_names([annotated]):
            return True
        if is_rebalanced(document.key):
            return True
        users = self._list_users(document.key) if is_claim(document.key) else []
        return bool(users) and all(self.is_released(user, leaving, is_rebalanced) for user in users if list_data(user.body))

    def _is_opted_out(self, claim: Document) -> bool:
        """Return whether all workloads that mount a claim have the label that says they are not stateful."""
        users = self._list_users(claim.key)
        return bool(users) and not any(list_data(user.body) for user in users)

    def _list_users(self, claim: Key) -> list[Document]:
        """Return the workloads that mount a claim."""
        if self._users is None:
            self._users = {}
            for key, template in self._templates.items():
                if key.namespace and not is_claim(key):
                    for name in list_claim_names(template.body):
                        self._users.setdefault(claim_key(key.namespace, name), []).append(template)
        return self._users.get(claim, [])

    def _describe(self, volume: DataVolume, namespace: str) -> DataVolume:
        """Return a claim with the size and the storage class that its document has."""
        if volume.kind != "claim" or volume.size:
            return volume
        document = self._templates.get(claim_key(namespace, volume.name))
        return describe_claim(document.body) if document is not None else volume


def make_held_finding(document: Document, held: HeldPlacement) -> Finding:
    """Return the warning about a held workload: why it is held, which data it would leave, and what releases it."""
    nowhere = "would be placed anew" if held.lost else "would go nowhere"
    key, wanted = document.key, f"would go to {format_clusters(held.wanted)}" if held.wanted else nowhere
    if held.adopted and not held.data:
        where, cure = format_clusters(held.clusters), f"adopt it with complete information, or {describe_release(key, held)}"
        message = f"{key} stays in {where}, where it was adopted ({held.adopted}), and it {wanted} otherwise: {held.reason}; {cure}"
        return Finding("warning", "adopted-held", message, locate_document(document), key.resource)
    message = (
        f"{key} is held in {format_clusters(held.clusters)}: {held.reason}, and it {wanted} without its data ({'; '.join(held.data)}); "
        f"save or copy the data, then {describe_release(key, held)}"
    )
    return Finding("warning", "stateful-held", message, locate_document(document), key.resource)


def make_move_finding(document: Document, before: Replicas, after: Replicas, data: tuple[str, ...], *, holds: bool) -> Finding:
    """Return the warning about a workload that moves without its data. `holds`: workloads with data are held until they are released."""
    left = {name: count for name, count in before.items() if name not in after} or before
    message = (
        f"{document.key} moves from {format_clusters(before)} to {format_clusters(after) if after else 'nowhere'} without its data in "
        f"{format_clusters(left)}: {'; '.join(data)}; save or copy the data"
    )
    if not holds:
        message = f"{message}, and set spec.guard.holdStateful: true so that such workloads stay until they are released"
    return Finding("warning", "stateful-move", message, locate_document(document), document.key.resource)


def make_copy_finding(document: Document, before: Replicas, joined: Replicas, data: tuple[str, ...]) -> Finding:
    """Return the warning about a workload with data that gets a copy with empty volumes in further clusters."""
    further = format_clusters({name: joined[name] for name in sorted(joined)})
    message = (
        f"{document.key} gets a copy in {further}, where its volumes are empty: its data ({'; '.join(data)}) stays in "
        f"{format_clusters(before)}, and what the copies write from then on differs; replicate the data between the clusters, or have the "
        "policy match only one of them"
    )
    return Finding("warning", "stateful-copy", message, locate_document(document), document.key.resource)


def format_clusters(replicas: Replicas) -> str:
    """List clusters with their replicas in a message."""
    return format_names([format_cluster(name, count) for name, count in replicas.items()])


def hold_outcome(document: Document, outcome: Outcome, held: HeldPlacement) -> Outcome:
    """Return the outcome of a held workload, given that with its previous clusters: the first record and a finding say so.

    Clusters without a document keep the manifests that they have.
    """
    targets = [target._replace(keeps_manifest=True) if target.cluster in held.lost else target for target in outcome.targets]
    known = {target.cluster for target in targets}
    targets += [TargetCluster(name, held.clusters[name], keeps_manifest=True) for name in held.lost if name not in known]
    records = outcome.records
    if records:
        key, body = records[0]
        metadata = body.get("metadata") or {}
        annotations = {**(metadata.get("annotations") or {}), HELD_ANNOTATION: "true"}
        records = ((key, {**body, "metadata": {**metadata, "annotations": annotations}}), *records[1:])
    findings = (*outcome.findings, make_held_finding(document, held))
    return outcome._replace(state="placed", targets=tuple(targets), records=records, findings=findings, held=held)
