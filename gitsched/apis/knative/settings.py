"""The section `knative` of gitsched.yaml: Knative's settings, their defaults and their parser."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from gitsched.apis.gitsched.config_section import ConfigSection, SettingsSection
from gitsched.named_tuples import NamedTuple


class AutoscalerConfig(NamedTuple):
    """Settings of the autoscaler. Without `leader`, or with `skip` in one run, the number of pods does not change.

    `compact_age` is the time since the last compaction; it replaces the time recorded on the output branch.
    """

    attempt_scale_down: bool = True
    leader: bool = True
    skip: bool = False
    refresh_period: timedelta = timedelta(seconds=10)
    compact_age: timedelta | None = None


class VpodKind(NamedTuple):
    """A kind of event source; `replicas_path` is the path of its number of vreplicas."""

    api_version: str
    kind: str
    replicas_path: str


class KnativeConfig(NamedTuple):
    """Settings of Knative. `capacity` is the number of vreplicas per pod (None: not set); `scale_up` is keep or replace.

    `stateful_set` is "", a name, or namespace/name. `reserved` are vreplicas that no status shows yet, by source (namespace/name) and pod.
    `strict_spread` makes EvenPodSpread reject pods also where vreplicas stay pending.

    `adapters` are StatefulSets for some sources, each with its own settings. These sources are of the `kinds`, as KIND or KIND.GROUP, and
    in the directory `path`; empty values mean all.
    """

    capacity: int | None = None
    policy: str = ""
    scale_up: str = "keep"
    cluster: str = ""
    stateful_set: str = ""
    autoscaler: AutoscalerConfig = AutoscalerConfig()
    sources: tuple[VpodKind, ...] = ()
    reserved: Mapping[str, Mapping[str, int]] = {}
    strict_spread: bool = False
    adapters: tuple[KnativeConfig, ...] = ()
    kinds: tuple[str, ...] = ()
    path: str = ""


def _parse_knative(knative: ConfigSection) -> KnativeConfig:
    shared = _parse_adapter(knative, KnativeConfig())._replace(
        stateful_set=knative.get_string("statefulSet"),
        sources=tuple(
            VpodKind(entry.require_string("apiVersion"), entry.require_string("kind"), entry.require_string("replicasPath"))
            for entry in knative.list_sections("sources")
        ),
    )
    adapters = tuple(
        _parse_adapter(entry, shared)._replace(
            stateful_set=entry.require_string("statefulSet"),
            kinds=entry.get_strings("kinds"),
            path=entry.get_string("path").strip("/"),
        )
        for entry in knative.list_sections("adapters")
    )
    return shared._replace(adapters=adapters)


def _parse_adapter(section: ConfigSection, default: KnativeConfig) -> KnativeConfig:
    """Parse the settings that each adapter can have; `default` has those that are not set."""
    strict = section.get_choice("evenPodSpread", "", "soft", "strict")
    return default._replace(
        capacity=section.get_integer("capacity", default.capacity, 1),
        policy=section.get_choice("policy", default.policy, "", "MAXFILLUP"),
        scale_up=section.get_choice("scaleUp", default.scale_up, "keep", "replace"),
        strict_spread=strict == "strict" if strict else default.strict_spread,
        cluster=section.get_string("cluster", default.cluster),
        autoscaler=_parse_autoscaler(section.get_section("autoscaler"), default.autoscaler),
        reserved=_parse_reserved(section.get_section("reserved")) or default.reserved,
    )


def _parse_autoscaler(autoscaler: ConfigSection, default: AutoscalerConfig) -> AutoscalerConfig:
    age = autoscaler.values.get("lastCompactAgeSeconds")
    return AutoscalerConfig(
        attempt_scale_down=autoscaler.get_bool("attemptScaleDown", default.attempt_scale_down),
        leader=autoscaler.get_bool("leader", default.leader),
        skip=autoscaler.get_bool("skip", default.skip),
        refresh_period=autoscaler.get_seconds("refreshPeriodSeconds", default.refresh_period),
        compact_age=default.compact_age if age is None else autoscaler.get_seconds("lastCompactAgeSeconds", timedelta()),
    )


def _parse_reserved(reserved: ConfigSection) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for name in sorted(reserved.values):
        pods = reserved.get_section(name)
        table[name] = {pod: pods.get_integer(pod, 0, 0) or 0 for pod in sorted(pods.values)}
    return table


SETTINGS = SettingsSection("knative", KnativeConfig(), _parse_knative)
