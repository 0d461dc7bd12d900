"""References: the objects that a manifest requires in its cluster, and those that its controller writes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Key


class RequiredObject(NamedTuple):
    """An object that a manifest refers to. One that is not `expected` counts only if the source has it."""

    key: Key
    expected: bool = True


class References(NamedTuple):
    """What a manifest `requires`, and the objects that its controller `writes`; namespace "" stands for every namespace there."""

    requires: tuple[RequiredObject, ...] = ()
    writes: tuple[Key, ...] = ()


NO_REFERENCES = References()
