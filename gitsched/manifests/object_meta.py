"""Recognize Kubernetes objects among other YAML files and values, and validate their type and metadata as an API server does."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from gitsched.manifests.parsed_file import MAX_ISSUES
from gitsched.model.document import Body, is_namespaced, parse_api_group
from gitsched.model.finding import Issue, Pointer
from gitsched.model.labels import is_label_key, is_label_value

_LOOKS_LIKE_MANIFEST = re.compile(r"""^[ \t{]*["']?(?:apiVersion|api|kind)["']?[ \t]*:""", re.MULTILINE)
_CONTENT = re.compile(r"^(?![ \t\r]*(?:#|$)|(?:---|\.\.\.)[ \t\r]*(?:#|$)|%)", re.MULTILINE)
_TEMPLATE_ACTION = re.compile(
    r"^[ \t]*(?:- +)?\{\{|:[ \t]+\{\{|\{\{-|\{\{[ \t]*(?:/\*|(?:if|else|end|range|with|include|template|tpl|define|block|toYaml"
    r"|default|quote|printf|lookup|required)\b|\$?\.(?:Values|Release|Chart|Capabilities|Files|Template)\b)",
    re.MULTILINE,
)


def looks_like_manifest(text: str) -> bool:
    """Whether a text that cannot be read seems to be meant as Kubernetes objects."""
    return bool(_LOOKS_LIKE_MANIFEST.search(text))


def is_helm_template(text: str) -> bool:
    """Whether a text that cannot be read is a template of Helm's.

    Alert rules and ApplicationSets have `{{ }}` inside quotes, too; a template has it outside of them, or uses Helm's own words.
    """
    return "{{" in text and bool(_TEMPLATE_ACTION.search(text))


def is_blank(text: str) -> bool:
    """Whether a text holds nothing but comments and document markers."""
    return not _CONTENT.search(text)


class DocumentClass(NamedTuple):
    """How one value of a file is to be taken.

    `what` is resource, list, empty, other (no object: `reason` says why) or nameless (an object that lacks what identifies it:
    `code` and `reason` are the finding, `pointer` its place, and `known` says that the kind is one that gitsched or Kubernetes defines:
    a file of some other tool may well hold objects without a name).
    """

    category: str
    reason: str = ""
    code: str = ""
    pointer: Pointer = ()
    known: bool = True


RESOURCE, LIST, EMPTY = DocumentClass("resource"), DocumentClass("list"), DocumentClass("empty")


def classify_document(value: Any) -> DocumentClass:
    """A value by its own content. Krake's objects carry `api` where Kubernetes' carry apiVersion."""
    if value is None:
        return EMPTY
    if not isinstance(value, dict):
        return DocumentClass("other", "a list, such as a JSON patch" if isinstance(value, list) else "a bare text or number")
    kind, version, metadata = value.get("kind"), value.get("apiVersion", value.get("api")), value.get("metadata")
    if not isinstance(kind, str) or not isinstance(version, str) or not kind or not version:
        return _classify_incomplete(value, kind, version, metadata)
    if version.startswith("kustomize.config.k8s.io/") or version == "builtin":
        return DocumentClass("other", "configuration of kustomize")
    if kind.endswith("List") and isinstance(value.get("items"), list) and not _get_name(metadata):
        return LIST
    known = is_namespaced(parse_api_group(version), kind) is not None
    if metadata is None:
        if known and "/" in version:  # in the core there is kubeconfig's `kind: Config`
            return _missing_name(kind, known)
        return DocumentClass("other", f"a {kind} without metadata, such as a tool's configuration")
    if not isinstance(metadata, dict):
        return DocumentClass("nameless", "metadata must be a mapping", "invalid-metadata", ("metadata",))
    name = metadata.get("name")
    if name is None:
        if "generateName" in metadata:
            return DocumentClass("other", "an object that gets its name from an API server (generateName)")
        return _missing_name(kind, known)
    for member in ("name", "namespace"):
        text = metadata.get(member)
        if text is not None and not isinstance(text, str):
            return DocumentClass(
                "nameless",
                f"metadata.{member} must be a string, not {_describe_value(text)}; quote it",
                f"invalid-{member}",
                ("metadata", member),
            )
    if any("}}" in text.partition("{{")[2] for text in (name, kind, version, metadata.get("namespace") or "")):
        return DocumentClass("other", "a template")
    return RESOURCE


def _missing_name(kind: str, known: bool) -> DocumentClass:
    return DocumentClass("nameless", f"this {kind} has no metadata.name", "missing-name", ("metadata",), known)


def _classify_incomplete(value: Body, kind: Any, version: Any, metadata: Any) -> DocumentClass:
    if not _get_name(metadata) or (kind is None and version is None):
        return DocumentClass("other", "a mapping without apiVersion and kind")
    if isinstance(kind, str) and "{{" in kind:
        return DocumentClass("other", "a template")
    missing = "kind" if not isinstance(kind, str) or not kind else "apiVersion"
    if missing in value and value[missing] is not None:
        return DocumentClass("nameless", f"{missing} must be a non-empty string", "invalid-type-meta", (missing,))
    return DocumentClass(
        "nameless", f"this object has no {missing}", "missing-kind" if missing == "kind" else "missing-api-version"
    )


def _get_name(metadata: Any) -> Any:
    return metadata.get("name") if isinstance(metadata, dict) else None


def _describe_value(value: Any) -> str:
    if isinstance(value, bool):
        return f"the boolean {'true' if value else 'false'}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a mapping" if isinstance(value, dict) else "a list"


_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_PATH_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[!-$&-.0-~]+", re.ASCII)
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}", re.ASCII)
_VERSION = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,252}/)?[A-Za-z0-9][A-Za-z0-9.-]{0,62}", re.ASCII)
_MAX_LENGTH = 1000  # no name is valid beyond, so no longer text is judged, or remembered
_PLACEHOLDER = re.compile(r"\$\{[^{}\s/]*\}")
_DNS_SUBDOMAIN_RULE = "at most 253 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
_DNS_LABEL_RULE = "at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit"
_LABEL_VALUE_RULE = "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
_PATH_SEGMENT_RULE = "at most 253 printable ASCII characters without '/', '%' and spaces, and not '.' or '..'"

_METADATA_FIELDS = frozenset(
    (
        *("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "managedFields", "uid"),
        *("resourceVersion", "selfLink", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
        *("clusterName", "initializers"),  # of servers long ago, still in dumps
    )
)
_USER_FIELDS = ("name", "generateName", "namespace", "labels", "annotations")
LENIENT_NAME_GROUPS = frozenset({"rbac.authorization.k8s.io", "certificates.k8s.io"})
"""Groups whose names may be any path segment: `system:masters` is one."""
LENIENT_NAME_DOMAIN = ".openshift.io"
"""The end of more such groups: OpenShift serves Groups, ImageStreams and others by rules of its own, and takes `a_b`."""


def validate_object_meta(body: Body) -> list[Issue]:
    """What an API server would refuse in the metadata of an object with a name; placeholders such as ${NAME} pass.

    Krake's documents, which have no apiVersion, follow rules of their own: their API judges them.
    """
    if "apiVersion" not in body:
        return []
    metadata = body["metadata"]
    issues = [
        Issue("error", "invalid-type-meta", f"{_quote(text)} cannot be {what}", (member,))
        for member, what in (("kind", "a kind"), ("apiVersion", "an apiVersion: that is a group, '/' and a version, or v1"))
        if isinstance(text := body.get(member), str) and not _is_valid_type(member, text[:_MAX_LENGTH])
    ]
    name, namespace = metadata["name"], metadata.get("namespace")
    group = parse_api_group(str(body["apiVersion"]))
    problem = _validate_name(name[:_MAX_LENGTH], group in LENIENT_NAME_GROUPS or group.endswith(LENIENT_NAME_DOMAIN))
    if not problem and body["kind"] == "Namespace" and body.get("apiVersion") == "v1":
        problem = _validate_namespace(name)
    if problem:
        issues.append(
            Issue("error", "invalid-name", f"{_quote(name)} cannot name an object: a name is {problem}", ("metadata", "name"))
        )
    problem = _validate_namespace(namespace[:_MAX_LENGTH]) if namespace else None
    if problem:
        message = f"{_quote(str(namespace))} cannot be a namespace: a namespace is {problem}"
        issues.append(Issue("error", "invalid-namespace", message, ("metadata", "namespace")))
    issues.extend(_validate_fields(metadata, own="." not in group or group.endswith(".k8s.io")))
    for member in ("labels", "annotations"):
        values = metadata.get(member)
        if values is not None:
            issues.extend(_validate_map(member, values))
    return issues


def _validate_fields(metadata: Body, *, own: bool) -> list[Issue]:
    """Members that no object has: a misspelt `labels` takes every label away.

    Documents that are none of Kubernetes' `own`, such as Backstage's, may have more, so of these only what looks misspelt is told.
    """
    if metadata.keys() <= _METADATA_FIELDS:
        return []
    from difflib import get_close_matches  # rarely needed

    issues = []
    for name in [name for name in metadata if name not in _METADATA_FIELDS][:MAX_ISSUES]:
        near = get_close_matches(
            str(name)[:100], sorted(_METADATA_FIELDS) if own else _USER_FIELDS, n=1, cutoff=0.6 if own else 0.75
        )
        if not near and not own:
            continue
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"the field {_quote(str(name))} is unknown and ignored{hint}"
        issues.append(Issue("warning", "unknown-field", message, ("metadata", str(name))))
    return issues


@lru_cache(maxsize=4096)
def _is_valid_type(member: str, text: str) -> bool:
    return bool((_KIND if member == "kind" else _VERSION).fullmatch(_PLACEHOLDER.sub("x", text)))


@lru_cache(maxsize=8192)
def _validate_name(name: str, free: bool) -> str | None:
    plain = _PLACEHOLDER.sub("x", name)
    if free:
        return None if len(plain) <= 253 and _PATH_SEGMENT.fullmatch(plain) else _PATH_SEGMENT_RULE
    return None if len(plain) <= 253 and _DNS_SUBDOMAIN.fullmatch(plain) else _DNS_SUBDOMAIN_RULE


@lru_cache(maxsize=1024)
def _validate_namespace(name: str) -> str | None:
    return None if _DNS_LABEL.fullmatch(_PLACEHOLDER.sub("x", name)) else _DNS_LABEL_RULE


def _validate_map(member: str, values: Any) -> list[Issue]:
    at = ("metadata", member)
    if not isinstance(values, dict):
        return [Issue("error", f"invalid-{member}", f"metadata.{member} must be a mapping of strings", at)]
    issues: list[Issue] = []
    for key, value in values.items():
        if len(issues) >= MAX_ISSUES:
            break
        if value.__class__ is not str and value is not None:
            shown = str(value).lower() if isinstance(value, (bool, int, float)) else ""
            hint = f'; quote it: "{shown}" (YAML reads yes, no, on, off and numbers as such)' if shown else ""
            kind = "boolean" if isinstance(value, bool) else "number" if shown else "list" if isinstance(value, list) else "mapping"
            issues.append(
                Issue("error", f"invalid-{member}", f"the value of {_quote(key)} is a {kind}, not a string{hint}", (*at, key))
            )
        elif not _is_valid_key((key if member == "labels" else key.lower())[:_MAX_LENGTH]):
            issues.append(Issue("error", f"invalid-{member}", f"{_quote(key)} cannot be a key of metadata.{member}", (*at, key)))
        elif member == "labels" and value and not _is_valid_value(value[:_MAX_LENGTH]):
            message = f"{_quote(value)} cannot be a label's value: {_LABEL_VALUE_RULE}"
            issues.append(Issue("error", "invalid-labels", message, (*at, key)))
    return issues


@lru_cache(maxsize=4096)
def _is_valid_key(text: str) -> bool:
    return is_label_key(_PLACEHOLDER.sub("x", text))


@lru_cache(maxsize=8192)
def _is_valid_value(text: str) -> bool:
    return is_label_value(_PLACEHOLDER.sub("x", text))


def _quote(text: str) -> str:
    """A text of the input, fit for one line of a message: shortened, with control characters escaped."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return "'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown) + "'"
