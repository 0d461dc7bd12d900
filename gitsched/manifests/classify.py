"""What a file or a value is, when it is no Kubernetes object: told quietly, since repositories hold many such files."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from gitsched.model.document import Body, group_of
from gitsched.model.scope import is_namespaced

_LOOKS_LIKE_MANIFEST = re.compile(r"""^[ \t{]*["']?(?:apiVersion|api|kind)["']?[ \t]*:""", re.MULTILINE)
_SOMETHING = re.compile(r"^(?![ \t\r]*(?:#|$)|(?:---|\.\.\.)[ \t\r]*(?:#|$)|%)", re.MULTILINE)
_ACTION = re.compile(
    r"^[ \t]*(?:- +)?\{\{|:[ \t]+\{\{|\{\{-|\{\{[ \t]*(?:/\*|(?:if|else|end|range|with|include|template|tpl|define|block|toYaml"
    r"|default|quote|printf|lookup|required)\b|\$?\.(?:Values|Release|Chart|Capabilities|Files|Template)\b)",
    re.MULTILINE,
)


def looks_like_manifest(text: str) -> bool:
    """Whether a text that cannot be read seems to be meant as Kubernetes objects."""
    return bool(_LOOKS_LIKE_MANIFEST.search(text))


def is_template(text: str) -> bool:
    """Whether a text that cannot be read is a template of Helm's.

    Alert rules and ApplicationSets have `{{ }}` inside quotes, too; a template has it outside of them, or uses Helm's own words.
    """
    return "{{" in text and bool(_ACTION.search(text))


def is_blank(text: str) -> bool:
    """Whether a text holds nothing but comments and document markers."""
    return not _SOMETHING.search(text)


class Kind(NamedTuple):
    """How one value of a file is to be taken.

    `what` is resource, list, empty, other (no object: `reason` says why) or nameless (an object that lacks what identifies it:
    `code` and `reason` are the finding, `pointer` its place, and `known` says that the kind is one that gitsched or Kubernetes defines:
    a file of some other tool may well hold objects without a name).
    """

    what: str
    reason: str = ""
    code: str = ""
    pointer: tuple[str | int, ...] = ()
    known: bool = True


RESOURCE, LIST, EMPTY = Kind("resource"), Kind("list"), Kind("empty")


def classify(value: Any) -> Kind:
    """A value by its own content. Krake's objects carry `api` where Kubernetes' carry apiVersion."""
    if value is None:
        return EMPTY
    if not isinstance(value, dict):
        return Kind("other", "a list, such as a JSON patch" if isinstance(value, list) else "a bare text or number")
    kind, version, metadata = value.get("kind"), value.get("apiVersion", value.get("api")), value.get("metadata")
    if not isinstance(kind, str) or not isinstance(version, str) or not kind or not version:
        return _classify_incomplete(value, kind, version, metadata)
    if version.startswith("kustomize.config.k8s.io/") or version == "builtin":
        return Kind("other", "configuration of kustomize")
    if kind.endswith("List") and isinstance(value.get("items"), list) and not _name_of(metadata):
        return LIST
    known = is_namespaced(group_of(version), kind) is not None
    if metadata is None:
        if known and "/" in version:  # in the core there is kubeconfig's `kind: Config`
            return _nameless(kind, known)
        return Kind("other", f"a {kind} without metadata, such as a tool's configuration")
    if not isinstance(metadata, dict):
        return Kind("nameless", "metadata must be a mapping", "invalid-metadata", ("metadata",))
    name = metadata.get("name")
    if name is None:
        if "generateName" in metadata:
            return Kind("other", "an object that gets its name from an API server (generateName)")
        return _nameless(kind, known)
    for member in ("name", "namespace"):
        text = metadata.get(member)
        if text is not None and not isinstance(text, str):
            return Kind(
                "nameless",
                f"metadata.{member} must be a string, not {_say(text)}; quote it",
                f"invalid-{member}",
                ("metadata", member),
            )
    if any("}}" in text.partition("{{")[2] for text in (name, kind, version, metadata.get("namespace") or "")):
        return Kind("other", "a template")
    return RESOURCE


def _nameless(kind: str, known: bool) -> Kind:
    return Kind("nameless", f"this {kind} has no metadata.name", "missing-name", ("metadata",), known)


def _classify_incomplete(value: Body, kind: Any, version: Any, metadata: Any) -> Kind:
    if not _name_of(metadata) or (kind is None and version is None):
        return Kind("other", "a mapping without apiVersion and kind")
    if isinstance(kind, str) and "{{" in kind:
        return Kind("other", "a template")
    missing = "kind" if not isinstance(kind, str) or not kind else "apiVersion"
    if missing in value and value[missing] is not None:
        return Kind("nameless", f"{missing} must be a non-empty string", "invalid-type-meta", (missing,))
    return Kind("nameless", f"this object has no {missing}", "missing-kind" if missing == "kind" else "missing-api-version")


def _name_of(metadata: Any) -> Any:
    return metadata.get("name") if isinstance(metadata, dict) else None


def _say(value: Any) -> str:
    if isinstance(value, bool):
        return f"the boolean {'true' if value else 'false'}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a mapping" if isinstance(value, dict) else "a list"
