"""Render the last valid versions of broken source files, which the output branch keeps under kept/."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.decide.registry import apis_by_group
from gitsched.model.document import Body, Key, SourceSpans, get_field, parse_api_group
from gitsched.model.planned_files import EditedBlob, ExistingBlob, NewBlob, PlannedFile, TextEdit
from gitsched.named_tuples import NamedTuple
from gitsched.render.yaml import dump

if TYPE_CHECKING:
    from gitsched.model.scheduling import Outcome


class LastValidFile(NamedTuple):
    """The last valid bytes of a source file: a blob and its documents, with their spans; None for an item of a List.

    `pruned` says that the bytes have members that the parsed documents do not have, such as a token under a Cluster. `commit` is the
    source commit of the bytes, "" if it is not known.
    """

    blob: str
    documents: tuple[tuple[Body, SourceSpans | None], ...]
    pruned: bool = False
    commit: str = ""


def render_last_valid(last_valid: LastValidFile, outcomes: Mapping[Key, Outcome]) -> PlannedFile | None:
    """Render the file under kept/, without Secrets that are not placed on any cluster; None if nothing else is left.

    The Secrets are cut from the text. When one is an item of a List, or the text has more than the documents, all other documents are
    serialized again.
    """
    documents = [(_remove_secrets(body), text) for body, text in last_valid.documents]
    if documents != list(last_valid.documents):
        last_valid = last_valid._replace(documents=tuple(documents), pruned=True)
    secrets = [(body, text) for body, text in last_valid.documents if _is_unplaced_secret(body, outcomes)]
    if not secrets and not last_valid.pruned:
        return ExistingBlob(last_valid.blob)
    if len(secrets) == len(last_valid.documents):
        return None
    if not last_valid.pruned and all(text is not None for _, text in secrets):
        return EditedBlob(
            last_valid.blob, tuple(sorted(TextEdit(text.start, text.end, "") for _, text in secrets if text is not None))
        )
    return NewBlob("---\n".join(dump(body) for body, _ in last_valid.documents if not _is_unplaced_secret(body, outcomes)).encode())


def _remove_secrets(body: Body) -> Body:
    for text in (body.get("apiVersion"), body.get("api")):
        api = apis_by_group.get(parse_api_group(str(text)))
        if text and api is not None and api.remove_secrets is not None:
            body = api.remove_secrets(body)
    return body


def _is_unplaced_secret(body: Body, outcomes: Mapping[Key, Outcome]) -> bool:
    metadata = body.get("metadata") or {}
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api"))), str(body.get("kind"))
    api = apis_by_group.get(group)
    path = api.embedded_objects.get((group, kind)) if api is not None else None
    objects = [body, *(get_field(body, *path) or [])] if path else [body]
    if not any((entry.get("apiVersion"), entry.get("kind")) == ("v1", "Secret") for entry in objects if isinstance(entry, dict)):
        return False
    outcome = outcomes.get(Key(group, kind, str(metadata.get("namespace") or "default"), str(metadata.get("name"))))
    return outcome is None or not outcome.targets
