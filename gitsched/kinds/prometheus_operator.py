"""Kinds of Prometheus operator."""

from __future__ import annotations

from gitsched.kinds.kind import NAMESPACED, Kind, KindTable, Reference, condition, config_maps, secrets

_KEYS = ["bearerTokenSecret", "clientSecret", "credentials", "keySecret", "password", "proxyConnectHeader", "username"]
_MONITOR = (
    *secrets("spec.**.secret", *(f"spec.**.{name}" for name in _KEYS)),
    *config_maps("spec.**.configMap"),
)
_RECEIVER_KEYS = [
    "apiKey",
    "apiSecret",
    "apiURL",
    "authPassword",
    "authSecret",
    "botToken",
    "integrationKey",
    "routingKey",
    "serviceKey",
    "token",
    "url",
    "urlSecret",
    "userKey",
    "webhookURL",
]
_SERVER = (*_MONITOR, *secrets("spec.secrets[]"), *config_maps("spec.configMaps[]"))
_AVAILABLE = condition("Available")
# Prometheus, PrometheusAgent and ThanosRuler
_PROMETHEUS = (
    *_SERVER,
    *secrets(
        "spec.additionalScrapeConfigs",
        "spec.additionalAlertRelabelConfigs",
        "spec.additionalAlertManagerConfigs",
        "spec.objectStorageConfig",
        "spec.alertmanagersConfig",
        "spec.queryConfig",
        "spec.thanos.objectStorageConfig",
    ),
)

KINDS: KindTable = {
    ("monitoring.coreos.com", "Alertmanager"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_alertmanagers.yaml",
        references=(
            *_SERVER,
            *secrets("spec.configSecret"),
            Reference("spec.alertmanagerConfiguration.name", (("monitoring.coreos.com/v1alpha1", "AlertmanagerConfig"),)),
        ),
        pod_specs=("spec",),
        health=_AVAILABLE,
    ),
    ("monitoring.coreos.com", "AlertmanagerConfig"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_alertmanagerconfigs.yaml",
        references=(*_MONITOR, *secrets(*(f"spec.receivers[].**.{name}" for name in _RECEIVER_KEYS))),
    ),
    ("monitoring.coreos.com", "PodMonitor"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        references=_MONITOR,
    ),
    ("monitoring.coreos.com", "Probe"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_probes.yaml",
        references=_MONITOR,
    ),
    ("monitoring.coreos.com", "Prometheus"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_prometheuses.yaml",
        references=_PROMETHEUS,
        pod_specs=("spec",),
        health=_AVAILABLE,
    ),
    ("monitoring.coreos.com", "PrometheusAgent"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_prometheusagents.yaml",
        references=_PROMETHEUS,
        pod_specs=("spec",),
        health=_AVAILABLE,
    ),
    ("monitoring.coreos.com", "PrometheusRule"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    ("monitoring.coreos.com", "ScrapeConfig"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_scrapeconfigs.yaml",
        references=_MONITOR,
    ),
    ("monitoring.coreos.com", "ServiceMonitor"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        references=_MONITOR,
    ),
    ("monitoring.coreos.com", "ThanosRuler"): Kind(
        NAMESPACED,
        "prometheus-operator/prometheus-operator/example/prometheus-operator-crd/monitoring.coreos.com_thanosrulers.yaml",
        references=_PROMETHEUS,
        pod_specs=("spec",),
        health=_AVAILABLE,
    ),
}
