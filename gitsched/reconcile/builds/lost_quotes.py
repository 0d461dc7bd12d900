"""Advice about texts that are numbers, or no YAML, only after a build: the quotes that they have in the files of the source are lost."""

from __future__ import annotations

import re

from gitsched.decide.catalog import RawDocument
from gitsched.manifests.parsed_file import FileIssue
from gitsched.manifests.yaml_errors import SYNTAX_ERROR

_VARIABLE = re.compile(r"\$\{(\w+)[^}]*\}")
_QUOTING = re.compile(r"[;:] quote it\b")


def describe_rendered(issue: FileIssue) -> str:
    """Return the message of an issue of what a chart prints, with the cure for a text without quotes: a template prints none."""
    start, *quoting = _QUOTING.split(issue.message, maxsplit=1)
    return f"{start}; quote it in the template, as with {{{{ .Values.NAME | quote }}}}" if quoting else issue.message


def describe_substituted(setting: str, document: RawDocument, text: bytes, issue: FileIssue) -> str:
    """Return the message of an issue, with the cure for a text that its variables change into another type or break: kustomize has removed
    the quotes of the file before. `text` is the object before the substitution, `setting` has the values."""
    message, lines = issue.message, text.decode("utf-8", "replace").splitlines()
    is_unreadable = issue.code == SYNTAX_ERROR
    start = message if is_unreadable else _QUOTING.split(message)[0]
    if not (is_unreadable or start != message or "must be a string" in message) or issue.line > len(lines):
        return message
    key, colon, value = lines[issue.line - 1].strip().lstrip("- ").partition(": ")
    written = value if colon and _VARIABLE.search(value) else key.removesuffix(":")
    variable = _VARIABLE.search(written)
    if variable is None:
        return message
    is_shown = "'" not in written and '"' not in written and document.kind != "Secret"
    return (
        f"{start}; the quotes of a file are lost before variables are substituted: write "
        f"${{quote}}{written if is_shown else f'${{{variable[1]}}}'}${{quote}}, and set quote: '\"' in {setting}"
    )
