"""Find the objects that a kind, a namespace and a name on the command line stand for, and say what is similar to a missing one."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.model.document import Key

MAX_NAMES = 5
"""Names in one message."""


def find_key(known: Iterable[Key], kind: str, namespace: str, name: str) -> Key | None:
    """Return the key of an object; None if there is none. The kind is case-insensitive and may name the group, too."""
    return next((key for key in known if matches_name(key, kind, name) and key.namespace in (namespace, "")), None)


def describe_missing(known: Iterable[Key], kind: str, namespace: str, name: str) -> str:
    """Return the message that a resource does not exist, with similar ones: in another namespace, of another name or kind."""
    from difflib import get_close_matches  # rarely needed

    keys = list(known)
    kinds = {key.kind.lower(): key.kind for key in keys}
    similar = [key for key in keys if matches_name(key, kind, key.name)]
    cluster_scoped = bool(similar) and not any(key.namespace for key in similar)
    missing = f"there is no {kind} {name if cluster_scoped else f'{namespace}/{name}'} in the source"
    elsewhere = sorted({key.namespace for key in similar if key.name == name})[:MAX_NAMES]
    if elsewhere:
        return f"{missing}; there is one of that name in: {', '.join(elsewhere)}"
    if not similar:
        in_namespace = sorted(key.kind for key in keys if (key.namespace, key.name) == (kind, name))
        if in_namespace:
            return f"{missing}; did you mean {in_namespace[0]}/{kind}/{name}?"
        near = [kinds[word] for word in get_close_matches(kind.lower()[:100], kinds, n=1)]
        return f"{missing}, and nothing else of that kind" + (f"; did you mean {near[0]}?" if near else "")
    near = get_close_matches(name[:253], sorted({key.name for key in similar}), n=MAX_NAMES)
    return missing + (f"; did you mean {', '.join(near)}?" if near else "")


def matches_name(key: Key, kind: str, name: str) -> bool:
    """Return whether a name and KIND, KIND.GROUP or KIND.VERSION.GROUP, as kubectl accepts them, identify this object."""
    word, _, group = kind.lower().partition(".")
    return key.name == name and key.kind.lower() == word and (not group or key.group in (group, group.partition(".")[2]))
