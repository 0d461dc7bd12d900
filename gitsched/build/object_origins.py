"""Find the file of each object that kustomize prints: by its kind and name, or by the annotation that kustomize can add.

kustomize prints each object anew in one form, with its members in order and two spaces for each level, also where a source has flow style,
quoted keys or JSON. So lines show what a parser would, in a fraction of its time; this holds for nothing else than the output of kustomize.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gitsched.named_tuples import NamedTuple

ORIGIN_OPTION = b"\nbuildMetadata: [originAnnotations]\n"
"""The end of a kustomization with which kustomize annotates each object with its file."""
_METADATA = re.compile(rb"^metadata:\n((?: .*\n|\n)+)", re.MULTILINE)
_ANNOTATIONS = re.compile(rb"^  annotations:\n((?:    .*\n|\n)+)", re.MULTILINE)
_ORIGIN_ENTRY = re.compile(rb"^    config\.kubernetes\.io/origin: \|\n((?:      .*\n|\n)+)", re.MULTILINE)
_ORIGIN_FIELD = re.compile(r"^(path|configuredIn): (.+)$", re.MULTILINE)
_ANNOTATION_PATCH = re.compile(rb"/metadata/annotations|metadata\.annotations|annotations=|patch: (?:replace|delete)")
_EMPTY_ANNOTATIONS = re.compile(
    rb"annotations\"?: *(?:\{ *\}|null|~)|^([ -]*)annotations: *(?:#[^\n]*)?\n(?!\1 +[^\s])", re.MULTILINE
)
"""Texts with which a kustomization may read, replace or remove annotations as a whole, in files other than resources, and empty annotations
in any file: origins could change what it builds, so it is built without them."""
_IDENTITY_CHANGE = re.compile(
    rb"(?i:(?:configMap|secret)Generator)|(?i:\b(?:generators|transformers|vars))[\"']?\s*:"
    rb"|\b(?i:name(?:Prefix|Suffix))\b|metadata[./]name(?:space)?\b|allow(?:Name|Kind)Change|/kind\b"
)
"""Texts in files other than resources with which a kustomization may make objects or change their kind or name."""
_TYPE_FIELD = re.compile(rb"^(apiVersion|kind): (.+)$", re.MULTILINE)
_NAME_FIELD = re.compile(rb"^  (name|namespace): (.+)$", re.MULTILINE)

ObjectSources = Mapping[tuple[str, ...], str]
"""The files of objects by apiVersion, kind and name, and where several files have such an object, by the namespace as well."""


class AnnotatedOrigin(NamedTuple):
    """An object without the annotation of its origin, and what that says: a path, which `generated` the object if it is a kustomization's;
    "" if there is no annotation."""

    text: bytes
    path: str
    generated: bool


def may_change_identities(texts: Iterable[bytes]) -> bool:
    """Return whether kustomizations, patches and the like may make objects, or change their kind or name."""
    return any(map(_IDENTITY_CHANGE.search, texts))


def may_lose_annotations(text: bytes, *, is_resource: bool) -> bool:
    """Return whether what is built may depend on annotations that kustomize adds, because of this file of a root."""
    return bool(_EMPTY_ANNOTATIONS.search(text) or (not is_resource and _ANNOTATION_PATCH.search(text)))


def can_annotate(text: bytes) -> bool:
    """Return whether buildMetadata can be appended to a kustomization: a block mapping in one document without that field."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(b"#")]
    lines = lines[1:] if lines and lines[0].rstrip() == b"---" else lines
    if not lines or b"buildmetadata" in text.lower() or any(line.startswith((b"---", b"...")) for line in lines):
        return False
    return re.match(rb"[A-Za-z]+:", lines[0]) is not None


def read_origin(text: bytes) -> AnnotatedOrigin:
    """Return a printed object without its annotation of the origin, and what that says."""
    metadata = _METADATA.search(text)
    annotations = _ANNOTATIONS.search(text, *metadata.span(1)) if metadata else None
    entry = _ORIGIN_ENTRY.search(text, *annotations.span(1)) if annotations else None
    if annotations is None or entry is None:
        return AnnotatedOrigin(text, "", False)
    fields = dict(_ORIGIN_FIELD.findall(re.sub(r"^      ", "", entry[1].decode("utf-8", "replace"), flags=re.MULTILINE)))
    start, end = entry.span()
    if (start, end) == annotations.span(1):
        start = annotations.start()  # there is no other annotation
    generated = "configuredIn" in fields
    return AnnotatedOrigin(text[:start] + text[end:], fields.get("configuredIn" if generated else "path", ""), generated)


def find_source(text: bytes, sources: ObjectSources) -> str:
    """Return the file that a printed object comes from; "" if it is not known."""
    metadata = _METADATA.search(text)
    fields = _TYPE_FIELD.findall(text) + (_NAME_FIELD.findall(text, *metadata.span(1)) if metadata else [])
    values = {field: _read_scalar(value) for field, value in fields}
    identity = tuple(values.get(field, "") for field in (b"apiVersion", b"kind", b"name", b"namespace"))
    return sources.get(identity[:3]) or sources.get(identity, "")


def _read_scalar(text: bytes) -> str:
    text = text.strip()
    if text[:1] in (b"'", b'"') and text[-1:] == text[:1]:
        text = text[1:-1]
    return text.decode("utf-8", "replace")
