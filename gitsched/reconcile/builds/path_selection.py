"""Which directories have something that a policy of the source may select: only these are built as a delivery tool builds them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from gitsched.apis.policy_api import WorkloadSelector
from gitsched.build.closure import Closure
from gitsched.build.commit_files import CommitFiles
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.decide.registry import policy_apis
from gitsched.manifests.envsubst import SubstitutionError, VariableValues, substitute_variables
from gitsched.manifests.glob import GlobToken, matches_glob, parse_glob
from gitsched.manifests.parsed_file import ParsedFile
from gitsched.reconcile.builds.kustomizations import FileReader

_GENERATED_KINDS = ("ConfigMap", "Secret")
_RENAMING = (b"allowNameChange", b"allowKindChange", b"replacements")
"""Texts in files with which kustomize may give objects any name or kind."""


UNKNOWN_NAME = "\0"
"""Stands for an expression in a path."""
MAX_COMPARISONS = 2_000_000
"""Comparisons of directories with the paths of one ApplicationSet that are not known."""


def find_matching_directory(directories: Collection[str], paths: Iterable[str]) -> str | None:
    """Return the first directory whose path is one of `paths`, with any text in place of each unknown name."""
    names = sorted(directories)
    patterns: dict[int, list[list[list[GlobToken] | None]]] = {}
    for path in islice(paths, max(1, MAX_COMPARISONS // max(1, len(names)))):
        parts = [re.sub(r"([*?\[\\])", r"\\\1", part).replace(UNKNOWN_NAME, "?*") for part in path.split("/")]
        patterns.setdefault(len(parts), []).append([parse_glob(part) for part in parts])
    for name in names:
        parts = name.split("/")
        for pattern in patterns.get(len(parts), ()):
            if all(matches_glob(tokens, part) for tokens, part in zip(pattern, parts, strict=True)):
                return name
    return None


def list_selectors(documents: Iterable[RawDocument]) -> tuple[WorkloadSelector, ...]:
    """Return which workloads the documents of all policy APIs may select."""
    by_api: dict[str, list[RawDocument]] = {}
    for document in documents:
        for name, api in policy_apis.items():
            if document.group in api.groups:
                by_api.setdefault(name, []).append(document)
    found = (policy_apis[name].list_selectors(document.body for document in owned) for name, owned in by_api.items())
    return tuple(dict.fromkeys(selector for selectors in found for selector in selectors))


class PathSelection:
    """Says whether a directory builds something that one of the selectors may select. In doubt it does."""

    def __init__(self, selectors: tuple[WorkloadSelector, ...], reader: FileReader) -> None:
        self._reader = reader
        self._everything = WorkloadSelector() in selectors
        self._annotations = [selector.annotation.encode() for selector in selectors if selector.annotation]
        self._names: dict[tuple[str, str], set[str]] = {}
        for selector in selectors:
            if not selector.annotation:
                self._names.setdefault((selector.group, selector.kind), set()).add(selector.name)
        self.is_empty = not selectors

    def may_select(self, closure: Closure, commit: CommitFiles, variables: Mapping[str, str]) -> bool:
        """Return whether something that a directory builds may be selected. `variables` are those whose values are known."""
        if self._everything or self.is_empty or closure.problems:
            return not self.is_empty
        if not closure.resources:
            return True  # a chart, or a kustomization with generators only
        for path, blob in closure.files.items():
            data = commit.read_blob(blob)
            if any(text in data for text in (*self._annotations, *_RENAMING)):
                return True
            if path in closure.resources:
                if self._may_select_of(self._reader.read(blob, path), variables):
                    return True
                continue
            kustomization = commit.read_kustomization(blob, path)
            if kustomization is None:
                continue
            if kustomization.helm or any(reference.field == "generators" for reference in kustomization.references):
                return True
            generated = (change.value for change in kustomization.changes if change.kind == "mention")
            if any(self._matches("", kind, name, variables) for name in generated for kind in _GENERATED_KINDS):
                return True
        return False

    def _may_select_of(self, file: ParsedFile, variables: Mapping[str, str]) -> bool:
        """Return whether an object of a file may be selected, or it is not known what the file has."""
        if file.unreadable or not file.documents or any(parsed.broken for parsed in file.documents):
            return True
        return any(self._matches(one.group, one.kind, one.name, variables) for one in list_file_documents(file))

    def _matches(self, group: str, kind: str, name: str, variables: Mapping[str, str]) -> bool:
        """Return whether an object may be selected, given its name before prefixes, suffixes and substitution."""
        selected = self._names.get((group, kind), set())
        if selected and "$" in name:
            try:
                name = substitute_variables(name, VariableValues(variables))
            except SubstitutionError:
                return True
        return any(not wanted or name in wanted for wanted in selected)


def list_file_documents(file: ParsedFile) -> Iterator[RawDocument]:
    """Yield the documents of a file without their origins."""
    return (make_raw_document(parsed.body) for parsed in file.documents)
