"""The changes between the inputs of two plans, by document, and the later input with some of them taken back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from gitsched.apis.gitsched.config import GROUP, KIND, parse_config
from gitsched.decide.catalog import Catalog, KustomizedDocument, is_template
from gitsched.decide.cluster_conditions import index_cluster_kinds, is_available
from gitsched.decide.decisions import DecisionInput
from gitsched.decide.registry import reserved_groups
from gitsched.decide.validation import validate_document
from gitsched.diff.field_differences import FieldDifference, list_field_differences, revert_fields
from gitsched.diff.relabelled_clusters import list_relabelled
from gitsched.model.document import Document, Key
from gitsched.model.finding import format_count
from gitsched.model.variants import Variant, WorkloadVariants
from gitsched.named_tuples import NamedTuple

MAX_FIELDS = 50
"""The maximum number of fields of one document that are taken back one by one."""
WHOLE = -1
"""The position of a change of a whole document, in place of that of a field difference."""
SETTINGS, READ_ORDER, RELEASES, OBSERVATIONS, TIME = (
    Key("", "", "", name) for name in ("settings", "order", "releases", "observations", "time")
)
"""What can change besides documents: settings without a document, the order of documents, releases of held workloads, observed values, and
the time of the plan."""
_SPECIAL = frozenset((SETTINGS, READ_ORDER, RELEASES, OBSERVATIONS, TIME))
_CONFIG = (GROUP, KIND)
_BUILT_DIFFERENTLY = "built differently"


class Change(NamedTuple):
    """A change that can be taken back: a field difference of a document by its position, or all of it with `WHOLE`."""

    key: Key
    position: int = WHOLE


class _DocumentState(NamedTuple):
    """Everything that the input of a plan has about one identity."""

    document: Document | None
    broken: Document | None
    copies: tuple[Document, ...]
    part: tuple[Document, KustomizedDocument] | None
    variants: WorkloadVariants | None

    @property
    def content(self) -> tuple[object, ...]:
        """What decisions depend on, without positions in files."""
        bodies = [None if found is None else (found.api_version, found.body) for found in (self.document, self.broken)]
        return (*bodies, [copy.body for copy in self.copies], self.part is not None, self.variants)


class BuildInput(NamedTuple):
    """The files of which a changed object is built, and words that the line which changes it may have."""

    files: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()


class DocumentChange(NamedTuple):
    """A document that differs between two inputs.

    `differences` are its fields that differ; empty if only all of it can be taken back. `text` says what happened to it as a whole, and
    `difference` is the first field of it that does. `built` is of what objects are built that differ.
    """

    key: Key
    before: Document | None
    after: Document | None
    differences: tuple[FieldDifference, ...]
    text: str
    difference: FieldDifference | None = None
    built: BuildInput = BuildInput()

    @property
    def changes(self) -> tuple[Change, ...]:
        """The smallest changes of the document."""
        return tuple(Change(self.key, position) for position in range(len(self.differences))) or (Change(self.key),)


class DocumentChanges:
    """The changes from an earlier to a later input."""

    def __init__(self, before: DecisionInput, after: DecisionInput) -> None:
        self.before, self.after = before, after
        self._states = [_InputIndex(source) for source in (before, after)]
        old, new = self._states
        self.by_key: dict[Key, DocumentChange] = {}
        for key in sorted(old.keys | new.keys):
            one, other = old.find(key), new.find(key)
            if one is not other and one.content != other.content:
                self.by_key[key] = _compare_states(key, one, other)
        self._possible: dict[frozenset[Change], bool] = {}
        self._reverted: dict[tuple[Key, frozenset[int]], Document | None] = {}
        self._settings_read = all(parse_document_settings(source.catalog) == source.config for source in (before, after))

    @cached_property
    def others(self) -> tuple[Key, ...]:
        """What changed besides documents, without the time."""
        before, after = self.before, self.after
        found = []
        if before.config != after.config and not self._settings_read:
            found.append(SETTINGS)
        common = self._states[0].keys & self._states[1].keys
        orders = [[key for key in source.catalog.read_order if key in common] for source in (before, after)]
        if orders[0] != orders[1]:
            found.append(READ_ORDER)
        if before.releases != after.releases:
            found.append(RELEASES)
        if any(after.observations.get(key) != value for key, value in before.observations.items()):
            found.append(OBSERVATIONS)
        return tuple(found)

    @property
    def time_differs(self) -> bool:
        """Whether the inputs have different times."""
        return (self.before.source_time, self.before.now) != (self.after.source_time, self.after.now)

    def revert(self, changes: Collection[Change]) -> DecisionInput:
        """Return the later input with these changes taken back, which must be possible."""
        positions: dict[Key, set[int]] = {}
        for change in changes:
            positions.setdefault(change.key, set()).add(change.position)
        special = positions.keys() & _SPECIAL
        documents: dict[Key, Document] = {}
        whole = set()
        for key in positions.keys() - special:
            if WHOLE in positions[key] or len(positions[key]) == len(self.by_key[key].differences):
                whole.add(key)
                continue
            document = self._revert_fields(key, frozenset(positions[key]))
            assert document is not None, "the changes can be taken back"
            documents[key] = document
        source = self._restore(whole, documents)
        before = self.before
        if SETTINGS in special:
            source = source._replace(config=before.config)
        if READ_ORDER in special:
            source = source._replace(catalog=source.catalog._replace(read_order=before.catalog.read_order))
        if RELEASES in special:
            source = source._replace(releases=before.releases)
        if OBSERVATIONS in special:
            source = source._replace(observations={**self.after.observations, **before.observations})
        if TIME in special:
            source = source._replace(source_time=before.source_time, now=before.now)
        return source

    def removes(self, key: Key) -> bool:
        """Return whether only the earlier input has a document."""
        return key in self.by_key and self.by_key[key].after is None

    def list_removed_clusters(self) -> set[str]:
        """Return the names of the clusters of which the later input has no document any more."""
        kinds = index_cluster_kinds()
        removed = ((key[:2], change.before) for key, change in self.by_key.items() if change.after is None)
        return {kinds[kind].read_location(before).name for kind, before in removed if kind in kinds and before is not None}

    def list_earlier_availability(self) -> dict[str, bool]:
        """Return whether clusters were available in the earlier input, of those whose documents changed."""
        kinds, found = index_cluster_kinds(), dict[str, bool]()
        for key, change in self.by_key.items():
            if key[:2] in kinds and change.before is not None:
                topology = kinds[key[:2]]
                name = topology.read_location(change.before).name
                found[name] = found.get(name, True) and is_available(topology, change.before)
        return found

    def list_relabelled(self, key: Key) -> list[Change]:
        """Return the changes of clusters because of which a workload goes elsewhere whose variants are built as before; [] if none are."""
        change = self.by_key[key]
        if change.text != _BUILT_DIFFERENTLY or change.after is None or change.difference is not None:
            return []
        before, after = (state.find(key).variants for state in self._states)
        return [Change(*field) for field in list_relabelled(change.after, (before, after), self._changed_clusters)]

    @cached_property
    def _changed_clusters(self) -> list[tuple[str, Key, tuple[FieldDifference, ...]]]:
        """The clusters that both inputs have and that differ: the name, the key of the document, and its fields."""
        kinds = index_cluster_kinds()
        return [
            (kinds[key[:2]].read_location(one.after).name, key, one.differences)
            for key, one in self.by_key.items()
            if key[:2] in kinds and one.before is not None and one.after is not None
        ]

    def list_changes(self, key: Key) -> frozenset[Change]:
        """Return the smallest changes of a document; none if it has not changed."""
        return frozenset(self.by_key[key].changes) if key in self.by_key else frozenset()

    def is_possible(self, changes: frozenset[Change]) -> bool:
        """Return whether all of these changes exist and can be taken back."""
        if changes not in self._possible:
            self._possible[changes] = self._check_possible(changes)
        return self._possible[changes]

    def _check_possible(self, changes: Iterable[Change]) -> bool:
        positions: dict[Key, set[int]] = {}
        for change in changes:
            positions.setdefault(change.key, set()).add(change.position)
        return all(
            key in _SPECIAL or (key in self.by_key and self._has_possible(self.by_key[key], found))
            for key, found in positions.items()
        )

    def _has_possible(self, document: DocumentChange, positions: set[int]) -> bool:
        if WHOLE in positions or not document.differences:
            return not document.differences and positions == {WHOLE}
        count = len(document.differences)
        return max(positions) < count and (
            len(positions) == count or self._revert_fields(document.key, frozenset(positions)) is not None
        )

    def _revert_fields(self, key: Key, positions: frozenset[int]) -> Document | None:
        found = self._reverted.get((key, positions))
        if found is None and (key, positions) not in self._reverted:
            change = self.by_key[key]
            assert change.after is not None, "a document without a later version has no field differences"
            result = validate_document(revert_fields(change.after.body, change.differences, positions))
            if not any(issue.severity == "error" for issue in result.issues):
                found = change.after._replace(body=result.body)
            self._reverted[key, positions] = found
        return found

    def _restore(self, whole: Collection[Key], documents: Mapping[Key, Document]) -> DecisionInput:
        """Return the later input with the earlier state of some documents, and with `documents` in place of others."""
        source, catalog = self.after, self.after.catalog
        states = {key: self._states[0].find(key) for key in whole}
        states |= {key: self._states[1].find(key)._replace(document=document) for key, document in documents.items()}
        listed = [key for key in states if not is_template(*key[:2], reserved_groups)]
        catalog = catalog._replace(
            templates=_replace_templates(catalog.templates, {key: states[key].document for key in states.keys() - set(listed)}),
            api_documents=_replace_documents(catalog.api_documents, {key: states[key].document for key in listed}),
            broken=_replace(catalog.broken, {key: state.broken for key, state in states.items()}),
            duplicate_templates=_replace(
                catalog.duplicate_templates, {key: states[key].copies for key in states.keys() - set(listed)}
            ),
            duplicate_api_documents=_replace(catalog.duplicate_api_documents, {key: states[key].copies for key in listed}),
            read_order=self._order(states),
        )
        source = source._replace(catalog=catalog)
        if whole and source.tenancy is not None and self.before.tenancy is not None:
            source = source._replace(tenancy=source.tenancy.with_owners_of(self.before.tenancy, whole))
        if self.before.parts or source.parts:
            parts = {document.key: (document, part) for document, part in source.parts}
            source = source._replace(parts=tuple(_replace(parts, {key: state.part for key, state in states.items()}).values()))
        if self.before.variants or source.variants:
            source = source._replace(variants=_replace(source.variants, {key: state.variants for key, state in states.items()}))
        if any(key[:2] == _CONFIG for key in states) and self._settings_read:
            config = parse_document_settings(catalog)
            source = source._replace(config=config if config is not None else self.before.config)
        return source

    def _order(self, states: Mapping[Key, _DocumentState]) -> tuple[Key, ...]:
        """Return the later order of documents with those that are restored, after the document that they followed before."""
        order = self.after.catalog.read_order
        missing = {key for key, state in states.items() if state.document is not None} - self._states[1].keys
        if not missing:
            return order
        following: dict[Key | None, list[Key]] = {}
        last: Key | None = None
        known = set(order)
        for key in self.before.catalog.read_order:
            if key in missing:
                following.setdefault(last, []).append(key)
            elif key in known:
                last = key
        restored = following.get(None, [])
        for key in order:
            restored += (key, *following.get(key, ()))
        return tuple(restored)


def parse_document_settings(catalog: Catalog) -> Any:
    """Return the settings that the Config of a catalog has, the defaults without one; None if that is not valid."""
    documents = catalog.api_documents.get(_CONFIG, ())
    try:
        return parse_config((documents[0].body.get("spec") or {}) if documents else {})
    except ValueError:
        return None


class _InputIndex:
    """Finds the state of each identity in one input."""

    def __init__(self, source: DecisionInput) -> None:
        catalog = source.catalog
        self._variants = source.variants
        self._documents: dict[Key, Document] = {**catalog.api_documents_by_key, **catalog.templates}
        self._broken = catalog.broken
        self._copies = {**catalog.duplicate_templates, **catalog.duplicate_api_documents}
        self._parts = {document.key: (document, part) for document, part in source.parts}
        self.keys = {*self._documents, *self._broken, *self._copies, *self._parts, *self._variants}

    def find(self, key: Key) -> _DocumentState:
        return _DocumentState(
            self._documents.get(key),
            self._broken.get(key),
            self._copies.get(key, ()),
            self._parts.get(key),
            self._variants.get(key),
        )


def _compare_states(key: Key, before: _DocumentState, after: _DocumentState) -> DocumentChange:
    old, new = before.document, after.document
    differences: list[FieldDifference] = []
    text = _describe_states(before, after)
    if text == _BUILT_DIFFERENTLY and old is not None and new is not None:
        own = list_field_differences(old.body, new.body, 1)
        if own:
            return DocumentChange(key, old, new, (), text, own[0])
        text, built = _compare_variants(before.variants, after.variants)
        return DocumentChange(key, old, new, (), text, built=built)
    if not text and old is not None and new is not None:
        differences = list_field_differences(old.body, new.body, MAX_FIELDS + 1)
        text = f"more than {MAX_FIELDS} fields changed" if len(differences) > MAX_FIELDS else "changed"
    differences = [] if len(differences) > MAX_FIELDS else differences
    return DocumentChange(key, _find_any(before), _find_any(after), tuple(differences), text)


def _describe_states(before: _DocumentState, after: _DocumentState) -> str:
    """Return what happened to a document as a whole; "" if only its fields changed."""
    old, new = _find_any(before), _find_any(after)
    if old is None or new is None:
        return "added" if old is None else "removed"
    if bool(before.copies) != bool(after.copies):
        return "defined more than once" if after.copies else "no longer defined more than once"
    if (before.broken is None) != (after.broken is None):
        return "broken" if after.broken else "no longer broken"
    if (before.part is None) != (after.part is None):
        return "built by a kustomization or chart" if after.part else "no longer built by a kustomization or chart"
    if before._replace(document=None).content != after._replace(document=None).content:
        return _BUILT_DIFFERENTLY if before.variants != after.variants else "changed"
    return ""


def _pair_variants(before: WorkloadVariants | None, after: WorkloadVariants | None) -> Iterator[tuple[Variant, Variant]]:
    """Yield the variants of each directory before and after: those that are built alike, as of a chart with the same files of values, and
    the others in their order."""
    sides = [list(found.variants) if found is not None else [] for found in (before, after)]
    for identify in (lambda one: (one.path, one.details, one.values), lambda one: (one.path, one.details), lambda one: one.path):
        later: dict[object, list[Variant]] = {}
        for one in sides[1]:
            later.setdefault(identify(one), []).append(one)
        left = []
        for one in sides[0]:
            if others := later.get(identify(one)):
                yield one, others.pop(0)
            else:
                left.append(one)
        sides = [left, [one for found in later.values() for one in found]]


def _compare_variants(before: WorkloadVariants | None, after: WorkloadVariants | None) -> tuple[str, BuildInput]:
    """Return what differs in the objects of the variants, replicas first, and of what the variants with differences are built."""
    found: list[tuple[bool, str, tuple[str, ...]]] = []
    files: set[str] = set()
    for old, new in _pair_variants(before, after):
        objects = [{one.key: one for one in variant.objects} for variant in (old, new)]
        changes = [
            change
            for key in sorted(objects[0].keys() | objects[1].keys())
            for change in _compare_objects(key, *(each.get(key) for each in objects))
        ]
        if changes:
            found += changes
            files.update(*(one.source.files for one in (old, new) if one.source is not None))
    if not found:
        return _BUILT_DIFFERENTLY, BuildInput()
    _, text, words = min(found, key=lambda change: change[0])
    more = len(dict.fromkeys(text for _, text, _ in found)) - 1
    others = f" and {format_count(more, 'more change')}" if more else ""
    return f"{_BUILT_DIFFERENTLY}: {text}{others}", BuildInput(frozenset(files), words)


def _compare_objects(key: Key, before: Document | None, after: Document | None) -> Iterator[tuple[bool, str, tuple[str, ...]]]:
    """Yield what differs in an object, whether that is no number of replicas, and the words that a line with the change may have."""
    if before is None or after is None:
        yield False, f"{key.title} {'added' if before is None else 'removed'}", (key.name,)
        return
    for one in list_field_differences(before.body, after.body, MAX_FIELDS):
        yield one.pointer[-1] != "replicas", f"{key.title}: {one.text}", (key.name, *one.change.after.split(" ")[:1])


def _find_any(state: _DocumentState) -> Document | None:
    return state.document or state.broken or next(iter(state.copies), None) or (state.part[0] if state.part else None)


def _replace(entries: Mapping[Key, Any], changes: Mapping[Key, Any]) -> Mapping[Key, Any]:
    """Return entries with changed ones; an empty one is removed."""
    if all(entries.get(key) == value or (not value and key not in entries) for key, value in changes.items()):
        return entries
    return {key: value for key, value in {**entries, **changes}.items() if value}


def _replace_templates(templates: Mapping[Key, Document], changes: Mapping[Key, Document | None]) -> Mapping[Key, Document]:
    """Return templates in the order of namespace and name with changed ones, without removed ones."""
    if not changes:
        return templates
    found = {key: document for key, document in {**templates, **changes}.items() if document is not None}
    if changes.keys() <= templates.keys():
        return found
    return dict(sorted(found.items(), key=lambda entry: (entry[0].namespace, entry[0].name, entry[0])))


def _replace_documents(
    documents: Mapping[tuple[str, str], tuple[Document, ...]], changes: Mapping[Key, Document | None]
) -> Mapping[tuple[str, str], tuple[Document, ...]]:
    """Return the documents of policy APIs with changed ones, without removed ones."""
    replaced = dict(documents)
    for kind in {(key.group, key.kind) for key in changes}:
        kept: dict[Key, Document | None] = {document.key: document for document in replaced.get(kind, ())}
        kept |= {key: document for key, document in changes.items() if key[:2] == kind}
        replaced[kind] = tuple(document for _, document in sorted(kept.items()) if document is not None)
    return {kind: found for kind, found in replaced.items() if found}
