"""The section `knative` of gitsched.yaml: Knative's settings, their defaults and their parser."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from gitsched.apis.gitsched.config_section import ConfigSection, SettingsSection


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
    """

    capacity: int | None = None
    policy: str = ""
    scale_up: str = "keep"
    cluster: str = ""
    stateful_set: str = ""
    autoscaler: AutoscalerConfig = AutoscalerConfig()
    sources: tuple[VpodKind, ...] = ()
    reserved: Mapping[str, Mapping[str, int]] = {}


def _parse_knative(knative: ConfigSection) -> KnativeConfig:
    return KnativeConfig(
        capacity=knative.get_integer("capacity", None, 1),
        policy=knative.get_choice("policy", "", "MAXFILLUP"),
        scale_up=knative.get_choice("scaleUp", "keep", "replace"),
        cluster=knative.get_string("cluster"),
        stateful_set=knative.get_string("statefulSet"),
        autoscaler=_parse_autoscaler(knative.get_section("autoscaler")),
        sources=tuple(
            VpodKind(entry.require_string("apiVersion"), entry.require_string("kind"), entry.require_string("replicasPath"))
            for entry in knative.list_sections("sources")
        ),
        reserved=_parse_reserved(knative.get_section("reserved")),
    )


def _parse_autoscaler(autoscaler: ConfigSection) -> AutoscalerConfig:
    default = AutoscalerConfig()
    age = autoscaler.values.get("lastCompactAgeSeconds")
    return AutoscalerConfig(
        attempt_scale_down=autoscaler.get_bool("attemptScaleDown", default.attempt_scale_down),
        leader=autoscaler.get_bool("leader", default.leader),
        skip=autoscaler.get_bool("skip", default.skip),
        refresh_period=autoscaler.get_seconds("refreshPeriodSeconds", default.refresh_period),
        compact_age=None if age is None else autoscaler.get_seconds("lastCompactAgeSeconds", timedelta()),
    )


def _parse_reserved(reserved: ConfigSection) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for name in sorted(reserved.values):
        pods = reserved.get_section(name)
        table[name] = {pod: pods.get_integer(pod, 0, 0) or 0 for pod in sorted(pods.values)}
    return table


SETTINGS = SettingsSection("knative", KnativeConfig(), _parse_knative)
