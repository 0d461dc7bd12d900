"""Read the operator's settings file, which must be outside of the source."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gitsched.apis.gitsched.config import GROUP
from gitsched.apis.gitsched.operator_config import KIND, OperatorConfig, parse_operator_config
from gitsched.decide.validation import validate_document
from gitsched.git import SourceRepository
from gitsched.manifests.parser import parse_file
from gitsched.model.document import parse_api_group
from gitsched.model.errors import Permanent
from gitsched.reconcile.run_settings import RunSettings

_NAME = "operator-settings.yaml"
MAX_SIZE = 10_000_000
"""Bytes of the file that are read."""


def read_operator_config(path: Path) -> OperatorConfig:
    """Read the file. Raises Permanent with all its errors; a field that gitsched does not know is one, too."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SIZE + 1)
    except OSError as error:
        raise Permanent(f"the operator's settings cannot be read: {path}: {error.strerror}") from error
    if len(data) > MAX_SIZE:
        raise Permanent(f"the operator's settings are not read: {path} has more than {MAX_SIZE} bytes; remove keys or hosts")
    parsed = parse_file(data, path=_NAME, validate=validate_document)
    if [issue.code for issue in parsed.issues] == ["missing-name"]:  # a settings file needs no name
        parsed = parse_file(data + b"\nmetadata: {name: operator}\n", path=_NAME, validate=validate_document)
    problems = [f"{path}:{issue.line}:{issue.column}: {issue.message}" for issue in parsed.issues if issue.severity != "info"]
    if problems:
        raise Permanent(f"the operator's settings are not valid: {'; '.join(problems[:10])}")
    bodies = [document.body for document in parsed.documents]
    kinds = [(parse_api_group(str(body.get("apiVersion"))), body.get("kind")) for body in bodies]
    if kinds != [(GROUP, KIND)]:
        raise Permanent(
            f"the operator's settings in {path} must be one document with apiVersion: {GROUP}/v1alpha1 and kind: {KIND}"
        )
    return parse_operator_config(bodies[0].get("spec") or {})


def complete_settings(settings: RunSettings, source: SourceRepository) -> RunSettings:
    """Return the settings of a run with those of the operator's file. Raise Permanent for a file that cannot be used."""
    if settings.operator_file is None:
        return settings
    check_operator_file(settings.operator_file, source)
    return settings.complete(read_operator_config(settings.operator_file))


def check_operator_file(path: Path, source: SourceRepository) -> None:
    """Raise Permanent for a file in the source repository: whoever can change the source could change it."""
    for directory in _list_directories(source):
        named = Path(os.path.normpath(path.absolute()))  # as written: a link in the source is its own, wherever it leads
        if path.resolve().is_relative_to(directory.resolve()) or named.is_relative_to(directory.absolute()):
            raise Permanent(
                f"the operator's settings are in the source repository: {path}; whoever can change the source could change them. Move "
                f"the file out of {directory}"
            )


def _list_directories(source: SourceRepository) -> Iterator[Path]:
    """Yield the directories of a local source: its worktree and its Git directory."""
    if source.url is None:
        yield Path(source.repository.root)
        yield Path(source.repository.common_dir)
