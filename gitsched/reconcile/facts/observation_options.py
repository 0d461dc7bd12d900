"""How a run gets values from outside of Git."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.allow_list import AllowList
    from gitsched.model.document import Body


class ObservationOptions(NamedTuple):
    """How to get values. With `live`, providers are queried that the operator allows, together for at most `timeout` seconds.

    `list_trusted_documents` returns the documents that may choose providers; None if the documents of the run may. It is called only
    where `output_trusted` says that the planned commit did not choose them itself.
    """

    live: bool
    allow: AllowList
    timeout: float
    list_trusted_documents: Callable[[], Iterable[Body]] | None = None
    output_trusted: bool = True
