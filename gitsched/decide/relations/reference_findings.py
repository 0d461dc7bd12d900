"""Describe what delivered manifests refer to and what does not go to their clusters, as findings with the cure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.decide.relations.located_findings import MAX_FINDINGS, FindingSources, KnownFindings, LocatedFinding
from gitsched.decide.relations.missing_objects import LackingObject, read_missing
from gitsched.decide.relations.object_queries import RelationReader, list_owners, read_facts
from gitsched.decide.relations.placement_texts import MAX_NAMES, join_clusters, join_names
from gitsched.decide.relations.schema import ALONE, MISSING, OF_KIND, REPORTED, REPORTED_COUNT
from gitsched.kinds.requirements import locate_reference
from gitsched.model.document import Key
from gitsched.model.finding import FieldOrigin, Finding, Location, locate_field

if TYPE_CHECKING:
    from gitsched.query import Database

NOT_IN_SOURCE = "reference-not-in-source"
NOT_DELIVERED = "reference-not-delivered"
_IMPLIED = frozenset({"ClusterRoleBinding", "CustomResourceDefinition", "RoleBinding"})
"""Kinds that objects require without a field that names them."""


def list_reference_findings(db: Database, sources: FindingSources, known: KnownFindings | None) -> Iterator[LocatedFinding]:
    """Yield a finding for each missing object, and one for all objects of a kind that clusters often have by themselves."""
    for key in db.rows_of(REPORTED, ALONE, MAX_FINDINGS):
        missing = _read(db, key)
        code = NOT_DELIVERED if missing.in_source else NOT_IN_SOURCE
        found = known.find((code, *key), ((MISSING, key),)) if known is not None else None
        if found is None:
            located, location = _find_location(db, missing, sources)
            finding = (
                _make_delivery_finding(missing, sources, location) if missing.in_source else _make_absent_finding(missing, location)
            )
            finding = finding._replace(field=_locate_reference(missing, located, sources))
            found = LocatedFinding(located, finding, (code, *key), _list_concerned(missing, located))
        yield found
    more = (db.read(REPORTED_COUNT, ALONE) or 0) - MAX_FINDINGS
    if more > 0:
        message = (
            f"{more} more objects are referred to in clusters that they do not go to; `gitsched explain` shows them by workload"
        )
        yield LocatedFinding(None, Finding("warning", NOT_DELIVERED, message))
    for group in db.list_keys(REPORTED_COUNT):
        if group[0] == OF_KIND:
            first = [_read(db, key) for key in db.rows_of(REPORTED, group, MAX_NAMES)]
            located, location = _find_location(db, first[0], sources)
            finding = _make_unknown_finding(first, db.read(REPORTED_COUNT, group), location)
            finding = finding._replace(field=_locate_reference(first[0], located, sources))
            yield LocatedFinding(located, finding, group, _list_concerned(first[0], located))


def _list_concerned(missing: LackingObject, located: Key | None) -> tuple[Key, ...]:
    """Return the objects on which the cures and the location of a finding depend."""
    return (*missing.referrers[:MAX_NAMES], *(() if located is None else (located,)))


def _read(db: RelationReader, key: tuple[str, ...]) -> LackingObject:
    found = read_missing(db, key)
    assert found is not None, "only a missing object is reported"
    return found


def _make_unknown_finding(missing: list[LackingObject], count: int, location: Location | None) -> Finding:
    """Return the finding for a number of objects of one kind that are not in the source, given the first ones."""
    first = missing[0]
    them = "them" if count > 1 else "it"
    hint = f"commit what creates {them}, or list {them} under `spec.assumed` in gitsched.yaml if these clusters have {them} by themselves"
    if count == 1:
        message = f"{first.key} is not in the source, and {_describe_users(first)} in {join_clusters(first.reported)}; {hint}"
        return Finding("info", NOT_IN_SOURCE, message, location, first.key.resource)
    names = join_names(
        [f"{one.key} (in {join_clusters(one.reported)}, for {join_names(list(map(str, one.referrers)), 1)})" for one in missing],
        count=count,
    )
    message = f"{count} objects of kind {first.key.kind} that delivered objects refer to are not in the source: {names}; {hint}"
    return Finding("info", NOT_IN_SOURCE, message, location, first.key.resource)


def _make_absent_finding(missing: LackingObject, location: Location | None) -> Finding:
    """Return the finding for an object that is not in the source, of a kind that clusters do not have by themselves."""
    message = (
        f"{missing.key} is not in the source, and {_describe_users(missing)} in {join_clusters(missing.reported)}; commit it, or list it "
        "under `spec.assumed` in gitsched.yaml if these clusters have it by themselves"
    )
    return Finding("warning", NOT_IN_SOURCE, message, location, missing.key.resource)


def _describe_users(missing: LackingObject) -> str:
    parts, single = missing.parts, len(missing.referrers) == 1
    referrers = [f"{Key(*parts[key][0])} of {key}" if key in parts else str(key) for key in missing.referrers]
    verb = "needs" if single else "need"
    if missing.key.kind not in _IMPLIED:
        verb = "refers to" if single else "refer to"
    return f"{join_names(referrers)} {verb} it"


def _make_delivery_finding(missing: LackingObject, sources: FindingSources, location: Location | None) -> Finding:
    """Return the finding for an object of the source that is not delivered together with what refers to it."""
    made = f", which writes {missing.key}," if missing.source != missing.key else ""
    cures = ["list these clusters in its policy" if missing.is_delivered else "select it with a policy"]
    if missing.is_contained:
        cures = ["add it to what goes to these clusters"]
    if missing.is_assigned:
        cures = ["resume dispatching to these clusters", "correct what another finding reports about its manifest"]
    cures += [
        *(() if missing.is_assigned else sources.list_delivery_options(missing)),
        "list it under `spec.assumed` in gitsched.yaml",
    ]
    message = (
        f"{missing.source}{made} does not go to {join_clusters(missing.reported)}, where {_describe_users(missing)}: "
        f"{missing.placement}; {', '.join(cures[:-1])}, or {cures[-1]} if these clusters have it by themselves"
    )
    return Finding("warning", NOT_DELIVERED, message, location, missing.key.resource)


def _find_location(db: RelationReader, missing: LackingObject, sources: FindingSources) -> tuple[Key | None, Location | None]:
    """Return the first object that refers to a missing one and that has a document, or else the first workload that contains such an
    object, as a Bundle does, and the location: in the base, for a part that is built."""
    for key in missing.referrers:
        location = sources.locate(key)
        if location is not None:
            part = missing.parts.get(key)
            return key, _restore_location(part[1] if part is not None else None) or location
    first = missing.referrers[0]
    for owner in (owner for key in missing.referrers for owner in list_owners(db, key)):
        location = sources.locate(owner)
        if location is not None:
            own = (plain[5] for plain in read_facts(db, owner).parts if plain[0] == first)
            return owner, _restore_location(next(own, None)) or location
    return None, None


def _locate_reference(missing: LackingObject, referrer: Key | None, sources: FindingSources) -> FieldOrigin | None:
    """Return the field of the object at whose document a finding is located that refers to the missing one; None for one that only
    contains such an object, or that has no such field."""
    if referrer is None or referrer in missing.parts:
        return None
    template = sources.find_template(referrer)
    if template is None:
        return None
    pointer = locate_reference(template.key, template.body, missing.key, sources.config.pod_paths)
    return locate_field(template.origin, pointer) if pointer is not None else None


def _restore_location(plain: tuple[object, ...] | None) -> Location | None:
    return Location(*plain) if plain is not None else None  # type: ignore[arg-type]
