"""Adopt a running fleet: read what runs, and commit an output that has everything where it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from gitsched import __version__
from gitsched.decide.adoption import AdoptionPlan, plan_adoption
from gitsched.decide.catalog import build_catalog
from gitsched.decide.commit_metadata import write_commit_message
from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.plan_input import PlanInput, SourceTree
from gitsched.decide.registry import reserved_groups
from gitsched.kubectl.client import KubectlClient, KubectlOptions
from gitsched.model.adoption import AdoptedObject, Adoption
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, format_count
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.adoption.running_objects import ClusterInput, RunningObjectReader, list_cluster_inputs
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.output.output_commit import prepare_commit, publish, write
from gitsched.reconcile.review.ignored_settings import log_ignored_settings
from gitsched.reconcile.run import Fetched, Planned, RunContext, Written, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source_plan import read_plan_input, read_source

STANDARD_INPUT = "-"


class AdoptionInputs(NamedTuple):
    """Where it is read what runs.

    `dumps` are files of a hub's objects; "-" is standard input. `directories` have a directory for each cluster, `clusters` are files or
    directories of single clusters. `contexts` are the contexts of the kubeconfig by cluster, `kubectl` says how they are reached.
    `not_running` are policy APIs of which objects that are not found run nowhere.
    """

    dumps: tuple[str, ...] = ()
    directories: tuple[Path, ...] = ()
    clusters: tuple[ClusterInput, ...] = ()
    contexts: tuple[tuple[str, str], ...] = ()
    kubectl: KubectlOptions = KubectlOptions()
    not_running: tuple[str, ...] = ()


class AdoptionResult(NamedTuple):
    """`before` is the output's head at the start, `commit` the new commit; None if nothing was written. `objects` counts what was read."""

    adoption: Adoption
    findings: tuple[Finding, ...]
    source: str
    branch: str
    repository: str
    before: str | None
    commit: str | None
    changed: bool
    objects: int


def adopt(settings: RunSettings, inputs: AdoptionInputs, *, dry_run: bool = False) -> AdoptionResult:
    """Adopt what runs, and commit it to the output branch unless it is a `dry_run`.

    Raise Permanent for an input that does not exist or that the source could change, and Conflict if another process moves the branch.
    """
    context = open_context(settings)
    fetched = fetch(context)
    read_input = partial(read_plan_input, context, fetched, settings.now, withholds=not dry_run)
    known = read_source(context, fetched, read_input).plan_input
    source = known.source
    reader = RunningObjectReader(source.config, inputs.not_running)
    _read_inputs(context, inputs, source, reader)
    running = reader.read()
    if not (running.records or running.clusters):
        reasons = "".join(f"; {finding.message}" for finding in reader.findings[:3])
        raise Permanent(f"nothing that runs was found in what was given, so there is nothing to adopt{reasons}")

    def plan(made_from: PlanInput) -> tuple[AdoptionPlan, Planned, Written]:
        made = plan_adoption(made_from._replace(rollouts=None, withholds=False), running)
        planned = Planned(
            made.output._replace(findings=(*reader.findings, *made.findings, *made.output.findings)),
            made_from.source.config,
            None,
            made_from.source.builds,
            {path: file.commit for path, file in made_from.source.last_valid.items()},
            message=_write_message(fetched, made.adoption),
            tenants=made_from.source.tenants,
        )
        return made, planned, write(context, fetched, planned)

    with gc_paused():
        made, planned, written = read_source(context, fetched, lambda: plan(read_input().plan_input), lambda: plan(known))
    log_ignored_settings(made.output)
    findings = (*reader.findings, *made.findings)
    published = None
    if not dry_run:
        commit = prepare_commit(context, fetched, planned, written)
        published = publish(context, fetched, planned, written, commit)
    context.caches.save()
    return AdoptionResult(
        made.adoption,
        findings,
        fetched.source.oid,
        fetched.output.branch,
        fetched.output.remote or fetched.output.repository.root,
        fetched.output_head,
        published.commit if published is not None else None,
        written.changed,
        reader.objects,
    )


def _read_inputs(context: RunContext, inputs: AdoptionInputs, source: SourceTree, reader: RunningObjectReader) -> None:
    """Read all inputs."""
    for name in inputs.dumps:
        if name != STANDARD_INPUT:
            _refuse_source_file(context, Path(name))
        with _open(name) as stream:
            reader.add_dump("standard input" if name == STANDARD_INPUT else name, stream)
    for directory in inputs.directories:
        for cluster in list_cluster_inputs(directory):
            reader.add_cluster(cluster)
    for cluster in inputs.clusters:
        reader.add_cluster(cluster)
    wanted = list(_list_wanted(source)) if inputs.contexts else []
    for name, kube_context in inputs.contexts:
        reader.add_live(name, KubectlClient(inputs.kubectl._replace(context=kube_context)), wanted)


@contextmanager
def _open(name: str) -> Iterator[BinaryIO]:
    if name == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        stream = Path(name).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise Permanent(f"{name} cannot be read: {error.strerror}") from error
    with stream:
        yield stream


def _refuse_source_file(context: RunContext, path: Path) -> None:
    """Raise Permanent for a dump that git tracks in the source: everybody who can commit there could change what is adopted."""
    root = Path(context.source.repository.root).resolve()
    resolved = path.resolve()
    if not resolved.is_relative_to(root):
        return
    head = context.source.repository.resolve("HEAD")
    name = resolved.relative_to(root).as_posix()
    if head is not None and context.source.repository.find_entry(context.source.repository.commit(head).tree, name) is not None:
        raise Permanent(
            f"{path} is a file of the source, where a commit could change what is adopted: move it out of the repository"
        )


def _list_wanted(source: SourceTree) -> Iterable[tuple[str, Key]]:
    """Yield the API version and key of each object that may run in a cluster: those of the source and of the variants of Bundles."""
    found = build_catalog(source.documents, source.config.kinds, reserved_groups).templates.values()
    parts = (one for variants in source.variants.values() for variant in variants.variants for one in variant.objects)
    documents = {document.key: document for document in (*found, *parts) if document.api_version}
    return [(document.api_version, key) for key, document in sorted(documents.items()) if key.group not in reserved_groups]


def _write_message(fetched: Fetched, adoption: Adoption) -> str:
    """Return the commit message."""
    moved = (*adoption.moving, *adoption.held, *adoption.unknown)
    count = adoption.in_place + len(adoption.moving) + len(adoption.held)
    lines = (f"{one.key}: {format_clusters(one)}; {one.reason}" for one in moved)
    subject = f"adopted {format_count(count, 'object where it runs', 'objects where they run')} ({fetched.source.subject})"
    return write_commit_message(subject, lines, source=fetched.source.oid, version=__version__, cause="source")


def format_clusters(one: AdoptedObject) -> str:
    """Return where an object runs and where its policies place it."""
    before, after = (
        ", ".join(f"{name}:{count}" if count else name for name, count in part.items()) for part in (one.before, one.after)
    )
    return f"runs in {before or 'an unknown cluster'}, its policies choose {after or 'none'}"
