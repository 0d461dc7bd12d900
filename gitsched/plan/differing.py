"""Where two versions of a document differ, member by member, in words that tell nothing secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from gitsched.model.document import Body
from gitsched.model.finding import Pointer

MOST = 50
"""Differences that are looked at in one document."""
_SHOWN = 48
_MISSING = object()
_NOISE = frozenset(
    ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "lastTransitionTime", "lastHeartbeatTime")
)
_SECRET = ("kubeconfig", "token", "password", "auth", "secret", "credential", "proxy", "certificate", "cabundle", "data")


class Difference(NamedTuple):
    """A member that differs. `text` is like `spec.replicas 2 -> 4`; `gone` says that the later version has no such member."""

    pointer: Pointer
    text: str
    gone: bool


def differences(before: Body, after: Body) -> list[Difference]:
    """The first differences between two documents; what servers stamp on them is left out."""
    return list(islice(_walk(before, after, ()), MOST))


def _walk(before: Any, after: Any, pointer: Pointer) -> Iterator[Difference]:
    if before is after or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*after, *before)):
            if name not in _NOISE:
                yield from _walk(before.get(name, _MISSING), after.get(name, _MISSING), (*pointer, name))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _walk_lists(before, after, pointer)
    else:
        yield Difference(pointer, _say(before, after, pointer), after is _MISSING)


def _walk_lists(before: list[Any], after: list[Any], pointer: Pointer) -> Iterator[Difference]:
    """Entries that both have at the ends are the same ones; between them, an equal number is compared and the rest came or went."""
    shortest = min(len(before), len(after))
    head = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    tail = next((at for at in range(shortest - head) if before[-1 - at] != after[-1 - at]), shortest - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for at in range(max(len(old), len(new))):
        yield from _walk(old[at] if at < len(old) else _MISSING, new[at] if at < len(new) else _MISSING, (*pointer, head + at))


def _say(before: Any, after: Any, pointer: Pointer) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in pointer)[1:]
    if any(word in str(part).lower() for part in pointer for word in _SECRET):
        return f"{path} changed"
    if before is _MISSING:
        return f"{path} added: {_show(after)}"
    if after is _MISSING:
        return f"{path} removed: {_show(before)}"
    return f"{path} {_show(before)} -> {_show(after)}"


def _show(value: Any) -> str:
    if isinstance(value, dict | list) and _holds_secret(value):
        return "..."
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _holds_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return any(word in str(name).lower() for name in value for word in _SECRET) or any(map(_holds_secret, value.values()))
    return isinstance(value, list) and any(map(_holds_secret, value))
