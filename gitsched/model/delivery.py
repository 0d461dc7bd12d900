"""How delivery tools (Flux, Argo CD) fetch and apply bundles, and what PlacementDecisions refer to: settings, and what one cluster gets of
a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.model.variants import Variant, VariantSource

CLUSTER_PLACEHOLDER = "{cluster}"

DELIVERING_KINDS = frozenset(("Application", "ApplicationSet", "HelmRelease", "Kustomization"))
"""Names of kinds that may deliver to another cluster; see `gitsched.decide.relations.remote_destinations`."""


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
    """Settings for bundles that Flux or Argo CD builds, and for consumers of PlacementDecisions.

    `profile_namespace` is the namespace of the ClusterProfiles; with "" references have none.
    """

    source: SourceAddress = SourceAddress()
    flux: FluxSettings = FluxSettings()
    argocd: ArgoSettings = ArgoSettings()
    profile_namespace: str = "default"


class FieldEdit(NamedTuple):
    """A number that scheduling sets in one object of a bundle; `field` is a path such as "spec.replicas"."""

    key: Key
    field: str
    value: int


class BundleDelivery(NamedTuple):
    """What one cluster gets of a Bundle that a delivery tool builds: the variant, whose `source` is set, and the numbers to change in it.

    `url` is that of the source, without credentials. `objects` are built, with `default` as the namespace of those that have none,
    in `namespaces`.
    """

    bundle: Key
    cluster: str
    variant: Variant
    source: VariantSource
    url: str
    edits: tuple[FieldEdit, ...] = ()
    objects: tuple[Key, ...] = ()
    namespaces: frozenset[str] = frozenset()


def make_bundle_delivery(
    bundle: Key, cluster: str, variant: Variant, source: VariantSource, url: str, edits: tuple[FieldEdit, ...] = ()
) -> BundleDelivery:
    """Return the delivery of a variant to a cluster."""
    objects = tuple(document.key for document in variant.objects)
    return BundleDelivery(bundle, cluster, variant, source, url, edits, objects, frozenset(key.namespace for key in objects) - {""})
