"""Find files that had documents in the last run, and that have other content now: this is a mistake more often than a removal."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.manifests.charts import CHART_FILE
from gitsched.manifests.parsed_file import NOT_YAML, ParsedFile, read_identity
from gitsched.model.finding import Finding, Location, format_names
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.source.last_valid_documents import LastValidDocuments, RestoredFile, make_findings
from gitsched.reconcile.source.source_history import SourceHistory
from gitsched.reconcile.source.source_reader import SourceReader

if TYPE_CHECKING:
    from gitsched.decide.last_valid_files import LastValidFile
    from gitsched.reconcile.source.config_file import OpenHistory

MAX_NAMED_FILES = 5
"""The maximum number of files that a message lists."""


def has_other_content(file: SourceFile) -> bool:
    """Return whether a file that is not empty has no document, which is no error in itself: as a values file or a JSON patch."""
    return file.file.status == "not-a-resource" and file.file.kustomization is None and file.file.reason != NOT_YAML


def find_lost_documents(files: Mapping[str, SourceFile], reader: SourceReader, history: SourceHistory) -> list[str]:
    """Return the paths of files with other content that had documents in the last run, or whose documents the output branch keeps; and
    of files in which only some of the documents have other content.

    The settings have findings of their own. A file that a kustomization or a chart reads now as a patch, a values file or a template has
    another purpose, and is left out.
    """
    found = []
    for path in history.list_changed_or_kept([path for path, file in files.items() if path != FILE and _may_lack_documents(file)]):
        for version in history.list_last_versions(path):
            if lacks_documents(files[path].file, reader.read(version.blob, path, version.repository)):
                found.append(path)
                break
    return _drop_other_purposes(found, files) if found else []


def find_unverified_files(
    files: Mapping[str, SourceFile], restored: Mapping[str, RestoredFile], history: SourceHistory
) -> tuple[str, ...]:
    """Return the files without documents that may have had some in the last run, because no source commit of an earlier run is available.

    Such a file stays one of them in later runs, as long as changes are withheld because of it.
    """
    if not (history.is_last_unknown or history.unverified):
        return ()
    unread = (
        path for path, file in files.items() if has_other_content(file) or file.file.unreadable or file.file.reason == NOT_YAML
    )
    unknown = [path for path in unread if path != FILE and not (path in restored and restored[path].documents)]
    if not history.is_last_unknown:
        unknown = [path for path in unknown if path in history.unverified]
    return tuple(sorted(_drop_other_purposes(unknown, files))) if unknown else ()


def make_unverified_finding(paths: tuple[str, ...]) -> Finding:
    """Return the warning about files without documents that may have had some."""
    has, files, them, they = ("have", "files", "them", "they") if len(paths) > 1 else ("has", "file", "it", "it")
    message = (
        f"{format_names(paths, MAX_NAMED_FILES)} {has} no documents now, and it is not known whether the last run had some, because its "
        "source commit is not available: changes of placed workloads are withheld. Fetch the whole history, restore the "
        f"{files}, delete {them} to remove what {they} had, or allow the changes"
    )
    return Finding("warning", "history-incomplete", message, Location(paths[0], 1, 1))


def _drop_other_purposes(paths: Iterable[str], files: Mapping[str, SourceFile]) -> list[str]:
    """Return the paths without those of files that a kustomization or a chart reads as anything other than objects."""
    inputs = set(_list_inputs(files))
    charts = {posixpath.dirname(path) for path in files if posixpath.basename(path) == CHART_FILE}
    return [path for path in paths if path not in inputs and charts.isdisjoint(_list_directories(path))]


def _may_lack_documents(file: SourceFile) -> bool:
    return has_other_content(file) or bool(file.file.documents and file.file.others)


def lacks_documents(file: ParsedFile, before: ParsedFile) -> bool:
    """Return whether values without a kind are in the place of documents that an earlier version of a file had."""
    if not file.documents:
        return bool(before.documents)
    if len(file.others) <= len(before.others):
        return False
    return not {read_identity(parsed.body) for parsed in before.documents} <= {
        read_identity(parsed.body) for parsed in file.documents
    }


def make_lost_finding(path: str, file: ParsedFile) -> Finding:
    """Return the error about a file that has no documents any more, or in which some have other content."""
    reason = file.reason
    if file.documents:
        message = (
            f"{path} has a document without kind and apiVersion in place of one that it had: that one stays as it was; restore it, or "
            "delete its text to remove it"
        )
        return Finding("error", "no-longer-manifest", message, Location(path, file.others[0], 1))
    effect = "the documents that it had stay as they were; restore the file, or delete it to remove them"
    if reason == NOT_YAML:
        return Finding("error", "no-longer-yaml", f"{path} is not YAML any more: {effect}", Location(path, 1, 1))
    return Finding("error", "no-longer-manifest", f"{path} has no manifest any more ({reason}): {effect}", Location(path, 1, 1))


def _list_inputs(files: Mapping[str, SourceFile]) -> Iterator[str]:
    """Yield the paths that kustomizations read as anything other than objects."""
    for path, file in files.items():
        for reference in file.file.kustomization.references if file.file.kustomization is not None else ():
            if reference.role == "input":
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), reference.path))


def _list_directories(path: str) -> Iterable[str]:
    """Yield the directories around a file, up to the root."""
    while path:
        path = posixpath.dirname(path)
        yield path


def list_restored_findings(
    restored: Mapping[str, RestoredFile], kept: Mapping[str, LastValidFile], files: Mapping[str, SourceFile]
) -> list[Finding]:
    """Return the findings about files of which an earlier version counts."""
    lost = [make_lost_finding(path, files[path].file) for path in kept if not files[path].broken and path != FILE]
    return [*lost, *make_findings({path: file for path, file in restored.items() if path in kept})]


def restore_last_valid(
    files: Mapping[str, SourceFile], reader: SourceReader, open_history: OpenHistory | None
) -> tuple[dict[str, RestoredFile], tuple[str, ...]]:
    """Return the last valid documents of broken files, and of files that lost their documents, by path; and the files of which nobody
    knows whether they lost some."""
    lost: list[str] = []
    has_unread = open_history is not None and any(
        file.file.others or file.file.status in ("not-a-resource", "invalid") for file in files.values()
    )
    if has_unread and open_history is not None:
        lost = find_lost_documents(files, reader, open_history())
    restored: dict[str, RestoredFile] = {}
    failed: tuple[str, ...] = ()
    if lost or any(file.broken or file.file.reason == NOT_YAML for file in files.values()):
        find_versions = open_history().list_versions if open_history is not None else lambda _: ()
        last_valid = LastValidDocuments(reader, find_versions)
        restored, failed = last_valid.restore_all(files, lost), tuple(last_valid.failed)
    if not has_unread or open_history is None:
        return restored, failed
    return restored, tuple(dict.fromkeys((*failed, *find_unverified_files(files, restored, open_history()))))
