"""The section `delivery` of gitsched.yaml: how Flux and Argo CD fetch and build bundles, and what PlacementDecisions refer to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gitsched.model.delivery import CLUSTER_PLACEHOLDER, ArgoSettings, DeliveryConfig, FluxSettings, SourceAddress
from gitsched.model.urls import strip_credentials

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config_section import ConfigSection

_FLUX_DURATION = re.compile(r"([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h))+")
_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DESTINATION = re.compile(r"(https?://)?[A-Za-z0-9._:/\[\]{}-]+")


def parse_delivery(section: ConfigSection) -> DeliveryConfig:
    """Parse the section. Raises SettingError for a wrong type or value."""
    source, flux, argocd = (section.get_section(name) for name in ("source", "flux", "argocd"))
    return DeliveryConfig(
        SourceAddress(_parse_url(source), _parse_name(source, "secretName")),
        _parse_flux(flux),
        _parse_argocd(argocd),
        _parse_profile_namespace(section),
    )


def _parse_profile_namespace(section: ConfigSection) -> str:
    name = section.get_string("clusterProfileNamespace", DeliveryConfig().profile_namespace)
    return name if not name or _NAMESPACE.fullmatch(name) else section.reject("clusterProfileNamespace", "the name of a Namespace")


def _parse_url(source: ConfigSection) -> str:
    url = source.get_string("url")
    if url and strip_credentials(url) != url:
        source.reject("url", "the https or ssh URL of the source repository, without a password or token")
    return url


def _parse_flux(flux: ConfigSection) -> FluxSettings:
    default = FluxSettings()
    interval = flux.get_string("interval", default.interval)
    if not _FLUX_DURATION.fullmatch(interval):
        flux.reject("interval", "a duration such as 10m or 1h30m")
    return FluxSettings(
        _parse_name(flux, "namespace", default.namespace),
        interval,
        flux.get_bool("prune", default.prune),
        _parse_name(flux, "serviceAccountName"),
        _parse_name(flux.get_section("decryption"), "secretName"),
    )


def _parse_argocd(argocd: ConfigSection) -> ArgoSettings:
    default = ArgoSettings()
    destination = argocd.get_string("destination", default.destination)
    if destination.count(CLUSTER_PLACEHOLDER) != 1 or not _DESTINATION.fullmatch(destination):
        argocd.reject("destination", "a name or an https URL with {cluster} in it, once")
    return ArgoSettings(
        _parse_name(argocd, "namespace", default.namespace),
        _parse_name(argocd, "project", default.project),
        destination,
        argocd.get_bool("prune", default.prune),
    )


def _parse_name(section: ConfigSection, name: str, default: str = "") -> str:
    value = section.get_string(name, default)
    return value if not value or _OBJECT_NAME.fullmatch(value) else section.reject(name, "the name of an object of Kubernetes")
