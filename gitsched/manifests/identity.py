"""Names, namespaces, labels and annotations, by the rules of an API server; whatever the kind."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from gitsched.manifests.limits import MOST_PROBLEMS
from gitsched.model.document import Body, group_of
from gitsched.model.issue import Issue
from gitsched.model.labels import is_label_key, is_label_value

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[!-$&-.0-~]+", re.ASCII)
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}", re.ASCII)
_VERSION = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,252}/)?[A-Za-z0-9][A-Za-z0-9.-]{0,62}", re.ASCII)
_LONGEST = 1000  # no name is valid beyond, so no longer text is judged, or remembered
_PLACEHOLDER = re.compile(r"\$\{[^{}\s/]*\}")
_SUBDOMAIN_RULE = "at most 253 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
_LABEL_RULE = "at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit"
_VALUE_RULE = "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
_SEGMENT_RULE = "at most 253 printable ASCII characters without '/', '%' and spaces, and not '.' or '..'"

_MEMBERS = frozenset(
    (
        *("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "managedFields", "uid"),
        *("resourceVersion", "selfLink", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
        *("clusterName", "initializers"),  # of servers long ago, still in dumps
    )
)
_PEOPLES = ("name", "generateName", "namespace", "labels", "annotations")
FREE_GROUPS = frozenset({"rbac.authorization.k8s.io", "certificates.k8s.io"})
"""Groups whose names may be any path segment: `system:masters` is one."""
FREE_DOMAIN = ".openshift.io"
"""The end of more such groups: OpenShift serves Groups, ImageStreams and others by rules of its own, and takes `a_b`."""


def check_identity(body: Body) -> list[Issue]:
    """What an API server would refuse in the metadata of an object with a name; placeholders such as ${NAME} pass.

    Krake's documents, which have no apiVersion, follow rules of their own: their API judges them.
    """
    if "apiVersion" not in body:
        return []
    metadata = body["metadata"]
    issues = [
        Issue("error", "invalid-type-meta", f"{_quote(text)} cannot be {what}", (member,))
        for member, what in (("kind", "a kind"), ("apiVersion", "an apiVersion: that is a group, '/' and a version, or v1"))
        if isinstance(text := body.get(member), str) and not _is_type(member, text[:_LONGEST])
    ]
    name, namespace = metadata["name"], metadata.get("namespace")
    group = group_of(str(body["apiVersion"]))
    problem = _judge_name(name[:_LONGEST], group in FREE_GROUPS or group.endswith(FREE_DOMAIN))
    if not problem and body["kind"] == "Namespace" and body.get("apiVersion") == "v1":
        problem = _judge_namespace(name)
    if problem:
        issues.append(
            Issue("error", "invalid-name", f"{_quote(name)} cannot name an object: a name is {problem}", ("metadata", "name"))
        )
    problem = _judge_namespace(namespace[:_LONGEST]) if namespace else None
    if problem:
        message = f"{_quote(str(namespace))} cannot be a namespace: a namespace is {problem}"
        issues.append(Issue("error", "invalid-namespace", message, ("metadata", "namespace")))
    issues.extend(_find_unknown(metadata, own="." not in group or group.endswith(".k8s.io")))
    for member in ("labels", "annotations"):
        values = metadata.get(member)
        if values is not None:
            issues.extend(_check_map(member, values))
    return issues


def _find_unknown(metadata: Body, *, own: bool) -> list[Issue]:
    """Members that no object has: a misspelt `labels` takes every label away.

    Documents that are none of Kubernetes' `own`, such as Backstage's, may have more, so of these only what looks misspelt is told.
    """
    if metadata.keys() <= _MEMBERS:
        return []
    from difflib import get_close_matches  # rarely needed

    issues = []
    for name in [name for name in metadata if name not in _MEMBERS][:MOST_PROBLEMS]:
        near = get_close_matches(str(name)[:100], sorted(_MEMBERS) if own else _PEOPLES, n=1, cutoff=0.6 if own else 0.75)
        if not near and not own:
            continue
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"the field {_quote(str(name))} is unknown and ignored{hint}"
        issues.append(Issue("warning", "unknown-field", message, ("metadata", str(name))))
    return issues


@lru_cache(maxsize=4096)
def _is_type(member: str, text: str) -> bool:
    return bool((_KIND if member == "kind" else _VERSION).fullmatch(_PLACEHOLDER.sub("x", text)))


@lru_cache(maxsize=8192)
def _judge_name(name: str, free: bool) -> str | None:
    plain = _PLACEHOLDER.sub("x", name)
    if free:
        return None if len(plain) <= 253 and _SEGMENT.fullmatch(plain) else _SEGMENT_RULE
    return None if len(plain) <= 253 and _SUBDOMAIN.fullmatch(plain) else _SUBDOMAIN_RULE


@lru_cache(maxsize=1024)
def _judge_namespace(name: str) -> str | None:
    return None if _LABEL.fullmatch(_PLACEHOLDER.sub("x", name)) else _LABEL_RULE


def _check_map(member: str, values: Any) -> list[Issue]:
    at = ("metadata", member)
    if not isinstance(values, dict):
        return [Issue("error", f"invalid-{member}", f"metadata.{member} must be a mapping of strings", at)]
    issues: list[Issue] = []
    for key, value in values.items():
        if len(issues) >= MOST_PROBLEMS:
            break
        if value.__class__ is not str and value is not None:
            shown = str(value).lower() if isinstance(value, (bool, int, float)) else ""
            hint = f'; quote it: "{shown}" (YAML reads yes, no, on, off and numbers as such)' if shown else ""
            kind = "boolean" if isinstance(value, bool) else "number" if shown else "list" if isinstance(value, list) else "mapping"
            issues.append(
                Issue("error", f"invalid-{member}", f"the value of {_quote(key)} is a {kind}, not a string{hint}", (*at, key))
            )
        elif not _is_key((key if member == "labels" else key.lower())[:_LONGEST]):
            issues.append(Issue("error", f"invalid-{member}", f"{_quote(key)} cannot be a key of metadata.{member}", (*at, key)))
        elif member == "labels" and value and not _is_value(value[:_LONGEST]):
            message = f"{_quote(value)} cannot be a label's value: {_VALUE_RULE}"
            issues.append(Issue("error", "invalid-labels", message, (*at, key)))
    return issues


@lru_cache(maxsize=4096)
def _is_key(text: str) -> bool:
    return is_label_key(_PLACEHOLDER.sub("x", text))


@lru_cache(maxsize=8192)
def _is_value(text: str) -> bool:
    return is_label_value(_PLACEHOLDER.sub("x", text))


def _quote(text: str) -> str:
    """A text of the input, fit for one line of a message: shortened, with control characters escaped."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return "'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown) + "'"
