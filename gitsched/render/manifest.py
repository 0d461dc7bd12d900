"""A workload's own manifest as a cluster gets it: its very bytes, the least edit of them, or the object written anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gitsched.model.document import Body, Document, Text, member
from gitsched.model.files import END, Bytes, Edit, Keep, PlannedFile, Span
from gitsched.model.owned import remove_owned
from gitsched.render.yaml import dump


def plan_manifest(document: Document, *counts: tuple[str, int]) -> PlannedFile:
    """The file for one cluster; `counts` are where numbers of this cluster go ("spec.replicas") and which.

    Keep when nothing changes: the same blob for every cluster. Edit when the text allows it: comments, order and line ends stay.
    Bytes when it does not: an item of a List, flow style, a member that is not there yet, or no text at all.
    """
    needed = [(path, count) for path, count in counts if not _is_count(member(document.body, *path.split(".")), count)]
    origin = document.origin
    if origin is not None and origin.text is not None and origin.item < 0:
        spans = _edit(origin.text, needed)
        if spans is not None:
            return Edit(origin.blob, spans) if spans else Keep(origin.blob)
    return write_manifest(put_counts(document.body, needed))


def put_counts(body: Body, counts: Iterable[tuple[str, int]]) -> Body:
    """The body with numbers set by their path of members; what is shared stays untouched."""
    for path, count in counts:
        if not _is_count(member(body, *path.split(".")), count):
            body = _put(body, path.split("."), count)
    return body


def write_manifest(body: Body) -> Bytes:
    """The file of an object that has no text of its own, without what only an API server writes."""
    return Bytes(dump(strip_owned(body)).encode())


def strip_owned(body: Body) -> Body:
    """The body without what only an API server writes (Flux refuses a manifest that has it); the same object if there is none."""
    return remove_owned(body)


def _edit(text: Text, counts: list[tuple[str, int]]) -> tuple[Span, ...] | None:
    if text.cuts is None:
        return None
    spans = [Span(start, end, "") for start, end in text.cuts]
    marks = {path: (start, end) for path, start, end in text.marks}
    for path, count in counts:
        if path not in marks:
            return None
        spans.append(Span(*marks[path], str(count)))
    if not text.whole:
        spans += [Span(0, text.start, ""), Span(text.end, END, "")] if text.start else [Span(text.end, END, "")]
    return tuple(sorted(spans))


def _is_count(value: Any, count: int) -> bool:
    return type(value) is int and value == count


def _put(body: Body, path: list[str], value: int) -> Body:
    """The body with one member set; what is missing on the way is made, what is shared stays untouched."""
    name, *rest = path
    if not rest:
        return {**body, name: value}
    inner = body.get(name)
    return {**body, name: _put(inner if isinstance(inner, dict) else {}, rest, value)}
