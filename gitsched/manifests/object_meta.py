"""Recognize Kubernetes objects among other YAML files and values, and validate their type and metadata as an API server does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from gitsched.manifests.parsed_file import MAX_ISSUES, FileIssue, ParsedFile
from gitsched.manifests.plain_scalars import NON_STRING_KEY, NUMBER_START, RESERVED_SCALARS, NumberOutOfRange, resolve_number
from gitsched.manifests.printed_scalars import is_timestamp
from gitsched.model.document import Body, find_config_map, get_field, is_encrypted, is_namespaced, parse_api_group
from gitsched.model.finding import Issue, Pointer
from gitsched.model.labels import is_label_key, is_label_value
from gitsched.model.similar_names import find_similar
from gitsched.named_tuples import NamedTuple

_LOOKS_LIKE_MANIFEST = re.compile(r"""^[ \t{]*["']?(?:apiVersion|api|kind)["']?[ \t]*:""", re.MULTILINE)
_KEYS = [rf"""(?<![\w.$/-])["']?{name}["']?[ \t]*:|\?[ \t]+["']?{name}\b""" for name in ("kind", "(?:apiVersion|api)")]
"""Patterns of keys anywhere in a text. They are compiled only for a text with an error."""
_CONTENT = re.compile(r"^(?![ \t\r]*(?:#|$)|(?:---|\.\.\.)[ \t\r]*(?:#|$)|%)", re.MULTILINE)
_TEMPLATE_ACTION = re.compile(
    r"^[ \t]*(?:- +)?\{\{|:[ \t]+\{\{|\{\{-|\{\{[ \t]*(?:/\*|(?:if|else|end|range|with|include|template|tpl|define|block|toYaml"
    r"|default|quote|printf|lookup|required)\b|\$?\.(?:Values|Release|Chart|Capabilities|Files|Template)\b)",
    re.MULTILINE,
)

_UNREAD_TEMPLATE = FileIssue(
    "info",
    "helm-template",
    "this is a Helm template outside of a chart, so that it is not read: commit what `helm template` prints, or add the Chart.yaml; if it "
    "is not for the fleet, hide it with .sourceignore",
    1,
    1,
)


_UNREAD_JINJA = _UNREAD_TEMPLATE._replace(
    message="this is a template of Jinja, as Ansible has them, so that it is not read: commit what it renders; if it is not for the fleet, "
    "hide it with .sourceignore"
)
_OBJECT_MEMBERS: Final = frozenset(
    (
        *("addressType", "aggregationRule", "allowVolumeExpansion", "automountServiceAccountToken", "binaryData", "data"),
        *("description", "endpoints", "globalDefault", "handler", "imagePullSecrets", "immutable", "items", "mountOptions"),
        *("overhead", "parameters", "ports", "preemptionPolicy", "provisioner", "reclaimPolicy", "roleRef", "rules"),
        *("scheduling", "secrets", "spec", "status", "stringData", "subjects", "subsets", "type", "value", "volumeBindingMode"),
        "webhooks",
    )
)
"""The members of the objects of Kubernetes besides those that say what they are; custom resources have `spec`."""


def looks_like_manifest(text: str) -> bool:
    """Return whether a text that cannot be parsed looks like Kubernetes objects.

    One of their keys at the start of a line is enough. Elsewhere, as in JSON of one line or with other line breaks, both are needed.
    """
    return bool(_LOOKS_LIKE_MANIFEST.search(text)) or ("kind" in text and all(re.search(key, text) for key in _KEYS))


def is_helm_template(text: str) -> bool:
    """Return whether a text that cannot be parsed is a Helm template.

    Alert rules and ApplicationSets have `{{ }}` inside quotes, too; a template has it outside of quotes, or uses Helm's
    functions.
    """
    return "{{" in text and bool(_TEMPLATE_ACTION.search(text))


def make_template(text: str) -> ParsedFile:
    """Return the result for a template, which is no YAML until a tool renders it. One that looks like objects gets a note."""
    issue = _UNREAD_JINJA if "{%" in text else _UNREAD_TEMPLATE
    return ParsedFile("not-a-resource", (), (issue,) if looks_like_manifest(text) else (), reason="a template")


def is_blank(text: str) -> bool:
    """Return whether a text has only comments and document markers."""
    return not _CONTENT.search(text)


class DocumentClass(NamedTuple):
    """The class of a value in a file.

    `category` is resource, list, empty, other (not an object: `reason` says why) or nameless (an object without an identity:
    `code` and `reason` are the finding, `pointer` is its location, and `is_known` says whether the kind belongs to gitsched or
    Kubernetes; files of other tools may contain objects without a name).
    """

    category: str
    reason: str = ""
    code: str = ""
    pointer: Pointer = ()
    is_known: bool = True


_GENERATED_NAME = (
    "this {kind} is not read: it has generateName instead of metadata.name, and only an API server generates names; set metadata.name, "
    "or hide the file with .sourceignore"
)

_BARE_DATA = (
    "this is the data of ConfigMap {name} without the ConfigMap, so it has no effect: add apiVersion: v1, kind: ConfigMap, and metadata "
    "with name: {name}"
)
_ENCRYPTED_COMPLETELY = (
    "SOPS has encrypted the kind and the name of this object as well, so that it is not placed: encrypt only its data, with "
    "encrypted_regex: ^(data|stringData)$"
)
RESOURCE, LIST, EMPTY = DocumentClass("resource"), DocumentClass("list"), DocumentClass("empty")


def classify_document(value: Any) -> DocumentClass:
    """Classify a value by its own content. Objects of unversioned groups have `api` in place of apiVersion."""
    if value is None:
        return EMPTY
    if not isinstance(value, dict):
        return DocumentClass("other", "a list, such as a JSON patch" if isinstance(value, list) else "a bare text or number")
    kind, version, metadata = value.get("kind"), value.get("apiVersion", value.get("api")), value.get("metadata")
    if not isinstance(kind, str) or not isinstance(version, str) or not kind or not version:
        return _classify_incomplete(value, kind, version, metadata)
    if kind.startswith("ENC[") and is_encrypted(value):
        return DocumentClass("nameless", _ENCRYPTED_COMPLETELY, "sops-no-identity", ("kind",), False)
    if version.startswith("kustomize.config.k8s.io/") or version == "builtin":
        return DocumentClass("other", "configuration of kustomize")
    if kind.endswith("List") and isinstance(value.get("items"), list) and not _get_name(metadata):
        return LIST
    is_known = is_namespaced(parse_api_group(version), kind) is not None
    if metadata is None:
        if is_known and "/" in version:  # a kubeconfig has `kind: Config` in version v1
            return _missing_name(kind, is_known)
        return DocumentClass("other", f"a {kind} without metadata, such as a tool's configuration")
    if not isinstance(metadata, dict):
        return DocumentClass("nameless", "metadata must be a mapping", "invalid-metadata", ("metadata",))
    name = metadata.get("name")
    if name is None:
        if metadata.get("generateName") is not None and is_known:
            return DocumentClass(
                "nameless", _GENERATED_NAME.format(kind=kind), "generated-name", ("metadata", "generateName"), False
            )
        if "generateName" in metadata:
            return DocumentClass("other", "an object that gets its name from an API server (generateName)")
        return _missing_name(kind, is_known)
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


def _missing_name(kind: str, is_known: bool) -> DocumentClass:
    return DocumentClass("nameless", f"this {kind} has no metadata.name", "missing-name", ("metadata",), is_known)


def _classify_incomplete(value: Body, kind: Any, version: Any, metadata: Any) -> DocumentClass:
    config_map = find_config_map(value.get("data")) if kind is None and version is None else ""
    if config_map:
        return DocumentClass("nameless", _BARE_DATA.format(name=config_map), "missing-kind", ("data",))
    if not _get_name(metadata) or (kind is None and version is None):
        return DocumentClass("other", "a mapping without apiVersion and kind")
    if isinstance(kind, str) and "{{" in kind:
        return DocumentClass("other", "a template")
    members = value.keys() - {"apiVersion", "kind", "metadata"}
    if "kind" not in value and members and members.isdisjoint(_OBJECT_MEMBERS):
        return DocumentClass("other", "a file of another program, such as install-config.yaml of OpenShift")
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
_MAX_LENGTH = 1000  # no longer name is valid, so longer texts are neither checked nor cached
_PLACEHOLDER = re.compile(r"\$\{[^{}\s/]*\}")
_DNS_SUBDOMAIN_RULE = "at most 253 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
_DNS_LABEL_RULE = "at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit"
_LABEL_VALUE_RULE = "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
_PATH_SEGMENT_RULE = "at most 253 printable ASCII characters without '/', '%' and spaces, and not '.' or '..'"

_METADATA_FIELDS = frozenset(
    (
        *("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "managedFields", "uid"),
        *("resourceVersion", "selfLink", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
        *("clusterName", "initializers"),  # written by old API servers
    )
)
_TYPED_MEMBERS = frozenset(("generateName", "finalizers", "ownerReferences"))
_USER_FIELDS = ("name", "generateName", "namespace", "labels", "annotations")
LENIENT_NAME_GROUPS = frozenset({"rbac.authorization.k8s.io", "certificates.k8s.io"})
"""API groups whose names may be any path segment, such as `system:masters`."""
LENIENT_NAME_DOMAIN = ".openshift.io"
"""Suffix of further such groups: OpenShift validates Groups, ImageStreams and others by rules of its own, and accepts `a_b`."""


def validate_object_meta(body: Body) -> list[Issue]:
    """Return what an API server would reject in the metadata of an object with a name; placeholders such as ${NAME} are accepted.

    Documents without apiVersion have rules of their own: their policy API validates them.
    """
    if "apiVersion" not in body:
        return []
    metadata = body["metadata"]
    issues = [
        Issue("error", "invalid-type-meta", f"{_quote(text)} cannot be {role}", (member,))
        for member, role in (("kind", "a kind"), ("apiVersion", "an apiVersion: that is a group, '/' and a version, or v1"))
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
    issues.extend(_validate_fields(metadata, strict="." not in group or group.endswith(".k8s.io")))
    if not _TYPED_MEMBERS.isdisjoint(metadata):
        issues.extend(_validate_types(metadata))
    for member in ("labels", "annotations"):
        values = metadata.get(member)
        if values is not None:
            issues.extend(_validate_map(member, values))
    return issues


def _validate_fields(metadata: Body, *, strict: bool) -> list[Issue]:
    """Report unknown fields: a misspelt `labels` would remove all labels.

    Documents that are not validated `strict`ly, such as Backstage's, may have other fields, so only likely misspellings are
    reported.
    """
    if metadata.keys() <= _METADATA_FIELDS:
        return []
    issues = []
    for name in [name for name in metadata if name not in _METADATA_FIELDS][:MAX_ISSUES]:
        similar = find_similar(str(name), _METADATA_FIELDS if strict else _USER_FIELDS, 0.6 if strict else 0.75)
        if not similar and not strict:
            continue
        hint = f"; did you mean {similar!r}?" if similar else ""
        message = f"the field {_quote(str(name))} is unknown and ignored{hint}"
        issues.append(Issue("warning", "unknown-field", message, ("metadata", str(name))))
    return issues


def _validate_types(metadata: Body) -> Iterator[Issue]:
    """Yield errors for members that few objects have, of which kubectl refuses any other type."""
    prefix, finalizers, owners = (metadata.get(name) for name in ("generateName", "finalizers", "ownerReferences"))
    if not isinstance(prefix, str | None):
        yield _make_type_issue("a string", "generateName")
    for member, entries, kind, name in (
        ("finalizers", finalizers, str | None, "a string"),
        ("ownerReferences", owners, dict | None, "a mapping"),
    ):
        if not isinstance(entries, list | None):
            yield _make_type_issue("a list", member)
            continue
        for index, entry in enumerate(entries or ()):
            if not isinstance(entry, kind):
                yield _make_type_issue(name, member, index)
            elif isinstance(entry, dict):
                for field in ("apiVersion", "kind", "name", "uid"):
                    if not isinstance(entry.get(field), str | None):
                        yield _make_type_issue("a string", member, index, field)
                    elif not entry.get(field):
                        message = f"'{field}' is required in an owner reference"
                        yield Issue("error", "missing-field", message, ("metadata", member, index))
                for field in ("controller", "blockOwnerDeletion"):
                    if not isinstance(entry.get(field), bool | None):
                        yield _make_type_issue("true or false", member, index, field)


def _make_type_issue(expected: str, *path: str | int) -> Issue:
    return Issue(
        "error", "wrong-type", f"'{path[-1] if isinstance(path[-1], str) else path[0]}' must be {expected}", ("metadata", *path)
    )


def _expand(text: str) -> str:
    """Return a text with a letter in place of each placeholder."""
    return _PLACEHOLDER.sub("x", text) if "$" in text else text


@lru_cache(maxsize=4096)
def _is_valid_type(member: str, text: str) -> bool:
    return bool((_KIND if member == "kind" else _VERSION).fullmatch(_expand(text)))


@lru_cache(maxsize=8192)
def _validate_name(name: str, free: bool) -> str | None:
    expanded = _expand(name)
    if free:
        return None if len(expanded) <= 253 and _PATH_SEGMENT.fullmatch(expanded) else _PATH_SEGMENT_RULE
    return None if len(expanded) <= 253 and _DNS_SUBDOMAIN.fullmatch(expanded) else _DNS_SUBDOMAIN_RULE


@lru_cache(maxsize=1024)
def _validate_namespace(name: str) -> str | None:
    return None if _DNS_LABEL.fullmatch(_expand(name)) else _DNS_LABEL_RULE


def has_null_annotation(value: Any) -> bool:
    """Return whether an object has an annotation without a value, of which kubectl and kustomize may read different texts."""
    annotations = get_field(value, "metadata", "annotations")
    return isinstance(annotations, dict) and None in annotations.values()


def _validate_map(member: str, values: Any) -> list[Issue]:
    pointer = ("metadata", member)
    if not isinstance(values, dict):
        return [Issue("error", f"invalid-{member}", f"metadata.{member} must be a mapping of strings", pointer)]
    issues: list[Issue] = []
    for key, value in values.items():
        if len(issues) >= MAX_ISSUES:
            break
        if value.__class__ is not str and value is not None:
            shown = str(value).lower() if isinstance(value, (bool, int, float)) else ""
            hint = f'; quote it: "{shown}" (YAML reads yes, no, on, off and numbers as such)' if shown else ""
            kind = "boolean" if isinstance(value, bool) else "number" if shown else "list" if isinstance(value, list) else "mapping"
            issues.append(
                Issue("error", f"invalid-{member}", f"the value of {_quote(key)} is a {kind}, not a string{hint}", (*pointer, key))
            )
        elif not _is_valid_key((key if member == "labels" else key.lower())[:_MAX_LENGTH]):
            issues.append(
                Issue("error", f"invalid-{member}", f"{_quote(key)} cannot be a key of metadata.{member}", (*pointer, key))
            )
        elif member == "annotations" and (key[0] in NUMBER_START or key in RESERVED_SCALARS) and _is_misread_key(key[:_MAX_LENGTH]):
            message = (
                f"kustomize does not read an annotation with the key {_quote(key)}, even in quotes: choose a key that is a text"
            )
            issues.append(Issue("error", NON_STRING_KEY, message, (*pointer, key)))
        elif member == "labels" and value and not _is_valid_value(value[:_MAX_LENGTH]):
            message = f"{_quote(value)} cannot be a label's value: {_LABEL_VALUE_RULE}"
            issues.append(Issue("error", "invalid-labels", message, (*pointer, key)))
    return issues


@lru_cache(maxsize=256)
def _is_misread_key(text: str) -> bool:
    """Return whether kyaml takes a key of an annotation for a number, a boolean, null or a date: it ignores quotes there."""
    if text in RESERVED_SCALARS:
        return text.lower() in ("true", "false", "null")
    try:
        return not isinstance(resolve_number(text), str) or is_timestamp(text)
    except NumberOutOfRange:
        return True


@lru_cache(maxsize=4096)
def _is_valid_key(text: str) -> bool:
    return is_label_key(_expand(text))


@lru_cache(maxsize=8192)
def _is_valid_value(text: str) -> bool:
    return is_label_value(_expand(text))


def _quote(text: str) -> str:
    """Quote a text of the input for a one-line message: shortened, with control characters escaped."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return "'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown) + "'"
