"""What a plan changes for one workload, for people to review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Key


class Move(NamedTuple):
    """`before` and `after` map clusters to replicas (None where the manifest is rendered as it is); empty means placed nowhere."""

    key: Key
    before: Mapping[str, int | None]
    after: Mapping[str, int | None]
    reason: str

    @property
    def lost(self) -> bool:
        """Whether the workload loses its last place."""
        return bool(self.before) and not self.after
