"""Types as the checker writes them: `int`, `list(int)`, `map(string, dyn)`; `dyn` fits anything, as does a part that is not named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

DYN = "dyn"
ANY = "T"
"""In a signature: any type, the same one wherever it stands."""


def head(kind: str) -> str:
    """The type without its parts."""
    return kind.partition("(")[0]


def list_of(entries: Iterable[str]) -> str:
    """A list of what its entries have in common."""
    return f"list({join(entries)})"


def map_of(keys: Iterable[str], values: Iterable[str]) -> str:
    return f"map({join(keys)}, {join(values)})"


def entry(kind: str) -> str:
    """What a list has in it, what a map gives for a key, what an optional holds."""
    parts = _parts(kind)
    return parts[-1] if parts else DYN


def key(kind: str) -> str:
    """What stands for an entry: the key of a map, the index of a list. Of a loop, use `passed`."""
    if head(kind) == "list":
        return "int"
    parts = _parts(kind)
    return parts[0] if len(parts) == 2 else "string" if kind == "cluster" else DYN


def passed(kind: str) -> str:
    """What a loop over it passes by: the entries of a list, the keys of a map."""
    return entry(kind) if head(kind) == "list" else key(kind)


def join(kinds: Iterable[str]) -> str:
    """The one type of all of these, `dyn` where they differ or there are none."""
    known = list(dict.fromkeys(kinds))
    first = known[0] if known else DYN
    return first if all(agree(first, kind) for kind in known[1:]) else DYN


def give(kinds: Sequence[str], wanted: Sequence[str], result: str) -> str | None:
    """What a function that wants and gives these gives for arguments of such types; None if it does not take them."""
    bound = _bind(kinds, wanted)
    fitting = all(agree(kind, _put(want, bound)) for kind, want in zip(kinds, wanted, strict=True))
    return _put(result, bound) if fitting else None


def _bind(kinds: Sequence[str], wanted: Sequence[str]) -> str:
    """What T of a signature stands for; a part of an argument tells before a whole one."""
    parts = (entry(kind) for kind, want in zip(kinds, wanted, strict=True) if want.endswith(f"({ANY})"))
    whole = (kind for kind, want in zip(kinds, wanted, strict=True) if want == ANY)
    return next((kind for kind in (*parts, *whole) if kind != DYN), DYN)


def _put(kind: str, bound: str) -> str:
    return bound if kind == ANY else kind.replace(f"({ANY})", f"({bound})")


def agree(one: str, other: str) -> bool:
    """Whether a value of one type may be of the other: a cluster is a map, too."""
    if DYN in (one, other):
        return True
    if one == "cluster" and head(other) == "map":
        return True
    if head(one) != head(other):
        return False
    return all(map(agree, ours, theirs)) if (ours := _parts(one)) and (theirs := _parts(other)) else True


def _parts(kind: str) -> list[str]:
    inner = kind.partition("(")[2].removesuffix(")")
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(inner):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append(inner[begin:at].strip())
            begin = at + 1
    return [*parts, inner[begin:].strip()] if inner else []
