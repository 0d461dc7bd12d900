"""The setting `reserve`: which losses of clusters the workloads of the fleet, a namespace or a tenant have to survive completely."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from gitsched.model.document import get_field
from gitsched.model.reserve import RESERVE_LOSSES
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config_section import ConfigSection


_PATTERN = re.compile(r"[a-z0-9*?-]{1,63}")


class ReserveConfig(NamedTuple):
    """`lose` is the loss that all workloads have to survive, "" for none, `namespaces` what those in some namespaces have to survive
    besides, by pattern."""

    lose: str = ""
    namespaces: Mapping[str, str] = {}

    def list_losses(self, namespace: str) -> list[str]:
        """Return what the workloads of a namespace have to survive; "" is that of cluster-scoped objects."""
        own = (lose for pattern, lose in self.namespaces.items() if fnmatchcase(namespace, pattern))
        return list(dict.fromkeys(filter(None, (self.lose, *own))))


def requires_reserve(configs: Iterable[ReserveConfig], tenants: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether any of some settings, or of Tenants as gitsched.json records them, is about losses."""
    return any(any(config) for config in configs) or any(get_field(dict(body), "spec", "reserve", "lose") for body in tenants)


def parse_reserve(reserve: ConfigSection) -> ReserveConfig:
    """Parse the section `reserve`. Raises SettingError for another loss than those of RESERVE_LOSSES, and for what is no pattern."""
    namespaces = reserve.get_section("namespaces")
    for pattern in namespaces.values:
        if not _PATTERN.fullmatch(str(pattern)):
            namespaces.reject(str(pattern), "below the name of a namespace, or a pattern with * and ?")
    return ReserveConfig(
        _read_loss(reserve),
        {pattern: lose for pattern in namespaces.values if (lose := _read_loss(namespaces.get_section(pattern)))},
    )


def _read_loss(section: ConfigSection) -> str:
    lose = section.get_string("lose")
    return lose if lose in ("", *RESERVE_LOSSES) else section.reject("lose", f"one of {', '.join(map(repr, RESERVE_LOSSES))}")
