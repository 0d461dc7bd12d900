"""The verdict of a JSON Schema (draft 2020-12): a compiled validator says whether, jsonschema says what, for what failed only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gitsched.manifests.prune import Pruner
from gitsched.model.document import UNVERSIONED, Body
from gitsched.model.issue import Issue, Verdict

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

SchemaKey = tuple[str, str, str]
"""Group ("" for the core), version, kind."""

_SILENT = frozenset(("Role", "RoleBinding", "ManifestWork"))
"""Kinds that have nothing to do with placement, in groups that are read, and whose names are close to others."""


class _Kind:
    """The validators of one kind, of its very schema and of documents that have nothing unknown either."""

    def __init__(self, schema: Body) -> None:
        self.schema = schema
        self.pruner = Pruner(schema)
        self.exact = _compile(self.pruner.close())

    @cached_property
    def plain(self) -> Draft202012Validator:
        return _compile(self.schema)


class Schemas:
    """Schemas by kind; each is compiled when the first document of its kind arrives.

    A schema refers to nothing outside itself: any `$ref` but `#` and `#/...` is a ValueError, and nothing is ever fetched.
    """

    __slots__ = ("_compiled", "_groups", "_kinds", "_mapping", "_versions")

    def __init__(self, mapping: Mapping[SchemaKey, Body]) -> None:
        self._mapping = mapping
        self._versions: dict[tuple[str, str], list[str]] = {}
        self._groups: dict[str, list[str]] = {}
        self._kinds: dict[str, list[str]] = {}
        for group, version, kind in sorted(mapping, reverse=True):
            self._versions.setdefault((group, kind), []).append(f"{group}/{version}")
            self._groups.setdefault(kind, []).append(group)
            self._kinds.setdefault(group, []).append(kind)
        self._compiled: dict[SchemaKey, _Kind] = {}

    def check(self, body: Body, written: Body | None = None) -> Verdict:
        """The document without unknown fields, and what its schema says about it; nothing for a kind without a schema.

        `written` is the document as it stands in its file, where `body` is what defaults made of it. Empty members may have vanished on
        the way; those that could not have been what they stand for are told, too.
        """
        key = key_of(body)
        entry = self._compiled.get(key) or self._open(key)
        if entry is None:
            return Verdict(body, self._doubt_api(key) if body.get("api") and not body.get("apiVersion") else self._doubt(key))
        pruned, issues, is_valid = body, list[Issue](), entry.exact.is_valid(body)
        if not is_valid:
            pruned, issues = entry.pruner.prune(body)
            is_valid = entry.plain.is_valid(pruned)
        if not is_valid:
            from gitsched.manifests.explain import explain  # costs 100 ms, and most runs have nothing to explain

            issues = [*issues, *explain(pruned, entry.schema, entry.plain)]
        elif written is not None and not entry.plain.is_valid(written):
            from gitsched.manifests.explain import explain

            told = explain(written, entry.schema, entry.plain)
            issues = [*issues, *(issue for issue in told if issue.code == "wrong-type" and _is_empty(written, issue.pointer))]
        return Verdict(pruned, tuple(issues))

    def _doubt(self, key: SchemaKey) -> tuple[Issue, ...]:
        """What to say about a kind without a schema: where it is nearly one that has a schema, it is a slip of the pen."""
        group, version, kind = key
        versions = self._versions.get((group, kind))
        if versions is not None:
            message = f"{kind} is read as {' or '.join(versions)}, not as {group}/{version}"
            return (Issue("error", "unknown-version", message, ("apiVersion",)),)
        if kind in self._groups:
            meant = _find_group(group, version, self._groups[kind])
            return _doubt_group(group, version, kind, self._versions[meant, kind]) if meant else ()
        kinds = self._kinds.get(group)
        if kinds is None or kind in _SILENT:
            return ()
        from difflib import get_close_matches  # rarely needed

        # All of Krake's kinds are known. Other groups have kinds that have nothing to do with placement.
        near = get_close_matches(kind[:100], kinds, n=1, cutoff=0.6 if version == "krake" else 0.8)
        if not near and version != "krake":
            return ()
        hint = f"; did you mean {near[0]}?" if near else ""
        return (Issue("warning", "unknown-kind", f"there is no kind {kind[:60]!r} in {group}: it is not read{hint}", ("kind",)),)

    def _doubt_api(self, key: SchemaKey) -> tuple[Issue, ...]:
        """The same about a document with `api`, as only Krake's have it."""
        _, version, kind = key
        if version == "krake":
            return self._doubt(key)
        known = [group for group in self._groups.get(kind, ()) if group in UNVERSIONED]
        if not known:
            return ()
        message = f"{kind} of the api {version[:60]!r} is not read; did you mean {known[0]}?"
        return (Issue("warning", "unknown-kind", message, ("api",)),)

    def _open(self, key: SchemaKey) -> _Kind | None:
        schema = self._mapping.get(key)
        if schema is None:
            return None
        for reference in _references(schema):
            if not (isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))):
                raise ValueError(f"the schema of {key[2]} refers to {reference!r}, which is outside of it")
        entry = self._compiled[key] = _Kind(schema)
        return entry


def _compile(schema: Body) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator  # not every command validates

    return Draft202012Validator(schema, retriever=_refuse)


def _find_group(group: str, version: str, known: list[str]) -> str | None:
    """The group of a kind that one is spelt nearly like, or that stands where the version should; None where there is none."""
    if not group and version in known:
        return version
    from difflib import get_close_matches  # rarely needed

    return next(iter(get_close_matches(group[:100], known, n=1, cutoff=0.9)), None)


def _doubt_group(group: str, version: str, kind: str, known: list[str]) -> tuple[Issue, ...]:
    written = f"{group}/{version}" if group else version
    message = f"{kind} of {written[:100]!r} is not read; did you mean {' or '.join(known)}?"
    return (Issue("warning", "unknown-kind", message, ("apiVersion",)),)


def _is_empty(body: Any, pointer: Iterable[str | int]) -> bool:
    """Whether there is an empty text or list at a place of the document."""
    for part in pointer:
        body = body[part]
    return body in ("", [])


def key_of(body: Body) -> SchemaKey:
    """Group, version and kind of a document; "" where it does not say. Krake's `api` has no version: `krake` stands for it."""
    text = str(body.get("apiVersion") or body.get("api") or "")
    group, _, version = text.rpartition("/")
    if version in UNVERSIONED and not group:
        group, version = version, "krake"
    return group, version, str(body.get("kind") or "")


def _references(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name in ("$ref", "$dynamicRef"):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _refuse(address: str) -> Any:
    raise ValueError(f"schemas are never fetched: {address}")
