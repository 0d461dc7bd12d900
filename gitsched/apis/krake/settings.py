"""The section `krake` of gitsched.yaml: Krake's settings, their defaults and their parser."""

from __future__ import annotations

from datetime import timedelta

from gitsched.apis.gitsched.config_section import ConfigSection, SettingsSection
from gitsched.named_tuples import NamedTuple


class KrakeConfig(NamedTuple):
    """Settings of Krake's scheduler. `stickiness` is a weight; `stickiness_formula` is document or krake.

    `metric_constraints` is the kind of value that metric constraints compare: raw, normalised or weighted. Krake's document compares the
    value of the metric, its code the normalised value times the weight. `provisioner` is what creates the clusters that are bound to a
    cloud or project: none, krake or external. `application_clusters` are the candidates of an application: those of its namespace, or all.
    """

    reschedule_after: timedelta = timedelta(seconds=60)
    stickiness: float = 0.1
    stickiness_formula: str = "document"
    metric_constraints: str = "raw"
    provisioner: str = "none"
    application_clusters: str = "namespace"


def _parse_krake(krake: ConfigSection) -> KrakeConfig:
    default = KrakeConfig()
    return KrakeConfig(
        krake.get_seconds("rescheduleAfter", default.reschedule_after),
        krake.get_number("stickiness", default.stickiness),
        krake.get_choice("stickinessFormula", "document", "krake"),
        krake.get_choice("metricConstraints", "raw", "normalised", "weighted"),
        krake.get_choice("provisioner", "none", "krake", "external"),
        krake.get_choice("applicationClusters", "namespace", "all"),
    )


SETTINGS = SettingsSection("krake", KrakeConfig(), _parse_krake, upstream_values={"metricConstraints": "weighted"})
