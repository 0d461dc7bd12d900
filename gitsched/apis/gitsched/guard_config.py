"""Settings of the guard: its limits and the freeze, which of two settings is stricter, and limits that cannot have an effect."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from gitsched.model.finding import Issue
from gitsched.model.time import format_duration
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config_section import ConfigSection

Limits = Mapping[str, Mapping[str, float]]
"""Percentages by scope and effect."""

GUARD_LIMITS: Final[Limits] = {
    "fleet": {
        "removed": 20.0,
        "moved": 30.0,
        "movedPerPeriod": 10.0,
        "replicasLost": 30.0,
        "replicasAdded": 50.0,
        "clustersUnready": 50.0,
    },
    "namespace": {"removed": 50.0, "movedPerPeriod": 25.0},
    "cluster": {"removed": 90.0, "movedPerPeriod": 25.0},
    "workload": {"replicasLost": 90.0},
}
"""The limits where gitsched.yaml has none."""
_EFFECTS: Final[Mapping[str, tuple[str, ...]]] = {
    "fleet": ("removed", "moved", "movedPerPeriod", "replicasLost", "replicasAdded", "clustersUnready"),
    "namespace": ("removed", "moved", "movedPerPeriod", "replicasLost", "replicasAdded"),
    "cluster": ("removed", "movedPerPeriod"),
    "workload": ("replicasLost", "replicasAdded"),
}
"""The effects that can be limited in each scope."""


MIN_PERCENT_SIZE: Final = 10
"""Limits in percent apply to scopes with more workloads than this, and to workloads with more replicas."""
MIN_SCOPE_SIZE: Final = 3
"""In a smaller fleet or namespace only the removal of everything counts, if it has more workloads than this."""
DEFAULT_PERIOD: Final = timedelta(minutes=10)
"""The period of the limits `movedPerPeriod`."""
MAX_PERCENT: Final = sys.float_info.max
"""The largest number that a limit may be: there may be any number of times more replicas than before."""
_OFF = 100.0
"""A limit that allows everything."""


class GuardConfig(NamedTuple):
    """The guard withholds changes over one of the limits, in percent by scope and effect; without a limit an effect is not guarded.

    `freeze` says why no placement changes except by failover; "" if placements are not frozen. With `hold_stateful`, workloads with data
    stay in their clusters until they are released. The limits `movedPerPeriod` are for moves that observations alone cause, in each
    `period`; with `limits_evictions`, also for failover.
    """

    limits: Limits = GUARD_LIMITS
    freeze: str = ""
    hold_stateful: bool = True
    period: timedelta = DEFAULT_PERIOD
    limits_evictions: bool = False

    def tighten(self, other: GuardConfig) -> GuardConfig:
        """Return the stricter one of each limit of two settings. What one of them freezes is frozen, and what one of them holds is held."""
        limits = {}
        for scope, effects in _EFFECTS.items():
            one, two = self.limits.get(scope, {}), other.limits.get(scope, {})
            limits[scope] = {
                effect: min(found[effect] for found in (one, two) if effect in found)
                for effect in effects
                if effect in one or effect in two
            }
        return GuardConfig(
            limits,
            self.freeze or other.freeze,
            self.hold_stateful or other.hold_stateful,
            max(self.period, other.period),
            self.limits_evictions or other.limits_evictions,
        )

    def replace_limits(self, limits: Iterable[GuardLimit]) -> GuardConfig:
        """Return these settings with some other limits."""
        replaced = {scope: dict(effects) for scope, effects in self.limits.items()}
        for limit in limits:
            replaced.setdefault(limit.scope, {})[limit.effect] = limit.percent
        return self._replace(limits=replaced)

    def list_loosened(self, before: GuardConfig) -> Iterator[str]:
        """Yield what allows more than earlier settings, such as "fleet.removed: 20 -> 100"."""
        for scope, effects in _EFFECTS.items():
            for effect in effects:
                old, new = (config.limits.get(scope, {}).get(effect) for config in (before, self))
                if old is not None and (new is None or new > old):
                    yield f"{scope}.{effect}: {old:g} -> {'no limit' if new is None else f'{new:g}'}"
        if before.freeze and not self.freeze:
            yield "freeze is lifted"
        if before.hold_stateful and not self.hold_stateful:
            yield "holdStateful: true -> false"
        if self.period < before.period:
            yield f"period: {format_duration(before.period)} -> {format_duration(self.period)}"
        if before.limits_evictions and not self.limits_evictions:
            yield "limitEvictions: true -> false"


class GuardLimit(NamedTuple):
    """One limit in percent."""

    scope: str
    effect: str
    percent: float


def parse_limit(text: str) -> GuardLimit:
    """Parse a limit such as fleet.removed=50; ValueError says what is wrong."""
    name, separator, value = text.partition("=")
    scope, _, effect = name.partition(".")
    if effect not in _EFFECTS.get(scope, ()):
        known = ", ".join(f"{scope}.{effect}" for scope, effects in _EFFECTS.items() for effect in effects)
        raise ValueError(f"the guard has no limit {name!r}; it has {known}")
    try:
        percent = float(value)
    except ValueError:
        percent = -1.0
    if not separator or not 0 <= percent <= 1_000_000:
        raise ValueError(f"{value!r} is no percentage; write {name}=50")
    return GuardLimit(scope, effect, percent)


def parse_guard(guard: ConfigSection, upstream: bool) -> GuardConfig:
    """Read the section `guard` of gitsched.yaml. With `upstream`, workloads with data are not held by default."""
    limits = {}
    for scope, effects in _EFFECTS.items():
        section, defaults = guard.get_section(scope), GUARD_LIMITS[scope]
        limits[scope] = {
            effect: section.get_number(effect, defaults.get(effect, 0.0))
            for effect in effects
            if effect in defaults or section.values.get(effect) is not None
        }
    period = guard.get_duration("period", DEFAULT_PERIOD)
    if period < timedelta(seconds=1) or period.microseconds:
        guard.reject("period", "a duration of whole seconds, such as 10m")
    return GuardConfig(
        limits,
        guard.get_string("freeze").strip(),
        guard.get_bool("holdStateful", not upstream),
        period,
        guard.get_bool("limitEvictions", False),
    )


def check_guard(config: GuardConfig) -> Iterator[Issue]:
    """List limits that contradict each other, and a guard that is turned off."""
    fleet, namespace, cluster = (config.limits.get(scope, {}) for scope in ("fleet", "namespace", "cluster"))
    pairs = [
        (effect, "namespace", effect, namespace.get(effect)) for effect in ("removed", "moved", "replicasLost", "replicasAdded")
    ]
    pairs += [(effect, "cluster", "removed", cluster.get("removed")) for effect in ("removed", "moved")]
    for effect, scope, inner, percent in pairs:
        allowed = fleet.get(effect, _OFF)
        if percent is not None and percent < allowed < _OFF:
            message = (
                f"guard.{scope}.{inner} is {percent:g}, which is less than guard.fleet.{effect} ({allowed:g}): a change of the whole fleet "
                f"exceeds the limit of each {scope} first; lower the limit of the fleet, or raise the other one"
            )
            yield Issue("warning", "guard-limits", message, ("spec", "guard", scope, inner))
    limits = [fleet.get(effect, _OFF) for effect in ("removed", "moved")]
    if not config.freeze and min(*limits, namespace.get("removed", _OFF), cluster.get("removed", _OFF)) >= _OFF:
        cure = "set spec.guard.fleet.removed and spec.guard.fleet.moved"
        message = f"the guard withholds no removal and no move, because all limits are 100: {cure}"
        yield Issue("warning", "guard-limits", message, ("spec", "guard", "fleet", "removed"))
