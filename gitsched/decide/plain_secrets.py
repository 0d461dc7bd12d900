"""Report Secrets whose values are in the source, and in the output, without encryption."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.model.document import Document, as_object, is_encrypted
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome

UNENCRYPTED = "secret-in-plain-text"
_PLACEHOLDERS = ("<", "${", "ref+", "vault:", "{{")
"""Starts of values that a delivery tool or an operator replaces."""


def find_plain_secret(document: Document, outcome: Outcome) -> Iterator[Finding]:
    """Yield a note if a Secret with values is delivered as it is. The message has none of its values."""
    if not outcome.targets or is_encrypted(document.body) or not _has_values(document):
        return
    message = (
        f"{document.key} is delivered in plain text: everybody who can read the source or the output branch, or their history, "
        "can read it, and base64 is no encryption; encrypt it with SOPS, or commit a SealedSecret or an ExternalSecret in its place"
    )
    yield Finding("info", UNENCRYPTED, message, locate_document(document), document.key.resource)


def _has_values(document: Document) -> bool:
    """Return whether the Secret has a value that is no placeholder."""
    values = [value for part in ("data", "stringData") for value in as_object(document.body.get(part)).values()]
    return any(isinstance(value, str) and value.strip() and not value.strip().startswith(_PLACEHOLDERS) for value in values)
