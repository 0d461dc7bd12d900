"""Find selectors that Kubernetes refuses, and labels, fields, claims and names in selectors for clusters that no cluster of the source
has, and suggest those that are meant; entered only for sources with selectors, variants or several APIs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from gitsched.apis.gitsched.config import FILE
from gitsched.apis.policy_api import PolicyAPI, PolicyEngine
from gitsched.apis.topology import CLUSTER, Topology
from gitsched.decide.misspelled_labels import list_misspelled
from gitsched.decide.registry import policy_apis
from gitsched.decide.validation import list_document_choices
from gitsched.manifests.choices import Choice
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, Location, Pointer, format_count, locate_document, locate_field
from gitsched.model.known_values import describe_unknown_key, describe_unknown_value, find_near, list_values
from gitsched.model.labels import describe_invalid_expression
from gitsched.named_tuples import NamedTuple

UNMATCHED_CODE = "selector-unmatched"
INVALID_CODE = "selector-invalid"
_LABEL_CHOICES = ("clusters", "cluster-claims", "workloads")
_MAX_LOOKUPS = 100
"""Values of a source that are compared with all existing ones."""


class ClusterVocabulary(NamedTuple):
    """The labels, fields and claims of some clusters, each with its values, and the names of the clusters."""

    labels: dict[str, set[str]]
    fields: dict[str, set[str]]
    claims: dict[str, set[str]]
    names: set[str]

    def add(self, topology: Topology, document: Document) -> None:
        """Add the values of a cluster."""
        metadata, location = document.body.get("metadata") or {}, topology.read_location(document)
        self.names.add(document.key.name)
        for name, value in (metadata.get("labels") or {}).items():
            self.labels.setdefault(str(name), set()).add(str(value))
        for name, values in (("provider", (location.provider,)), ("region", (location.region,)), ("zone", location.zones)):
            self.fields.setdefault(name, set()).update(filter(None, values))
        for name, value in topology.read_claims(document.body).items():
            self.claims.setdefault(name, set()).add(value)


_ChoosingDocuments = Mapping[tuple[str, str], list[tuple[Document, tuple[Choice, ...]]]]
"""The documents that choose something, by (group, kind) in order, with what they choose."""


class _Requirement(NamedTuple):
    """One condition of a selector, with the place of its key and of its values."""

    key: str
    operator: str
    values: tuple[str, ...]
    key_at: Pointer
    values_at: Pointer


def list_unmatched(
    documents: Mapping[tuple[str, str], Iterable[Document]],
    broken: Iterable[Key],
    found: Iterable[Finding],
    engines: Iterable[PolicyEngine],
) -> Iterator[Finding]:
    """Yield a warning for each invalid selector, for each value in selectors that no cluster has, for each misspelled label of a cluster,
    and for each cluster that settings name and that has nearly the name of another one.

    `documents` are those of policy APIs and the Bundles, by kind, `broken` the keys of broken ones; `found` are the other findings.
    """
    choosing = _list_choosing(documents)
    found, broken = tuple(found), tuple(broken)
    named = {finding.resource for finding in found if finding.resource and finding.code.endswith("-cluster-unknown")}
    refused = {finding.resource for finding in found if finding.resource and finding.severity == "error"}
    yield from _list_invalid(choosing, refused)
    yield from UnmatchedSelectors(documents, broken).find(choosing, frozenset(named))
    yield from list_misspelled(documents, choosing, broken)
    yield from _list_similar_clusters(engines)


def _list_choosing(documents: Mapping[tuple[str, str], Iterable[Document]]) -> _ChoosingDocuments:
    """Return the documents with selectors and names, by kind."""
    return {
        kind: [(document, choices) for document in entries if (choices := tuple(list_document_choices(document.body)))]
        for kind, entries in sorted(documents.items())
    }


def _list_invalid(documents: _ChoosingDocuments, refused: Container[tuple[str, str, str]]) -> Iterator[Finding]:
    """Yield a warning for each selector that matches nothing since it is invalid. Documents that are `refused` have an error."""
    for document, choices in (pair for entries in documents.values() for pair in entries):
        for choice in choices if document.key.resource not in refused else ():
            wrong = describe_invalid_expression(choice.value) if choice.chosen in _LABEL_CHOICES else None
            if wrong is not None:
                at, message = wrong
                text = f"{document.key.title}: the selector matches nothing: {message}"
                yield _make_finding(document, INVALID_CODE, text, (*choice.pointer, *at))


def _make_finding(document: Document, code: str, message: str, pointer: Pointer) -> Finding:
    field = locate_field(document.origin, pointer)
    return Finding("warning", code, message, locate_document(document), document.key.resource, field)


def _list_similar_clusters(engines: Iterable[PolicyEngine]) -> Iterator[Finding]:
    """Yield a warning for each cluster that only settings of an API name, if that of another API has a similar name."""
    described: set[str] = set()
    named: list[tuple[str, str]] = []
    for engine in engines:
        api = policy_apis.get(engine.name)
        if api is not None and api.topology is not None and api.topology.level == CLUSTER:
            described.update(engine.clusters())
        else:
            named += ((engine.name, name) for name in engine.clusters())
    unknown = [(api_name, name) for api_name, name in named if name not in described]
    for api_name, name in unknown[:_MAX_LOOKUPS]:
        near = find_near(name, described)
        if near:
            message = f"the settings of {api_name} name the cluster {name}, which has no document; did you mean {near}?"
            yield Finding("warning", UNMATCHED_CODE, message, Location(FILE, 1, 1))


class UnmatchedSelectors:
    """Compares the selectors of documents with the clusters of the API that reads them, else with those of all APIs."""

    def __init__(self, documents: Mapping[tuple[str, str], Iterable[Document]], broken: Iterable[Key]) -> None:
        self._documents, self._broken = documents, frozenset(key[:2] for key in broken)
        self._lookups = 0

    def find(self, choosing: _ChoosingDocuments, reported: frozenset[tuple[str, str, str] | None]) -> Iterator[Finding]:
        """Yield a warning for each value that no cluster has. The names of clusters of `reported` documents are skipped."""
        by_group = {group: api for api in policy_apis.values() for group in api.groups}
        collected: dict[str, ClusterVocabulary | None] = {}
        for (group, _), documents in choosing.items():
            if not documents:
                continue
            api = by_group.get(group)
            name = api.name if api is not None else ""
            if name not in collected:
                collected[name] = self._collect([api] if api is not None else policy_apis.values())
            known = collected[name]
            if known is None or not known.names:
                continue
            for document, choices in documents:
                for choice in choices:
                    if choice.chosen == "cluster-names" and document.key.resource in reported:
                        continue
                    for pointer, message in self._check(choice, known, names_all=group in by_group):
                        yield _make_finding(document, UNMATCHED_CODE, f"{document.key.title}: {message}", pointer)
        if self._lookups > _MAX_LOOKUPS:
            count = format_count(self._lookups - _MAX_LOOKUPS, "further value")
            message = f"{count} in selectors that no cluster has can be misspelt: correct the reported ones first"
            yield Finding("info", UNMATCHED_CODE, message)

    def _collect(self, apis: Iterable[PolicyAPI]) -> ClusterVocabulary | None:
        """Return the values of the clusters of some APIs; None if a cluster is broken, so that its values are unknown."""
        known = ClusterVocabulary({}, {}, {}, set())
        for topology in (api.topology for api in apis):
            if topology is None or topology.level != CLUSTER:
                continue
            if (topology.group, topology.kind) in self._broken:
                return None
            for document in self._documents.get((topology.group, topology.kind), ()):
                known.add(topology, document)
        return known

    def _check(self, choice: Choice, known: ClusterVocabulary, *, names_all: bool) -> Iterator[tuple[Pointer, str]]:
        """Yield the place of each value that no cluster has, and what is wrong with it.

        Bundles have a finding of their own for a list of names that are all unknown; `names_all` reports it for other documents.
        """
        pointer, value, chosen = choice
        if chosen == "cluster-names":
            all_unknown = names_all and pointer[-1] != "exclude" and known.names.isdisjoint(value)
            for index, name in enumerate(value):
                near = "" if name in known.names else self._find_near(str(name), known.names, value)
                if near:
                    yield (*pointer, index), f"no cluster has the name {name}; did you mean {near}?"
                elif all_unknown:
                    yield (*pointer, index), f"no cluster has the name {name}; there are {list_values(known.names)}"
            return
        noun, values = {
            "clusters": ("label", known.labels),
            "cluster-fields": ("field", known.fields),
            "cluster-claims": ("claim", known.claims),
        }.get(chosen, ("", {}))
        if not noun or (chosen == "cluster-claims" and not values):
            return
        for requirement in _list_requirements(pointer, value):
            found = self._describe(noun, requirement, values)
            if found is not None:
                yield found

    def _describe(self, noun: str, requirement: _Requirement, known: Mapping[str, set[str]]) -> tuple[Pointer, str] | None:
        """Return the place and description of a condition that probably does not mean what it says; None for any other."""
        key, operator, wanted, key_at, values_at = requirement
        must_exist = operator in ("In", "Exists")
        present = known.get(key)
        if not present:
            used = {name: values for name, values in known.items() if values}
            near = self._find_near(key, used, ())
            cure = f": set the {key} of the clusters that are meant" if noun == "field" and not used else ""
            return (key_at, describe_unknown_key("cluster", noun, key, used, near) + cure) if near or must_exist else None
        missing = [value for value in wanted if value not in present]
        for value in missing:
            near = self._find_near(value, present, wanted)
            if near:
                return values_at, describe_unknown_value("cluster", key, (value,), present, near)
        if must_exist and wanted and len(missing) == len(wanted):
            return values_at, describe_unknown_value("cluster", key, wanted, present)
        return None

    def _find_near(self, name: str, known: Iterable[str], others: Iterable[str]) -> str:
        self._lookups += 1
        return find_near(name, known, others) if self._lookups <= _MAX_LOOKUPS else ""


def _list_requirements(pointer: Pointer, selector: Mapping[str, Any]) -> Iterator[_Requirement]:
    for key, value in (selector.get("matchLabels") or {}).items():
        place = (*pointer, "matchLabels", key)
        yield _Requirement(key, "In", (str(value),), place, place)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        place = (*pointer, "matchExpressions", index)
        values = tuple(str(value) for value in expression.get("values") or ())
        yield _Requirement(str(expression.get("key")), str(expression.get("operator")), values, (*place, "key"), (*place, "values"))
