"""How delivery tools (Flux, Argo CD) fetch and apply bundles: settings, and what one cluster gets of a bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from gitsched.model.document import Key

CLUSTER_PLACEHOLDER = "{cluster}"

BundleFormat = Literal["kustomize", "helm", "yaml"]
"""A kustomize root, a Helm chart, or a directory of YAML files without a kustomization."""


class SourceAddress(NamedTuple):
    """Where delivery tools fetch the source: `url` is "" for the URL of the source's remote; `secret` is the name of the Secret with
    credentials for Flux, or ""."""

    url: str = ""
    secret: str = ""


class FluxSettings(NamedTuple):
    """The Flux objects of bundles. `interval` is a duration as Flux writes it. `service_account` and `decryption_secret` are "" for none.

    `decryption_secret` has the private keys of SOPS.
    """

    namespace: str = "flux-system"
    interval: str = "10m"
    prune: bool = True
    service_account: str = ""
    decryption_secret: str = ""


class ArgoSettings(NamedTuple):
    """The Argo CD Applications of bundles. `destination` is the name or the URL of the cluster in Argo CD, with {cluster} for its name
    in gitsched."""

    namespace: str = "argocd"
    project: str = "default"
    destination: str = CLUSTER_PLACEHOLDER
    prune: bool = True


class DeliveryConfig(NamedTuple):
    """Settings for bundles that Flux or Argo CD builds."""

    source: SourceAddress = SourceAddress()
    flux: FluxSettings = FluxSettings()
    argocd: ArgoSettings = ArgoSettings()


class HelmOptions(NamedTuple):
    """How a chart is rendered. `values_files` are paths from the root of the repository; `values` take precedence over them."""

    release: str
    namespace: str
    values_files: tuple[str, ...] = ()
    values: Mapping[str, Any] = {}


class FieldEdit(NamedTuple):
    """A number that scheduling sets in one object of a bundle; `field` is a path such as "spec.replicas"."""

    key: Key
    field: str
    value: int


class BundleDelivery(NamedTuple):
    """What one cluster gets of a bundle, in terms of the source.

    `path` is the directory of its variant, `directories` all directories that a build of it reads. `commit` is the source commit that first
    had what the build reads, `digest` identifies what it reads. `url` is that of the source, without credentials. `values` are substituted
    for `${name}`; those of a chart are in `helm`. `objects` are built for the cluster, with `default` as the namespace of those that have
    none.
    """

    bundle: Key
    cluster: str
    format: BundleFormat
    path: str
    directories: tuple[str, ...]
    url: str
    commit: str
    digest: str
    values: Mapping[str, str] = {}
    helm: HelmOptions | None = None
    edits: tuple[FieldEdit, ...] = ()
    objects: tuple[Key, ...] = ()
