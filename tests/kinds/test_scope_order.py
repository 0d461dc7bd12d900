"""What decides the scope of a kind: a definition in the repository, `kinds:`, the table, the use of a namespace."""

from __future__ import annotations

import pytest
import yaml

from gitsched.apis.gitsched.config import KindScope
from gitsched.apis.ocm.workloads import read_manifest_key
from gitsched.decide.catalog import build_catalog, make_raw_document

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: helmreleases.helm.toolkit.fluxcd.io}
spec: {group: helm.toolkit.fluxcd.io, names: {kind: HelmRelease}, scope: Cluster}
"""
XRD = """\
apiVersion: apiextensions.crossplane.io/%s
kind: CompositeResourceDefinition
metadata: {name: xdatabases.example.org}
spec: {group: example.org, names: {kind: XDatabase}, claimNames: {kind: Database}%s}
"""


def namespaces(text: str, *kinds: KindScope) -> dict[str, str]:
    """Return the namespace of each object by its kind."""
    catalog = build_catalog([make_raw_document(body) for body in yaml.safe_load_all(text)], kinds, frozenset())
    return {key.kind: key.namespace for key in catalog.templates if key.kind.find("Definition") < 0}


def thing(version: str, kind: str) -> str:
    return f"---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: thing}}\n"


RELEASE = thing("helm.toolkit.fluxcd.io/v2", "HelmRelease")


def test_a_kind_of_the_table_needs_no_definition() -> None:
    text = RELEASE + thing("kyverno.io/v1", "ClusterPolicy") + thing("cert-manager.io/v1", "Issuer")
    assert namespaces(text) == {"HelmRelease": "default", "ClusterPolicy": "", "Issuer": "default"}


def test_settings_and_definitions_take_precedence_over_the_table() -> None:
    assert namespaces(RELEASE, KindScope("helm.toolkit.fluxcd.io/v2", "HelmRelease", False)) == {"HelmRelease": ""}
    assert namespaces(CRD + RELEASE) == {"HelmRelease": ""}


def test_only_the_guess_for_an_unknown_kind_is_reported() -> None:
    bodies = list(yaml.safe_load_all(RELEASE + thing("example.io/v1", "Widget")))
    catalog = build_catalog([make_raw_document(body) for body in bodies], (), frozenset())
    assert list(catalog.guessed_scopes) == [("example.io", "Widget")]
    assert catalog.kind_scopes == {("helm.toolkit.fluxcd.io", "HelmRelease"): True, ("example.io", "Widget"): False}


@pytest.mark.parametrize(
    ("version", "scope", "composite"),
    [("v1", "", ""), ("v2", "", "default"), ("v2", ", scope: Cluster", ""), ("v2", ", scope: LegacyCluster", "")],
)
def test_a_composite_resource_definition_declares_the_claim(version: str, scope: str, composite: str) -> None:
    text = XRD % (version, scope) + thing("example.org/v1", "XDatabase") + thing("example.org/v1", "Database")
    assert namespaces(text) == {"XDatabase": composite, "Database": "default"}


@pytest.mark.parametrize(
    ("version", "kind", "namespace"),
    [("helm.toolkit.fluxcd.io/v2", "HelmRelease", "default"), ("cert-manager.io/v1", "ClusterIssuer", ""), ("v1", "Node", "")],
)
def test_manifests_inside_of_other_documents_have_the_same_scope(version: str, kind: str, namespace: str) -> None:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "thing"}}
    assert read_manifest_key(body).namespace == namespace
