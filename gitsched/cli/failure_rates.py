"""Read the file of --rates: how often clusters, zones and others fail, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from gitsched.manifests.field_locations import FieldLocator
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.yaml_composer import YamlDocument, check_aliases, compose_documents, decode_text
from gitsched.manifests.yaml_nodes import Constructor
from gitsched.model.finding import Pointer
from gitsched.model.losses import HOURS_PER_YEAR, CommonCause

MAX_SIZE = 1_000_000
KINDS = ("cluster", "zone", "region", "provider")
_FIELDS = {"each", "label", "perYear", "hours", "names", "matchLabels"}


class _RatesReader:
    def __init__(self, path: Path) -> None:
        self._path, self._data = path, b""

    def read(self) -> tuple[CommonCause, ...]:
        body = self._parse()
        causes = body.get("failures") if isinstance(body, dict) else None
        if not isinstance(causes, list) or not causes:
            raise self._fail((), "expected a list `failures` with entries such as {each: cluster, perYear: 4, hours: 2}")
        unknown = sorted(str(name) for name in body if name != "failures")
        if unknown:
            raise self._fail((unknown[0],), f"unknown field {unknown[0]!r}; the file has `failures` alone")
        return tuple(self._read_cause(("failures", index), entry) for index, entry in enumerate(causes))

    def _parse(self) -> Any:
        try:
            with self._path.open("rb") as file:
                self._data = file.read(MAX_SIZE + 1)
        except OSError as error:
            raise click.UsageError(f"the rates are not readable: {self._path}: {error.strerror}") from error
        if len(self._data) > MAX_SIZE:
            raise click.UsageError(f"the rates are not read: {self._path} has more than {MAX_SIZE:,} bytes")
        text = decode_text(self._data)
        trees = list(compose_documents(text, DEFAULT_LIMITS)) if isinstance(text, str) else [text]
        if len(trees) != 1:
            raise click.UsageError(f"{self._path} has {len(trees)} documents; the rates are one")
        tree = trees[0]
        problem = check_aliases(tree, DEFAULT_LIMITS) if isinstance(tree, YamlDocument) else tree
        if problem is not None or not isinstance(tree, YamlDocument):
            where = f"{problem.line}:{problem.column}: {problem.message}" if problem is not None else "1:1: no document"
            raise click.UsageError(f"{self._path}:{where}")
        return Constructor(0).construct(tree.node)

    def _read_cause(self, at: Pointer, entry: Any) -> CommonCause:
        if not isinstance(entry, dict):
            raise self._fail(at, "expected an entry such as {each: cluster, perYear: 4, hours: 2}")
        unknown = sorted(str(name) for name in entry.keys() - _FIELDS)
        if unknown:
            raise self._fail((*at, unknown[0]), f"unknown field {unknown[0]!r}; the fields are {', '.join(sorted(_FIELDS))}")
        each, label = entry.get("each"), entry.get("label")
        if (each is None) == (label is None):
            raise self._fail(at, "expected either `each` or `label`")
        if each is not None and each not in KINDS:
            raise self._fail((*at, "each"), f"expected one of {', '.join(KINDS)}")
        if label is not None and not (isinstance(label, str) and label):
            raise self._fail((*at, "label"), "expected the key of a label of clusters")
        per_year, hours = (self._read_number(at, entry, name) for name in ("perYear", "hours"))
        return CommonCause(each or "", label or "", per_year, hours, *self._read_selection(at, entry))

    def _read_selection(self, at: Pointer, entry: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Return the names and the labels of the clusters that an entry concerns."""
        names, labels = entry.get("names") or [], entry.get("matchLabels") or {}
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self._fail((*at, "names"), "expected a list of names of clusters")
        if not isinstance(labels, Mapping) or not all(isinstance(value, str) for value in labels.values()):
            raise self._fail((*at, "matchLabels"), "expected labels of clusters with texts as values")
        return tuple(sorted(names)), tuple(sorted(labels.items()))

    def _read_number(self, at: Pointer, entry: Mapping[str, Any], name: str) -> str:
        value = entry.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= HOURS_PER_YEAR:
            return str(Fraction(str(value)))
        expected = "failures of each in a year" if name == "perYear" else "hours that a failure lasts"
        raise self._fail(
            (*at, name) if name in entry else at, f"{name}: expected a number above 0 and up to {HOURS_PER_YEAR}, the {expected}"
        )

    def _fail(self, pointer: Pointer, message: str) -> click.UsageError:
        found = FieldLocator(self._data).locate(0, -1, [pointer]) or [(1, 1)]
        return click.UsageError(f"{self._path}:{found[0][0]}:{found[0][1]}: {message}")


def read_failure_rates(path: Path) -> tuple[CommonCause, ...]:
    """Return the failure rates of a file. A file that has none is a usage error with the line and column of the mistake."""
    return _RatesReader(path).read()
