"""What a policy API gives to `gitsched apply`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body, Key
    from gitsched.model.merge_patch import ApplicablePatches


class LiveApply(NamedTuple):
    """What `gitsched apply NAME` applies to a cluster with kubectl.

    `list_patches` gets the records of the output, the name of the cluster ("" for the only one) and more API groups that it may patch.
    `record_groups` are the API groups whose records it needs besides those; one that begins with "*." stands for subdomains.
    """

    summary: str
    description: str
    record_groups: frozenset[str]
    list_patches: Callable[[Iterable[tuple[Key, Body]], str, frozenset[str]], ApplicablePatches]
