"""Find labels and regions of single clusters that are probably misspelled: selectors name nearly the same key or value, which the cluster
lacks; entered only for sources with selectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.topology import CLUSTER
from gitsched.decide.registry import policy_apis
from gitsched.manifests.choices import Choice
from gitsched.model.document import Body, Document, Key, read_labels
from gitsched.model.finding import Finding, Pointer, choose_form, format_names, locate_document, locate_field
from gitsched.model.labels import Selector, parse_selector
from gitsched.named_tuples import NamedTuple

MISSPELLED_CODE = "cluster-label-misspelled"
_MAX_COMPARED = 20_000
"""Pairs of a label of a cluster and one of a selector that are compared in a plan; further labels are not checked."""
_MIN_WORD, _MIN_CHANGED = 3, 5
"""Letters of the shortest word with a misspelling, and with a letter instead of another one: `eu` and `us` are two values."""
_FIELDS = ("provider", "region", "zone")


class _Reader(NamedTuple):
    """A selector for clusters, of labels or of fields such as the region, in a document."""

    document: Document
    chosen: str
    selector: Selector


class _Property(NamedTuple):
    """A label of a cluster, or a field such as its region (`chosen` is "cluster-fields")."""

    chosen: str
    key: str
    value: str

    @property
    def pointer(self) -> Pointer:
        return ("metadata", "labels", self.key) if self.chosen == "clusters" else ("spec", self.key)


def list_misspelled(
    documents: Mapping[tuple[str, str], Iterable[Document]],
    choosing: Mapping[tuple[str, str], Iterable[tuple[Document, Iterable[Choice]]]],
    broken: Iterable[Key],
) -> Iterator[Finding]:
    """Yield a warning for each label, region, zone and provider of one cluster that is probably misspelled.

    `choosing` are the documents with selectors; those of an API are compared with its clusters, others with all. An API with a broken
    cluster is left out, because its labels are unknown.
    """
    broken_kinds = {key[:2] for key in broken}
    apis = [api for api in policy_apis.values() if api.topology is not None and api.topology.level == CLUSTER]
    known_groups = {group for api in policy_apis.values() for group in api.groups}
    for api in apis:
        assert api.topology is not None
        kind = (api.topology.group, api.topology.kind)
        clusters = sorted(documents.get(kind, ()), key=lambda one: one.key)
        if len(clusters) < 2 or kind in broken_kinds:
            continue
        readers = [
            _Reader(document, choice.chosen, selector)
            for (group, _), entries in choosing.items()
            if group in api.groups or group not in known_groups
            for document, choices in entries
            for choice in choices
            if choice.chosen in ("clusters", "cluster-fields") and (selector := parse_selector(choice.value)) is not None
        ]
        if readers:
            yield from _ClusterLabels(clusters, readers).find()


class _ClusterLabels:
    """Compares what single clusters have with what selectors name."""

    def __init__(self, clusters: list[Document], readers: list[_Reader]) -> None:
        self._readers = readers
        self._properties = [(cluster, list(_list_properties(cluster.body))) for cluster in clusters]
        every = [one for _, listed in self._properties for one in listed]
        self._counts, self._keys = Counter(every), Counter(one[:2] for one in every)
        self._named: dict[tuple[str, str], set[str]] = {}
        for reader in readers:
            for requirement in reader.selector.requirements:
                self._named.setdefault((reader.chosen, requirement.key), set()).update(requirement.values)
        self._compared = 0

    def find(self) -> Iterator[Finding]:
        for cluster, listed in self._properties:
            owned = {one[:2] for one in listed}
            for found in listed:
                if self._counts[found] > 1:
                    continue
                for meant in self._list_meant(found, owned):
                    affected = self._list_affected(listed, found, meant)
                    if affected:
                        yield _make_finding(cluster, found, meant, affected)
                        break

    def _list_meant(self, found: _Property, owned: set[tuple[str, str]]) -> Iterator[_Property]:
        """Yield what a property that no other cluster has may be meant to be: one that selectors name and other clusters have."""
        chosen, key, value = found
        named = self._named.get((chosen, key))
        if named is None:
            if chosen == "clusters" and self._keys[chosen, key] == 1:
                keys = (one for group, one in sorted(self._named) if group == chosen and self._keys[chosen, one])
                yield from (_Property(chosen, one, value) for one in keys if (chosen, one) not in owned and self._is_near(key, one))
        elif value not in named:
            values = (_Property(chosen, key, one) for one in sorted(named))
            yield from (one for one in values if self._counts[one] and self._is_near(value, one.value, may_be_short=True))

    def _is_near(self, written: str, meant: str, *, may_be_short: bool = False) -> bool:
        self._compared += 1
        return self._compared <= _MAX_COMPARED and is_misspelling(written, meant, may_be_short=may_be_short)

    def _list_affected(self, listed: list[_Property], found: _Property, meant: _Property) -> list[tuple[Document, bool]]:
        """Return the documents whose selectors match the cluster otherwise as it is than as it is meant, and whether they match it."""
        now = {one.key: one.value for one in listed if one.chosen == found.chosen}
        corrected = {key: value for key, value in now.items() if key != found.key} | {meant.key: meant.value}
        matched = {
            reader.document.key: (reader.document, reader.selector.matches(now))
            for reader in self._readers
            if reader.chosen == found.chosen and reader.selector.matches(now) != reader.selector.matches(corrected)
        }
        return [matched[key] for key in sorted(matched)]


def _list_properties(body: Body) -> Iterator[_Property]:
    for key, value in read_labels(body).items():
        yield _Property("clusters", key, value)
    spec = body.get("spec") or {}
    for key in _FIELDS:
        field = spec.get(key)
        if field and isinstance(field, str):
            yield _Property("cluster-fields", key, field)


def _make_finding(cluster: Document, found: _Property, meant: _Property, affected: list[tuple[Document, bool]]) -> Finding:
    if found.key != meant.key:
        text = f"only this cluster has the label {found.key}, and no selector names it; did you mean {meant.key}?"
    else:
        text = f"only this cluster has {found.key}={found.value}, and no selector names it; did you mean {meant.value}?"
    consequences = []
    for verb, plural, is_matched in (("does not select it", "do not select it", False), ("selects it", "select it", True)):
        places = [(one.key.title, locate_document(one)) for one, is_in in affected if is_in is is_matched]
        names = [f"{title} ({place.text})" if place is not None else title for title, place in places]
        if names:
            consequences.append(f"{format_names(names, 2)} {choose_form(len(names), verb, plural)}")
    message = f"{cluster.key.title}: {text} As it is, {' and '.join(consequences)}"
    field = locate_field(cluster.origin, found.pointer)
    return Finding("warning", MISSPELLED_CODE, message, locate_document(cluster), cluster.key.resource, field)


def is_misspelling(written: str, meant: str, *, may_be_short: bool = False) -> bool:
    """Return whether a name is another one with one letter missing, added, changed or exchanged with the next, or with other cases of
    letters; with `may_be_short` also one whose last letters are left out, such as prod for production.

    Names that differ in a number or in a word of one or two letters are two names.
    """
    one, other = written.lower(), meant.lower()
    if one == other:
        return written != meant
    if may_be_short and len(one) >= _MIN_WORD and one.isalpha() and other.isalpha() and other.startswith(one):
        return True
    if abs(len(one) - len(other)) > 1:
        return False
    start = next(
        (index for index, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), min(len(one), len(other))
    )
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    if not (left + right).isalpha() or _measure_word(other, start, len(other) - end) < _MIN_WORD:
        return False
    if len(left) == len(right) == 1:
        return _measure_word(other, start, len(other) - end) >= _MIN_CHANGED
    return len(left) + len(right) == 1 or (len(left) == 2 and left == right[::-1])


def _measure_word(name: str, start: int, end: int) -> int:
    """Return the number of letters of the word of a name around a part of it."""
    while start > 0 and name[start - 1].isalpha():
        start -= 1
    while end < len(name) and name[end].isalpha():
        end += 1
    return end - start
