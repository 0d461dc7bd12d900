"""What files that a repository has already lack of a proposal."""

from __future__ import annotations

from typing import Any

from gitsched.apis.gitsched.config import FILE
from gitsched.layouts.proposal import POLICIES
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, as_object
from gitsched.render.yaml import dump

_SETTINGS = ("source",)
"""The settings of a proposal that say how the repository is read. Others have defaults."""


def list_missing(name: str, kept: bytes, proposed: str) -> list[Body]:
    """Return the proposed documents that a kept file lacks, and what it lacks of those that it has. Policies are the user's choice."""
    if name == POLICIES:
        return []
    own = {_identify(one.body): one.body for one in parse_file(kept, path=name, validate=None).documents}
    found = []
    for document in (one.body for one in parse_file(proposed.encode(), path=name, validate=None).documents):
        known = own.get(_identify(document))
        if name == FILE:
            settings = {key: value for key, value in as_object(document.get("spec")).items() if key in _SETTINGS}
            document = {**document, "spec": settings}
        lacking = document if known is None else _find_lacking(document, known)
        if lacking and (known is not None or name != FILE):
            identity = {key: document[key] for key in ("apiVersion", "kind")}
            metadata = {**_name(document), **as_object(lacking.get("metadata"))}
            found.append({**identity, "metadata": metadata, **{key: value for key, value in lacking.items() if key != "metadata"}})
    return found


def describe_missing(name: str, documents: list[Body]) -> str:
    """Return what to add to a kept file, as YAML below a title."""
    texts = "---\n".join(map(dump, documents))
    return f"{name} exists and lacks this: add\n" + "".join(f"  {line}\n" for line in texts.splitlines())


def _identify(body: Body) -> tuple[object, ...]:
    metadata = as_object(body.get("metadata"))
    return str(body.get("apiVersion")), str(body.get("kind")), metadata.get("namespace"), metadata.get("name")


def _name(body: Body) -> Body:
    return {key: value for key, value in as_object(body.get("metadata")).items() if key in ("namespace", "name")}


def _find_lacking(proposed: Body, known: Body) -> Body:
    """Return the members and items of a mapping that another one lacks; other values of the same member are a choice."""
    found: Body = {}
    for key, value in proposed.items():
        lacking: Any = None
        if key not in known:
            lacking = value
        elif isinstance(value, dict) and isinstance(known[key], dict):
            lacking = _find_lacking(value, known[key])
        elif isinstance(value, list) and isinstance(known[key], list):
            lacking = [item for item in value if item not in known[key]]
        if lacking not in (None, {}, []):
            found[key] = lacking
    return found
