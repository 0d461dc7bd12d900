"""Findings about copies of workloads that stay where they are because nothing replaces them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from gitsched.model.finding import Finding, format_count, format_names, locate_document

if TYPE_CHECKING:
    from gitsched.apis.policy_api import Preservation
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.document import Document, Key

_REMEDY: Final = "resume dispatching there, or correct what another finding reports about the manifest"
_ROLLOUT_REMEDY: Final = "have the Rollout go on, which gitsched status shows"


def make_unplaced_finding(key: Key, template: Document, copies: Iterable[RetainedCopy], placed: int, wanted: int) -> Finding:
    """Return the warning about copies of a workload of whose `wanted` replicas its clusters have only those `placed`; none if it has no
    cluster any more."""
    clusters = _list_clusters(copies)
    if placed:
        lacking, end = f"clusters for {placed} of {format_count(wanted, 'replica')}", "other clusters have the rest"
    else:
        lacking, end = "no cluster any more", "another cluster has one"
    return _warn(
        key,
        template,
        f"{key} has {lacking}, and keeps its copy in {clusters} until {end}; to remove it, delete the workload, or have no policy "
        "select it",
    )


def make_lacking_finding(
    key: Key,
    template: Document,
    copies: Iterable[RetainedCopy],
    lacking: Mapping[str, int],
    wanted: Mapping[str, int],
    *,
    waits: bool,
) -> Finding:
    """Return the warning about copies whose replacement is not delivered: `lacking` are the replicas that clusters keep whose manifest does
    not change, `wanted` those that they should have. A workload `waits` in clusters for their turn in a rollout."""
    waiting = format_names([f"{name} ({lacking[name]} of {format_count(wanted[name], 'replica')})" for name in sorted(lacking)])
    return _warn(
        key,
        template,
        f"{key} keeps its copy in {_list_clusters(copies)} until its replacement is delivered, because the manifest does not change in "
        f"{waiting}: {_ROLLOUT_REMEDY if waits else _REMEDY}",
    )


def make_waiting_finding(key: Key, template: Document, followers: Iterable[RetainedCopy]) -> Finding:
    """Return the warning about copies of other workloads that a workload without a cluster continues."""
    former = format_names(sorted({f"{copy.workload} in {copy.cluster}" for copy in followers}))
    return _warn(
        key,
        template,
        f"{key} has no cluster yet, so what it continues stays: {former}; have its policy match a cluster, or delete it",
    )


def make_left_finding(key: Key, template: Document, copies: Iterable[RetainedCopy], preservation: Preservation) -> Finding:
    """Return the warning about a workload that its policy preserves, and that a pruning tool deletes in clusters that it leaves."""
    message = (
        f"{key} leaves {_list_clusters(copies)}, and delivery tools that prune delete it there when its manifest leaves the output branch, "
        f"although {preservation.field} of its policy is true, with which Karmada keeps it; set spec.{preservation.setting} in "
        "gitsched.yaml: true to keep what moves leave behind, false to have it deleted"
    )
    return Finding("warning", "preserved-left", message, locate_document(template), key.resource)


def make_encrypted_finding(key: Key, copies: Iterable[RetainedCopy]) -> Finding:
    """Return the warning about preserved copies that SOPS has encrypted: they cannot be annotated, so their files stay."""
    message = (
        f"{key} is kept in {_list_clusters(copies)} by its file, which stays on the output branch: SOPS has encrypted it, and its MAC does "
        "not allow the annotations with which delivery tools keep the object. To remove the file, commit the document again with "
        "kustomize.toolkit.fluxcd.io/prune: disabled and argocd.argoproj.io/sync-options: Prune=false,Delete=false, encrypted by SOPS, "
        "and delete it after a run"
    )
    return Finding("warning", "preserved-encrypted", message, None, key.resource)


def _list_clusters(copies: Iterable[RetainedCopy]) -> str:
    return format_names(sorted(copy.cluster for copy in copies))


def _warn(key: Key, template: Document, message: str) -> Finding:
    return Finding("warning", "copy-retained", message, locate_document(template), key.resource)
