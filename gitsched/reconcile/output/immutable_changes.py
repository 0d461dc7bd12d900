"""Report changes of delivered objects that their API server refuses, because a field of the kind does not change once an object exists."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from gitsched.git import Repository
from gitsched.kinds.immutable_fields import IMMUTABLE_FIELDS, FieldChange, list_immutable_changes, replaces_object
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, Document, Key, get_field, is_namespaced, parse_api_group
from gitsched.model.finding import INTERNAL_ERROR, FieldOrigin, Finding, format_names, locate_document, locate_origin
from gitsched.reconcile.run import Fetched, Planned, RunContext, StateUpdate
from gitsched.reconcile.source.source_locations import RuleLocations, locate_finding_rules
from gitsched.render.output_files import CLUSTERS, relative_path

MAX_COMPARED = 10_000
"""Different pairs of manifests, before and after, that are compared in one run."""
_SHOWN_LENGTH = 40
"""Characters of a value that a message shows."""
IMMUTABLE_FIELD_CHANGED = "immutable-field-changed"

_PREFIXES = tuple(relative_path(Key(*kind, "", "-")).rpartition("/")[2].partition("-")[0] + "-" for kind in IMMUTABLE_FIELDS)


def find_immutable_changes(context: RunContext, fetched: Fetched, planned: Planned, tree: str) -> list[Finding]:
    """Return a warning for each object whose manifest in `tree` has another value of an immutable field than in the previous output, at the
    line of the source or of the override that has the new value."""
    pairs = _list_changed(fetched, tree)
    findings: list[Finding] = []
    templates = _get_templates(planned)
    for (before, after), clusters in islice(pairs.items(), MAX_COMPARED):
        one, other = (_read(fetched.output.repository, blob, findings) for blob in (before, after))
        if one is None or other is None or replaces_object(other):
            continue
        key = _read_key(other)
        if changes := list_immutable_changes(key[:2], one, other):
            template = templates.get(key)
            overrider = None if template is None else _find_overrider(planned, template, clusters, changes)
            findings.append(_make_finding(key, changes, clusters, template, overrider))
    if len(pairs) > MAX_COMPARED:
        message = f"only {MAX_COMPARED:,} of {len(pairs):,} changed manifests were searched for changes that an API server refuses"
        findings.append(Finding("warning", IMMUTABLE_FIELD_CHANGED, message, is_change=True))
    return list(locate_finding_rules(findings, RuleLocations(context.source.repository)))


def _list_changed(fetched: Fetched, tree: str) -> dict[tuple[str, str], list[str]]:
    """Return the blobs before and after of manifests that differ, with the directories of their clusters, sorted by path."""
    repository, prefix, old = fetched.output.repository, f"{fetched.prefix}{CLUSTERS}/", fetched.output_tree
    pairs: dict[tuple[str, str], list[str]] = {}
    if old is None:
        return pairs
    for path in repository.changed_paths(old, tree):
        if path.startswith(prefix) and path.rpartition("/")[2].startswith(_PREFIXES):
            before, after = (repository.find_entry(root, path) for root in (old, tree))
            if before is not None and after is not None:
                pairs.setdefault((before[0], after[0]), []).append(path.removeprefix(prefix).partition("/")[0])
    return pairs


def _read(repository: Repository, blob: str, findings: list[Finding]) -> Body | None:
    """Return the object of a manifest; None if it cannot be read, with a finding if that is a bug."""
    file = parse_file(repository.blob(blob), path="manifest.yaml", validate=None)
    findings += [Finding(issue.severity, issue.code, issue.message) for issue in file.issues if issue.code == INTERNAL_ERROR]
    return file.documents[0].body if file.documents else None


def _read_key(body: Body) -> Key:
    group, kind = parse_api_group(str(body.get("apiVersion"))), str(body.get("kind"))
    namespace, name = (str(get_field(body, "metadata", field) or "") for field in ("namespace", "name"))
    return Key(group, kind, namespace or ("default" if is_namespaced(group, kind) else ""), name)


def _get_templates(planned: Planned) -> Mapping[Key, Document]:
    if planned.plan.details is not None:
        return planned.plan.decisions.templates
    return planned.state.incremental.decided.snapshot.templates if isinstance(planned.state, StateUpdate) else {}


def _find_overrider(planned: Planned, template: Document, clusters: list[str], changes: list[FieldChange]) -> FieldOrigin | None:
    """Return what changes the first of the fields in one of the clusters, if it is not the source of the object."""
    if planned.plan.details is not None:
        engines = planned.plan.decisions.engines
    else:
        engines = planned.state.incremental.decided.continued.engines if isinstance(planned.state, StateUpdate) else ()
    found = (
        engine.find_overrider(template, cluster, change.path.split("."))
        for change in changes
        for cluster in sorted(clusters)
        for engine in engines
    )
    return next(filter(None, found), None)


def _make_finding(
    key: Key, changes: list[FieldChange], clusters: list[str], template: Document | None, overrider: FieldOrigin | None
) -> Finding:
    fields = format_names([_describe(change) for change in changes])
    message = (
        f"{'an override of ' if overrider is not None else ''}{key} changes {fields} in {format_names(sorted(clusters))}, which an API "
        "server refuses for an object that exists: delete the object there first, give it another name, or have the delivery tool replace "
        "it (annotation kustomize.toolkit.fluxcd.io/force: enabled for Flux, argocd.argoproj.io/sync-options: Force=true,Replace=true for "
        "Argo CD)"
    )
    field, location = overrider, locate_document(template) if template is not None else None
    if field is not None:
        location = locate_origin(field.origin)
    elif template is not None and template.origin is not None:
        field = FieldOrigin(template.origin, tuple(changes[0].path.split(".")))
    return Finding("warning", IMMUTABLE_FIELD_CHANGED, message, location, key.resource, field, is_change=True)


def _describe(change: FieldChange) -> str:
    values = [change.before, change.after]
    shown = all(isinstance(value, str | int | bool) and len(str(value)) <= _SHOWN_LENGTH for value in values)
    return f"{change.path} from {values[0]} to {values[1]}" if shown else change.path
