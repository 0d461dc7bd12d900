"""Last valid bytes of source files that are broken now, as the output branch may hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from gitsched.model.document import SECRET, UNVERSIONED, Body, Key, Text, group_of, member
from gitsched.model.files import Bytes, Edit, Keep, PlannedFile, Span
from gitsched.model.outcome import Outcome
from gitsched.render.yaml import dump

_ACCESS = frozenset(("proxyHeader", "proxyURL"))
_WITHHELD = "withheld"


class Kept(NamedTuple):
    """A blob and the documents in it; `text` is None for an item of a List.

    `pruned` says that the text has members that the documents, as they are read, have not: a token under a Cluster, say.
    """

    blob: str
    documents: tuple[tuple[Body, Text | None], ...]
    pruned: bool = False


def keep_bytes(kept: Kept, outcomes: Mapping[Key, Outcome]) -> PlannedFile | None:
    """The file under kept/, without the Secrets that are placed nowhere; None when nothing else is in it.

    The Secrets are cut from the text. A List that holds one is taken apart, and its other items are written anew; so is everything where
    the text has more than the documents.
    """
    documents = [(_without_access(body), text) for body, text in kept.documents]
    if documents != list(kept.documents):
        kept = Kept(kept.blob, tuple(documents), pruned=True)
    hidden = [(body, text) for body, text in kept.documents if _is_hidden(body, outcomes)]
    if not hidden and not kept.pruned:
        return Keep(kept.blob)
    if len(hidden) == len(kept.documents):
        return None
    if not kept.pruned and all(text is not None for _, text in hidden):
        return Edit(kept.blob, tuple(sorted(Span(text.start, text.end, "") for _, text in hidden if text is not None)))
    return Bytes("---\n".join(dump(body) for body, _ in kept.documents if not _is_hidden(body, outcomes)).encode())


def _without_access(body: Body) -> Body:
    """A Cluster without what its owner reaches it with, which no decision reads: proxies may carry passwords."""
    spec = body.get("spec")
    if group_of(str(body.get("api"))) in UNVERSIONED:
        return cast("Body", _withhold(body, secret=False))
    if not (str(body.get("apiVersion")).startswith("cluster.karmada.io/") and isinstance(spec, dict) and _ACCESS & spec.keys()):
        return body
    return {**body, "spec": {name: value for name, value in spec.items() if name not in _ACCESS}}


def _withhold(value: Any, *, secret: bool) -> Any:
    """The value with every text below a secret member replaced, so that the document keeps its form; the same object where there is none.

    The objects of an application are left alone: they are hidden as a whole where nothing of them is placed.
    """
    if isinstance(value, dict):
        members = {
            name: entry if name == "manifest" else _withhold(entry, secret=secret or name in SECRET or _has_user(name, entry))
            for name, entry in value.items()
        }
        return members if any(members[name] is not entry for name, entry in value.items()) else value
    if isinstance(value, list):
        entries = [_withhold(entry, secret=secret) for entry in value]
        return entries if any(new is not old for new, old in zip(entries, value, strict=True)) else value
    return _WITHHELD if secret and value is not None and value != _WITHHELD else value


def _has_user(name: str, value: Any) -> bool:
    """Whether an address names a user, and perhaps a password."""
    return "@" in str(value) and (name == "url" or (isinstance(value, str) and "://" in value))


def _is_hidden(body: Body, outcomes: Mapping[Key, Outcome]) -> bool:
    metadata = body.get("metadata") or {}
    group, kind = group_of(str(body.get("apiVersion") or body.get("api"))), str(body.get("kind"))
    objects = [body, *(member(body, "spec", "manifest") or [])] if (group, kind) == ("kubernetes", "Application") else [body]
    if not any((entry.get("apiVersion"), entry.get("kind")) == ("v1", "Secret") for entry in objects if isinstance(entry, dict)):
        return False
    outcome = outcomes.get(Key(group, kind, str(metadata.get("namespace") or "default"), str(metadata.get("name"))))
    return outcome is None or not outcome.placed
