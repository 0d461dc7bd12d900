"""Find the objects that a kind, a namespace and a name on the command line stand for, and say what is similar to a missing one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gitsched.kinds.pods import POD_SPECS
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.finding import format_names
from gitsched.model.similar_names import describe_similar, list_extended, suggest_names
from gitsched.report.lines import format_words

MAX_NAMES = 5
"""Names in one message."""


def complete_name(known: Collection[Key], kind: str, namespace: str | None, name: str) -> tuple[str, str, str]:
    """Return kind, namespace and name of what was typed. A name alone, with kind "", or NAMESPACE/NAME in place of KIND/NAME, stands for
    the workload of this name, else for the only object. Raise Permanent for several ones.

    Without a namespace, an object of a kind is in `default`, else it is the only one of the kind with this name. A kind that is "" still
    may be that of a cluster.
    """
    if kind and find_key(known, kind, namespace or "default", name) is not None:
        return kind, namespace or "default", name
    found: list[Key] = []
    if not kind:
        found = [key for key in known if key.name == name and namespace in (None, key.namespace)]
    elif namespace is None:
        found = [key for key in known if matches_name(key, kind, name)]
        found = found or [key for key in known if (key.namespace, key.name) == (kind, name)]
    chosen = choose_workload(found)
    if chosen is not None:
        return f"{chosen.kind}.{chosen.group}" if chosen.group else chosen.kind, chosen.namespace, chosen.name
    if found:
        raise Permanent(describe_choice(f"{kind}/{name}" if kind else name, found))
    return kind, namespace or "", name


def find_named(known: Collection[Key], kind: str, namespace: str | None, name: str) -> Key:
    """Return the object that was typed; see `complete_name`. Raise Permanent for none and for several ones."""
    completed = complete_name(known, kind, namespace, name)
    key = find_key(known, *completed) if completed[0] else None
    if key is None:
        raise Permanent(describe_missing(known, *completed))
    return key


def choose_workload(found: Collection[Key]) -> Key | None:
    """Return the only object, or the only one of a kind with pods; None if there are several."""
    with_pods = [key for key in found if key[:2] in POD_SPECS]
    return next((keys[0] for keys in ([*found], with_pods) if len(keys) == 1), None)


def describe_choice(text: str, found: Iterable[Key]) -> str:
    """Return the message that a name stands for several objects."""
    return f"{text!r} stands for {format_names(sorted(map(format_words, found)), MAX_NAMES)}: give the kind and the namespace"


def find_key(known: Iterable[Key], kind: str, namespace: str, name: str) -> Key | None:
    """Return the key of an object; None if there is none. The kind is case-insensitive and may name the group, too."""
    return next((key for key in known if matches_name(key, kind, name) and key.namespace in (namespace, "")), None)


def describe_missing(known: Iterable[Key], kind: str, namespace: str, name: str, clusters: Collection[str] = ()) -> str:
    """Return the message that a resource does not exist, with similar ones: in another namespace, of another name or kind. Where the kind
    is not known, it may be the name of one of the `clusters`, too."""
    keys = list(known)
    if not namespace and any(key.namespace == kind for key in keys):
        return _describe_missing_name(keys, kind, name, ())
    if not kind:
        return _describe_missing_name(keys, namespace, name, clusters)
    kinds = {key.kind for key in keys}
    similar = [key for key in keys if matches_name(key, kind, key.name)]
    cluster_scoped = bool(similar) and not any(key.namespace for key in similar)
    missing = f"there is no {kind} {name if cluster_scoped or not namespace else f'{namespace}/{name}'} in the source"
    elsewhere = sorted({key.namespace for key in similar if key.name == name})[:MAX_NAMES]
    if elsewhere:
        return f"{missing}; there is one of that name in: {', '.join(elsewhere)}"
    if not similar:
        near = describe_similar(kind, kinds, 1)
        near = near or describe_similar(f"{kind}/{name}", {f"{key.namespace}/{key.name}" for key in keys}, 1)
        return f"{missing}, and nothing else of that kind{near}"
    return missing + (_suggest_names(name, {key.name for key in similar}) or _list_names(name, similar, namespace))


def _describe_missing_name(keys: Collection[Key], namespace: str, name: str, clusters: Collection[str]) -> str:
    missing = f"there is no workload and no cluster {name!r}{f' in namespace {namespace}' if namespace else ''}"
    elsewhere = sorted({key.namespace for key in keys if key.name == name and key.namespace})[:MAX_NAMES]
    if elsewhere:
        return f"{missing}; there is one of that name in: {', '.join(elsewhere)}"
    names = {*(key.name for key in keys if namespace in ("", key.namespace)), *(clusters if not namespace else ())}
    return missing + (_suggest_names(name, names) or "; `gitsched status --workloads` lists the workloads")


def _list_names(name: str, keys: Iterable[Key], namespace: str) -> str:
    """Return the names of objects in a namespace, and those without one, as the end of a message; "" if there are none."""
    found = [key.name for key in keys if key.namespace in (namespace, "")]
    return suggest_names(name, found) if found else ""


def _suggest_names(name: str, known: Collection[str]) -> str:
    """Return the end of a message that a name does not exist: those that have a prefix or a suffix more, else the similar ones."""
    extended = list_extended(name, known)
    return f"; did you mean {' or '.join(extended)}?" if extended else describe_similar(name, known)


def matches_name(key: Key, kind: str, name: str) -> bool:
    """Return whether a name and KIND, KIND.GROUP or KIND.VERSION.GROUP, as kubectl accepts them, identify this object. "policy" stands
    for a PropagationPolicy or a ClusterPropagationPolicy."""
    word, _, group = kind.lower().partition(".")
    is_kind = key.kind.lower() == word or (word == "policy" and key.kind.endswith("PropagationPolicy"))
    return key.name == name and is_kind and (not group or key.group in (group, group.partition(".")[2]))
