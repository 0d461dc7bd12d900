"""Report whom documents of the planned commit would have gitsched contact, and with which token, where the trusted commit has others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gitsched.decide.catalog import RawDocument, make_raw_documents
from gitsched.model.allow_list import METRICS, AllowList, name_token_source
from gitsched.model.document import Body, as_object
from gitsched.model.finding import FieldOrigin, Finding, Pointer, locate_origin
from gitsched.model.urls import strip_credentials
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.reconcile.source.source_locations import RuleLocations, locate_finding_rules
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

SENSITIVE_CONTACT: Final = "sensitive-contact"
MAX_FINDINGS: Final = 20
"""Findings of one run; the last one counts the others."""
_MAX_DEPTH = 8
_MAX_URL_LENGTH = 200

_Identity = tuple[str, str, str, str]


class Contact(NamedTuple):
    """A URL that gitsched queries for a document, with the token that it sends: (env or file, name); the name is "" for none."""

    url: str
    token: tuple[str, str]


def find_contact_changes(context: RunContext, fetched: Fetched, documents: Iterable[RawDocument]) -> tuple[Finding, ...]:
    """Return a finding for each contact of documents that the trusted commit does not have in the same document."""
    trusted = fetched.trusted.commit
    if trusted is None or trusted.tree == fetched.source.tree:
        return ()
    repository = context.source.repository
    changed = set(repository.changed_paths(trusted.tree, fetched.source.tree))
    candidates = [one for one in documents if one.origin is not None and one.origin.path in changed and not one.broken]
    if not any(list(list_contacts(one.body)) for one in candidates):
        return ()
    known = set(_read_contacts(context, trusted.tree, changed))
    findings: list[Finding] = []
    for document in candidates:
        for contact, pointer in dict(list_contacts(document.body)).items():
            if (document.identity, contact) not in known:
                findings.append(_make_finding(document, contact, pointer, context.settings.allow))
    if len(findings) > MAX_FINDINGS:
        more = f"{len(findings) - MAX_FINDINGS} more changes of whom documents have gitsched contact are not shown"
        findings = [*findings[:MAX_FINDINGS], Finding("warning", SENSITIVE_CONTACT, more, is_change=True)]
    return locate_finding_rules(findings, RuleLocations(repository))


def list_contacts(body: Body) -> Iterator[tuple[Contact, Pointer]]:
    """Yield the contacts of a document with the pointers of their URLs."""
    yield from _walk(as_object(body.get("spec")), ("spec",))


def _walk(value: Any, pointer: Pointer) -> Iterator[tuple[Contact, Pointer]]:
    if len(pointer) > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        url = value.get("url")
        if isinstance(url, str):
            yield Contact(url, name_token_source(as_object(value.get("tokenFrom")))), (*pointer, "url")
        for name, entry in value.items():
            yield from _walk(entry, (*pointer, str(name)))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _walk(entry, (*pointer, index))


def _read_contacts(context: RunContext, tree: str, paths: Iterable[str]) -> Iterator[tuple[_Identity, Contact]]:
    """Yield the contacts of all documents in files of a tree."""
    repository = context.source.repository
    reader = SourceReader(repository, context.caches.files)
    for path in sorted(paths):
        entry = repository.find_entry(tree, path)
        if entry is None or entry[1] not in REGULAR_FILE_MODES or not path.endswith((".yaml", ".yml", ".json")):
            continue
        for document in make_raw_documents(reader.read(entry[0], path), path, entry[0]):
            for contact, _ in list_contacts(document.body):
                yield document.identity, contact


def _make_finding(document: RawDocument, contact: Contact, pointer: Pointer, allow: AllowList) -> Finding:
    assert document.origin is not None, "only documents of files are compared"
    shown = (strip_credentials(contact.url) or "an address that is not valid")[:_MAX_URL_LENGTH]
    kind, name = contact.token
    token = (
        f", with the token in {'the environment variable' if kind == 'env' else 'the file'} {name[:_MAX_URL_LENGTH]}"
        if name
        else ""
    )
    source: Mapping[str, object] = {kind: name} if name else {}
    refusal = allow.find_host_refusal(contact.url, METRICS) or allow.find_token_refusal(source, contact.url)
    verdict = f"It is not contacted: {refusal}" if refusal else "The operator allows it"
    message = f"{document.kind} {document.name} queries {shown}{token}, and did not before. {verdict}"
    resource = (document.kind, document.namespace, document.name)
    field = FieldOrigin(document.origin, pointer)
    return Finding("warning", SENSITIVE_CONTACT, message, locate_origin(document.origin), resource, field, is_change=True)
