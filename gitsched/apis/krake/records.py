"""Decisions as Krake's server would show them: what lies under status/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.krake import names
from gitsched.apis.krake.arena import Site
from gitsched.apis.krake.backends import Binding
from gitsched.apis.krake.inventory import FAILING
from gitsched.apis.krake.memory import Memory, stamp, write_record
from gitsched.apis.krake.names import Ref
from gitsched.model.document import Body, Document, Key, member, text_map

_KEPT = ("running_on", "migration_retries", "migration_timeout")
"""Members of an application's status that others write; the rest of it may hold what nobody should read."""


def application_record(document: Document, memory: Memory) -> Body:
    """An Application with its status."""
    source = document.body.get("status") or {}
    status = {
        "state": memory.state,
        "reason": memory.reason,
        "scheduled": stamp(memory.scheduled),
        "scheduled_to": memory.target.body if memory.target else None,
        "kube_controller_triggered": stamp(memory.triggered),
        "retries": memory.retries,
        "scheduled_retry": stamp(memory.retry),
        "auto_cluster_create_started": memory.awaited or None,
        **{name: source.get(name) for name in _KEPT},
    }
    return write_record(document, memory, status)


def cluster_record(document: Document, binding: Binding, site: Site | None, spec: Body | None) -> Body | None:
    """A Cluster of which there is something to say: its cloud, why it has none, or which of its metrics fail. `spec` is of one that is
    to be made."""
    memory = binding.memory
    failing = site is not None and site.state == FAILING and memory.state != "FAILED"
    if binding.action == "ignored" and not failing and memory.state not in ("FAILED",) and not memory.known:
        return None
    status = {
        "state": FAILING if failing else site.state if site and memory.state != "FAILED" else memory.state,
        "reason": memory.reason,
        "metrics_reasons": _reasons(site) if site else None,
        "scheduled": stamp(memory.scheduled),
        "scheduled_to": memory.target.body if memory.target else None,
    }
    return write_record(document, memory, status, spec=spec)


def magnum_record(document: Document, binding: Binding, projects: Mapping[Ref, Document]) -> Body:
    """A MagnumCluster with its project, and the labels and metrics that it has from there; its own labels win."""
    memory = binding.memory
    project = projects.get(memory.target) if memory.target else None
    labels = text_map(member(document.body, "metadata", "labels"))
    metrics = list(member(document.body, "spec", "metrics") or ())
    template = member(document.body, "status", "template")
    if project is not None:
        labels = {**text_map(member(project.body, "metadata", "labels")), **labels}
        known = {entry.get("name") for entry in metrics}
        metrics += [entry for entry in member(project.body, "spec", "metrics") or () if entry.get("name") not in known]
        template = member(project.body, "spec", "template")
    status = {
        "state": memory.state,
        "reason": memory.reason,
        "project": memory.target.body if memory.target else None,
        "template": template,
    }
    return write_record(document, memory, status, labels=labels, spec={"metrics": metrics})


def failing_records(sites: Iterable[Site], documents: Mapping[Ref, Document]) -> Iterator[tuple[Key, Body]]:
    """The clouds and projects whose metrics cannot be read."""
    for site in sites:
        document = documents.get(site.ref)
        if document is None or not site.readings.reasons:
            continue
        status = {"state": FAILING, "metrics_reasons": _reasons(site)}
        metadata = {"name": site.ref.name} | ({"namespace": site.ref.namespace} if site.ref.namespace else {})
        yield document.key, {"api": site.ref.group, "kind": site.ref.kind, "metadata": metadata, "status": status}


def _reasons(site: Site) -> Body | None:
    return {name: reason.body for name, reason in site.readings.reasons} or None


def find_owners(documents: Mapping[tuple[str, str], tuple[Document, ...]]) -> dict[Ref, Document]:
    """The clouds and projects of a world, by what refers to them."""
    kinds = (names.CLOUD, names.GLOBAL_CLOUD, names.PROJECT)
    return {names.ref_of(document.key): document for kind in kinds for document in documents.get(kind, ())}
