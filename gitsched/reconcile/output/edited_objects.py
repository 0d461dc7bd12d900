"""Describe what people changed by hand in the manifests of a cluster, or of an object, on the output branch since the last run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from gitsched.diff.field_differences import list_field_differences
from gitsched.git import Repository
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, Key, as_object
from gitsched.model.finding import format_names
from gitsched.model.time import format_age
from gitsched.reconcile.output.history_records import MAX_RECORD
from gitsched.reconcile.output.output_edits import MAX_AUTHOR_LENGTH, list_changed_entries, name_author
from gitsched.reconcile.run import Fetched
from gitsched.reconcile.source.unread_entries import read_regular_file
from gitsched.render.output_files import CLUSTERS, KUSTOMIZATION, cluster_path, relative_path
from gitsched.report.lines import abbreviate_oid

OBJECTS_SHOWN, FIELDS_SHOWN = 5, 3
"""Objects of a commit and fields of an object that are named; other objects are counted."""

Entry = tuple[str, int] | None


def describe_cluster_edits(fetched: Fetched, cluster: str, now: datetime) -> tuple[str, ...]:
    """Return a line for each commit of people since the last run that changed what a cluster has, the newest first."""
    directory = cluster_path(cluster, "")
    return tuple(_describe_edits(fetched, lambda name: name.startswith(directory), now, own=False))


def describe_object_edits(fetched: Fetched, key: Key, now: datetime) -> tuple[str, ...]:
    """Return a line for each commit of people since the last run that changed the manifest of an object in a cluster, the newest first."""
    tail = relative_path(key)

    def selects(name: str) -> bool:
        return name.startswith(f"{CLUSTERS}/") and name.split("/", 2)[-1] == tail

    return tuple(_describe_edits(fetched, selects, now, own=True))


def _describe_edits(fetched: Fetched, selects: Callable[[str], bool], now: datetime, *, own: bool) -> Iterator[str]:
    repository = fetched.output.repository
    for commit, changed in list_changed_entries(fetched):
        entries = [one for one in changed if selects(one[0])]
        objects = [one for one in entries if not one[0].endswith(f"/{KUSTOMIZATION}")] or entries
        texts = [
            _describe_file(repository, name, before, after, own=own) if index < OBJECTS_SHOWN else name
            for index, (name, before, after) in enumerate(objects)
        ]
        if texts:
            who = f"{name_author(commit)[:MAX_AUTHOR_LENGTH]}, {format_age(commit.time, now)} ago"
            yield (
                f"edited by hand: {abbreviate_oid(commit.oid)} {commit.subject[:MAX_AUTHOR_LENGTH]} ({who}) "
                f"{format_names(texts, OBJECTS_SHOWN)}; the next run takes this back"
            )


def _describe_file(repository: Repository, path: str, before: Entry, after: Entry, *, own: bool) -> str:
    """Return what happened to a file: the object that it has, and the fields that differ. The `own` object is named by its cluster."""
    old, new = (_read_body(repository, entry) for entry in (before, after))
    cluster = path.split("/")[1]
    name = "it" if own else _format_name(new or old or {}) or path
    if after is None:
        return f"removed {name} from {cluster}" if own else f"removed {name}"
    verb = "added" if before is None else "changed"
    fields = list_field_differences(old, new, FIELDS_SHOWN) if old is not None and new is not None else []
    details = f" ({', '.join(field.text for field in fields)})" if fields else ""
    return f"{verb} {name}{f' in {cluster}' if own else ''}{details}"


def _format_name(body: Body) -> str:
    metadata = as_object(body.get("metadata"))
    kind, namespace, name = (
        each if isinstance(each, str) else "" for each in (body.get("kind"), *map(metadata.get, ("namespace", "name")))
    )
    return f"{kind} {'/'.join(filter(None, (namespace, name)))}" if kind and name else ""


def _read_body(repository: Repository, entry: Entry) -> Body | None:
    """Return the object of a file; None if it has none, or several, or cannot be read."""
    data = read_regular_file(repository, entry, MAX_RECORD)
    if data is None:
        return None
    documents = parse_file(data, path="manifest.yaml", validate=None).documents
    return documents[0].body if len(documents) == 1 else None
