"""`gitsched init` recognizes how a repository is laid out: which directories are variants of one bundle, and which cluster gets which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.layouts.layout import Layout, Target
from gitsched.layouts.overlay_names import is_version
from gitsched.layouts.proposal import describe_layout, list_cluster_metadata, write_bundles, write_source_settings
from gitsched.layouts.recognition import recognize_layout
from tests.tables import each_row

BASE = "resources: [web.yaml]"
OVERLAY = "resources: [../base]\nnamespace: shop"
DEEP = "resources: [../../base]\nnamespace: shop"
WEB = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}"


def flux(path: str, source: str = "GitRepository", name: str = "flux-system", called: str = "") -> str:
    called = called or path.strip("./").replace("/", "-") or "root"
    return (
        f"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {called}, namespace: flux-system}}\n"
        f"spec: {{path: {path}, sourceRef: {{kind: {source}, name: {name}}}}}"
    )


def application(name: str, path: str, destination: str, more: str = "") -> str:
    return (
        f"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\n"
        f"spec: {{destination: {{{destination}}}, source: {{repoURL: https://example.com/x.git, path: {path}{more}}}}}"
    )


class Case(NamedTuple):
    """A tree of files, and the bundles: what each cluster gets. `env=` marks an environment and `*` all clusters."""

    id: str
    tree: Mapping[str, str]
    bundles: Mapping[str, Mapping[str, str]] = {}
    clusters: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


CASES = [
    Case(
        "Flux: a directory of a cluster that says what it has is named like the one above it, and a base is no cluster",
        {
            "kubernetes/main/flux/cluster.yaml": flux("./kubernetes/main/flux"),
            "kubernetes/main/flux/apps.yaml": flux("./kubernetes/apps/web"),
            "kubernetes/bases/db/ks.yaml": flux("./kubernetes/bases/db", called="db"),
            "kubernetes/apps/web/kustomization.yaml": BASE,
            "kubernetes/apps/web/web.yaml": WEB,
        },
        {"web": {"*": "kubernetes/apps/web"}},
        ("main",),
        left_out=("kubernetes/bases/db/ks.yaml:1",),
    ),
    Case(
        "Flux: a Kustomization beside what it names, which that of a directory above applies, does not make its directory a cluster",
        {
            "flux/cluster/apps.yaml": flux("./apps"),
            "apps/kustomization.yaml": "resources: [web/ks.yaml, dns/ks.yaml]",
            "apps/web/ks.yaml": flux("./apps/web", called="web"),
            "apps/web/kustomization.yaml": BASE,
            "apps/web/web.yaml": WEB,
            "apps/dns/ks.yaml": flux("./apps/dns/app", called="dns"),
            "apps/dns/app/kustomization.yaml": BASE,
            "apps/dns/app/web.yaml": WEB,
        },
        {"dns-app": {"*": "apps/dns/app"}, "web": {"*": "apps/web"}},
        ("cluster",),
        left_out=("apps", "flux/cluster/apps.yaml:1"),
    ),
    Case(
        "directories that may be of tests or of an environment are for neither, and others are what they were",
        {
            "web/base/kustomization.yaml": BASE,
            "web/base/web.yaml": WEB,
            "web/overlays/test/kustomization.yaml": DEEP,
            "web/overlays/prod/kustomization.yaml": DEEP,
            "dns/test/kustomization.yaml": BASE,
            "dns/test/web.yaml": WEB,
            "dns/prod/kustomization.yaml": BASE,
            "dns/prod/web.yaml": WEB,
            "test/kafka/kubernetes/kustomization.yaml": BASE,
            "test/kafka/kubernetes/web.yaml": WEB,
            "sandbox/kustomization.yaml": BASE,
            "sandbox/web.yaml": WEB,
        },
        {
            "dns": {"env=prod": "dns/prod", "env=test": "dns/test"},
            "web": {"env=prod": "web/overlays/prod", "env=test": "web/overlays/test"},
        },
        ("prod prod", "test test"),
        left_out=("sandbox", "test/kafka/kubernetes"),
    ),
    Case(
        "Flux: the directories beside a bootstrapped one in clusters/ are clusters, too",
        {
            "clusters/dev/config/cluster.yaml": flux("./clusters/dev"),
            "clusters/dev/web.yaml": flux("./apps/web/dev", called="web"),
            "clusters/prod/infra/web.yaml": flux("./apps/web/prod", called="web"),
            "apps/web/dev/kustomization.yaml": BASE,
            "apps/web/dev/web.yaml": WEB,
            "apps/web/prod/kustomization.yaml": BASE,
            "apps/web/prod/web.yaml": WEB,
        },
        {"web": {"dev": "apps/web/dev", "prod": "apps/web/prod"}},
        ("dev dev", "prod prod"),
    ),
    Case(
        "Flux: paths in an artifact of one directory of the repository",
        {
            "k8s/clusters/c0/web.yaml": flux("./apps/web", source="OCIRepository"),
            "k8s/apps/web/kustomization.yaml": BASE,
            "k8s/apps/web/web.yaml": WEB,
        },
        {"web": {"*": "k8s/apps/web"}},
        ("c0",),
    ),
    Case(
        "overlays of versions and of names that no cluster has are no clusters",
        {
            "op/base/kustomization.yaml": BASE,
            "op/base/web.yaml": WEB,
            **{
                f"op/overlays/{name}/kustomization.yaml": DEEP
                for name in ("4.10", "release-2.10", "EU-West", "eu_1", "eu-1", "cluster-2")
            },
        },
        {"op": {"cluster-2": "op/overlays/cluster-2", "eu-1": "op/overlays/eu-1"}},
        ("cluster-2", "eu-1"),
        left_out=tuple(f"op/overlays/{name}" for name in ("4.10", "EU-West", "eu_1", "release-2.10")),
    ),
    Case(
        "one cluster cannot have a Kustomization twice: their directories are clusters",
        {
            **{
                f"kubernetes/{name}/cluster/apps.yaml": flux(f"./kubernetes/{name}/apps", called="apps")
                for name in ("main", "staging")
            },
            **{f"kubernetes/{name}/apps/web.yaml": WEB for name in ("main", "staging")},
        },
        {"apps": {"main": "kubernetes/main/apps", "staging": "kubernetes/staging/apps"}},
        ("main", "staging staging"),
    ),
    Case(
        "overlays of environments: one cluster each, so that there is something to plan",
        {
            "apps/web/base/kustomization.yaml": BASE,
            "apps/web/base/web.yaml": WEB,
            "apps/web/overlays/staging/kustomization.yaml": DEEP,
            "apps/web/overlays/production/kustomization.yaml": DEEP,
        },
        {"web": {"env=production": "apps/web/overlays/production", "env=staging": "apps/web/overlays/staging"}},
        ("production production", "staging staging"),
    ),
    Case(
        "overlays of clusters in environments, and of complete environments",
        {
            "components/etcd/base/kustomization.yaml": BASE,
            "components/etcd/staging/kustomization.yaml": OVERLAY,
            "components/etcd/production/kustomization.yaml": OVERLAY,
            "components/ui/base/kustomization.yaml": BASE,
            "components/ui/development/kustomization.yaml": OVERLAY,
            "components/ui/production/base/kustomization.yaml": DEEP,
            "components/ui/production/prd-1/kustomization.yaml": "resources: [../base]",
            "components/ui/production/prd-2/kustomization.yaml": "resources: [../base]",
            "components/ui/staging/stg-1/kustomization.yaml": DEEP,
        },
        {
            "etcd": {"env=production": "components/etcd/production", "env=staging": "components/etcd/staging"},
            "ui": {
                "prd-1": "components/ui/production/prd-1",
                "prd-2": "components/ui/production/prd-2",
                "stg-1": "components/ui/staging/stg-1",
            },
        },
        ("prd-1 production", "prd-2 production", "stg-1 staging"),
        left_out=("components/ui/development",),
    ),
    Case(
        "directories for regions: each shares the base, so each is a cluster",
        {
            "web/base/kustomization.yaml": BASE,
            "web/eu/kustomization.yaml": OVERLAY,
            "web/us/kustomization.yaml": OVERLAY,
        },
        {"web": {"eu": "web/eu", "us": "web/us"}},
        ("eu", "us"),
    ),
    Case(
        "names that may be those of clusters or of something else are neither, but for what several bundles have",
        {
            "web/base/kustomization.yaml": BASE,
            "web/overlays/paris/kustomization.yaml": DEEP,
            "web/overlays/letsencrypt/kustomization.yaml": DEEP,
            "web/cluster/longhorn/kustomization.yaml": "resources: [../../base]",
            "dns/base/kustomization.yaml": BASE,
            "dns/overlays/paris/kustomization.yaml": DEEP,
            "clusters/rome/kustomization.yaml": "resources: [../../dns/base]",
            "parts/queue/kustomization.yaml": OVERLAY,
            "parts/cache/kustomization.yaml": OVERLAY,
            "parts/base/kustomization.yaml": BASE,
        },
        {
            "all": {"rome": "clusters/rome"},
            "dns": {"paris": "dns/overlays/paris"},
            "web": {"paris": "web/overlays/paris"},
        },
        ("paris", "rome"),
        left_out=("parts/cache", "parts/queue", "web/cluster/longhorn", "web/overlays/letsencrypt"),
    ),
    Case(
        "what an environment has is a part of it, and a region of two environments may be two clusters",
        {
            **{f"{name}/web/kustomization.yaml": BASE for name in ("production", "staging")},
            "production/queue/kustomization.yaml": BASE,
            **{f"dns/overlays/{name}/eu/kustomization.yaml": BASE for name in ("production", "staging")},
        },
        {
            "queue": {"env=production": "production/queue"},
            "web": {"env=production": "production/web", "env=staging": "staging/web"},
        },
        ("production production", "staging staging"),
        left_out=("dns/overlays/production/eu", "dns/overlays/staging/eu"),
    ),
    Case(
        "what no document of a delivery tool names, and what is not in use, may not be deployed",
        {
            "clusters/eu-1/web.yaml": flux("./web"),
            "web/kustomization.yaml": BASE,
            "web/web.yaml": WEB,
            "dns/overlays/eu-1/kustomization.yaml": BASE,
            "charts/db/Chart.yaml": "name: db",
        },
        {"web": {"*": "web"}},
        ("eu-1",),
        left_out=("charts/db", "dns/overlays/eu-1"),
    ),
    Case(
        "overlays and charts in an archive are not deployed",
        {
            "web/overlays/production/kustomization.yaml": BASE,
            "_archive/dns/overlays/production/kustomization.yaml": BASE,
            "old/chart/Chart.yaml": "name: db",
            "old/chart/values-production.yaml": "a: 1",
        },
        {"web": {"env=production": "web/overlays/production"}},
        ("production production",),
        left_out=("_archive/dns/overlays/production", "old/chart"),
    ),
    Case(
        "one kustomization: its objects are built and placed one by one",
        {"deploy/kustomization.yaml": "resources: [web.yaml]\nnamespace: shop", "deploy/web.yaml": WEB},
        build=("deploy",),
    ),
    Case(
        "a base without overlays beside overlays is no bundle",
        {
            "web/base/kustomization.yaml": BASE,
            "web/overlays/production/kustomization.yaml": DEEP,
            "old/base/kustomization.yaml": BASE,
            "hack/kustomization.yaml": BASE,
        },
        {"web": {"env=production": "web/overlays/production"}},
        ("production production",),
        left_out=("hack", "old/base"),
    ),
    Case(
        "Flux: a directory for each cluster; infrastructure goes to both",
        {
            "clusters/production/flux-system/gotk-sync.yaml": flux("./clusters/production"),
            "clusters/production/apps.yaml": flux("./apps/production"),
            "clusters/production/infrastructure.yaml": flux("./infrastructure"),
            "clusters/staging/flux-system/gotk-sync.yaml": flux("./clusters/staging"),
            "clusters/staging/apps.yaml": flux("./apps/staging"),
            "clusters/staging/infrastructure.yaml": flux("./infrastructure"),
            "apps/base/web/kustomization.yaml": BASE,
            "apps/production/kustomization.yaml": "resources: [../base/web]",
            "apps/staging/kustomization.yaml": "resources: [../base/web]",
            "infrastructure/kustomization.yaml": "resources: [dns.yaml]",
        },
        {"apps": {"production": "apps/production", "staging": "apps/staging"}, "infrastructure": {"*": "infrastructure"}},
        ("production production", "staging staging"),
    ),
    Case(
        "Flux: one cluster whose Kustomizations apply further ones; a source elsewhere is left out",
        {
            "kubernetes/flux/ks.yaml": flux("./kubernetes/apps"),
            "kubernetes/apps/media/kustomization.yaml": "resources: [plex/ks.yaml]",
            "kubernetes/apps/media/plex/ks.yaml": flux("./kubernetes/apps/media/plex/app"),
            "kubernetes/apps/media/plex/app/kustomization.yaml": BASE,
            "kubernetes/apps/dns/ks.yaml": flux("./kubernetes/apps/dns/app"),
            "kubernetes/apps/dns/app/web.yaml": WEB,
            "kubernetes/apps/remote/ks.yaml": flux("./deploy", name="other"),
        },
        {"dns-app": {"*": "kubernetes/apps/dns/app"}, "media-plex-app": {"*": "kubernetes/apps/media/plex/app"}},
        ("cluster",),
        left_out=("kubernetes/apps/media", "kubernetes/apps/remote/ks.yaml:1", "kubernetes/flux/ks.yaml:1"),
    ),
    Case(
        "Flux: an ArtifactGenerator copies directories to others",
        {
            "clusters/eu/apps.yaml": flux("./production", "ExternalArtifact", "apps"),
            "clusters/eu/artifacts.yaml": "apiVersion: source.extensions.fluxcd.io/v1\nkind: ArtifactGenerator\nmetadata: {name: a}\n"
            "spec: {artifacts: [{name: apps, copy: [{from: '@repo/apps/production/**', to: '@artifact/production/'}]}]}",
            "apps/production/kustomization.yaml": BASE,
        },
        {"apps": {"eu": "apps/production"}},
        ("eu",),
    ),
    Case(
        "Argo CD: destinations are the clusters, also where directories have other names",
        {
            "argocd/apps/kustomization.yaml": "resources: [web.yaml, dns.yaml]",
            "argocd/apps/web.yaml": application("web", "web/overlays/infra", "name: moc-infra"),
            "argocd/apps/dns.yaml": application("dns", "dns", "server: https://kubernetes.default.svc"),
            "argocd/root.yaml": application("root", "argocd/apps", "name: moc-infra"),
            "argocd/gone.yaml": application("gone", "nowhere", "name: moc-infra"),
            "web/base/kustomization.yaml": BASE,
            "web/overlays/infra/kustomization.yaml": DEEP,
            "db/base/kustomization.yaml": BASE,
            "db/overlays/infra/kustomization.yaml": DEEP,
            "dns/kustomization.yaml": BASE,
        },
        {
            "dns": {"in-cluster": "dns"},
            "web": {"moc-infra": "web/overlays/infra"},
        },
        ("in-cluster", "moc-infra"),
        left_out=("argocd/apps", "argocd/gone.yaml:1", "argocd/root.yaml:1", "db/overlays/infra"),
    ),
    Case(
        "Argo CD: ApplicationSets with lists, directories and clusters",
        {
            "sets/web.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: web}\n"
            "spec: {generators: [{list: {elements: [{cluster: eu, dir: europe}, {cluster: us, dir: america}]}}], template: {metadata: "
            "{name: 'web-{{cluster}}'}, spec: {destination: {name: '{{cluster}}'}, source: {path: 'web/{{dir}}'}}}}",
            "sets/tools.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: tools}\n"
            "spec: {goTemplate: true, generators: [{matrix: {generators: [{git: {directories: [{path: tools/*}, {path: tools/old, "
            "exclude: true}]}}, {list: {elements: [{name: eu}, {name: us}]}}]}}], template: {metadata: "
            "{name: '{{.name}}-{{.path.basename}}'}, spec: {destination: {name: '{{.name}}'}, source: {path: '{{.path.path}}'}}}}",
            "web/europe/kustomization.yaml": BASE,
            "web/america/kustomization.yaml": BASE,
            "tools/dns/kustomization.yaml": BASE,
            "tools/old/kustomization.yaml": BASE,
        },
        {"tools-dns": {"*": "tools/dns"}, "web-america": {"us": "web/america"}, "web-europe": {"eu": "web/europe"}},
        ("eu", "us"),
        left_out=("tools/old",),
    ),
    Case(
        "charts: values files for environments, beside the chart or in a directory; dependencies and libraries are no bundles",
        {
            "charts/shop/Chart.yaml": "name: shop",
            "charts/shop/values.yaml": "replicas: 1",
            "charts/shop/values-production.yaml": "replicas: 3",
            "charts/shop/values/staging.yaml": "replicas: 2",
            "charts/shop/charts/redis/Chart.yaml": "name: redis",
            "charts/common/Chart.yaml": "name: common\ntype: library",
            "charts/dns/Chart.yaml": "name: dns",
            "charts/dns/production.values.yaml": "replicas: 3",
            "charts/dns/staging.values.yaml": "replicas: 2",
        },
        {
            "dns": {
                "env=production": "charts/dns with charts/dns/production.values.yaml",
                "env=staging": "charts/dns with charts/dns/staging.values.yaml",
            },
            "shop": {
                "env=production": "charts/shop with charts/shop/values-production.yaml",
                "env=staging": "charts/shop with charts/shop/values/staging.yaml",
            },
        },
        ("production production", "staging staging"),
    ),
    Case(
        "charts: values files with unknown names are for no cluster",
        {
            "charts/shop/Chart.yaml": "name: shop",
            "charts/shop/values-minimal.yaml": "replicas: 1",
            "charts/shop/values-ha.yaml": "replicas: 3",
            "charts/dns/Chart.yaml": "name: dns",
        },
        {"dns": {"*": "charts/dns"}, "shop": {"*": "charts/shop"}},
    ),
    Case(
        "charts: beside those of environments, values files with unknown names are named",
        {
            "charts/shop/Chart.yaml": "name: shop",
            "charts/shop/values-minimal.yaml": "replicas: 1",
            "charts/shop/values-prod.yaml": "replicas: 3",
        },
        {"shop": {"env=prod": "charts/shop with charts/shop/values-prod.yaml"}},
        ("prod prod",),
        left_out=("charts/shop",),
    ),
    Case(
        "charts that Argo CD, Flux or kustomize render are theirs",
        {
            "argocd/shop.yaml": application("shop", "charts/shop", "name: eu", ", helm: {valueFiles: [values-eu.yaml]}"),
            "charts/shop/Chart.yaml": "name: shop",
            "flux/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: dns}\n"
            "spec: {chart: {spec: {chart: ./charts/dns, sourceRef: {kind: GitRepository, name: x}}}}",
            "charts/dns/Chart.yaml": "name: dns",
            "web/kustomization.yaml": "helmCharts: [{name: db}]\nhelmGlobals: {chartHome: .}",
            "web/db/Chart.yaml": "name: db",
        },
        {"shop": {"eu": "charts/shop with charts/shop/values-eu.yaml"}},
        ("eu",),
        left_out=("web",),
    ),
    Case("manifests alone are no layout", {"web.yaml": WEB, ".github/kustomization.yaml": BASE}),
]


def read_bundles(layout: Layout) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for bundle in yaml.safe_load_all(write_bundles(layout, {}, "env")) if layout.bundles else ():
        spec, variants = bundle["spec"], found.setdefault(bundle["metadata"]["name"], {})
        rules = [*spec.get("variants", ()), *([{"path": spec["path"], "helm": spec.get("helm")}] if "path" in spec else ())]
        for rule in rules:
            clusters = rule.get("clusters", {})
            names = clusters.get("names") or [f"{key}={value}" for key, value in clusters.get("matchLabels", {}).items()] or ["*"]
            files = (rule.get("helm") or {}).get("valuesFiles", ())
            variants.update(dict.fromkeys(names, " with ".join([rule["path"], *files])))
    return found


@each_row("case", CASES)
def test_a_layout_is_recognized(case: Case) -> None:
    layout = recognize_layout({path: text.encode() for path, text in case.tree.items()})
    assert read_bundles(layout) == case.bundles
    assert tuple(f"{name} {environment}".strip() for name, environment in layout.clusters.items()) == case.clusters
    assert layout.build == case.build
    assert tuple(sorted(entry.place for entry in layout.left_out)) == case.left_out
    assert bool(layout.recognitions) == bool(case.bundles)
    text = describe_layout(layout)
    assert all(f"  {name}: " in text for name in case.bundles)
    assert all(place in text for place in case.left_out)


def test_described_clusters_are_not_proposed_again() -> None:
    tree = {f"web/overlays/{name}/kustomization.yaml": b"resources: [web.yaml]" for name in ("production", "fra-1")}
    layout = recognize_layout(tree, ["fra-1", "dub-1"])
    assert dict(layout.clusters) == {"dub-1": "", "fra-1": ""}


def test_two_directories_for_one_cluster_are_two_bundles() -> None:
    tree = {
        "apps/web.yaml": application("web", "web/overlays/eu", "name: eu"),
        "apps/stage.yaml": application("stage", "web/overlays/eu-stage", "name: eu"),
        **{f"web/overlays/{name}/kustomization.yaml": BASE for name in ("eu", "eu-stage")},
    }
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    assert [(bundle.name, [variant.path for variant in bundle.variants]) for bundle in layout.bundles] == [
        ("web", ["web/overlays/eu"]),
        ("web-overlays-eu-stage", ["web/overlays/eu-stage"]),
    ]


def substitute(path: str, more: str) -> str:
    return f"{flux(path)[:-1]}, {more}}}"


def test_variables_of_flux_become_values_and_annotations_of_clusters() -> None:
    tree = {
        f"clusters/{name}/{bundle}.yaml": substitute(
            f"./{bundle}", f"postBuild: {{substitute: {{REGION: {region}, APP: {bundle}}}}}"
        )
        for name, region in (("eu", "dublin"), ("us", "ashburn"))
        for bundle in ("web", "dns")
    } | {f"{bundle}/kustomization.yaml": BASE for bundle in ("web", "dns")}
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    specs = [bundle["spec"] for bundle in yaml.safe_load_all(write_bundles(layout, {}))]
    assert specs == [
        {"path": name, "values": {"APP": name, "REGION": f"cluster.annotations.{name}.REGION"}} for name in ("dns", "web")
    ]
    assert list_cluster_metadata(layout, "env", ["us"]) == {"eu": {"annotations": {"dns.REGION": "dublin", "web.REGION": "dublin"}}}


class Variables(NamedTuple):
    """What clusters substitute in one directory, the values of its Bundle, and the clusters whose own documents count."""

    clusters: Mapping[str, str]
    values: Mapping[str, str] = {}
    ruled: tuple[str, ...] = ()
    described: tuple[str, ...] = ()


VARIABLES = {
    "a variable of some clusters is no value of all": Variables(
        {"eu": "{REGION: north, TIER: gold}", "us": "{TIER: silver}"}, {"TIER": "cluster.annotations.apps.TIER"}, ("eu", "us")
    ),
    "a cluster may have none": Variables({"eu": "{REGION: north}", "us": "{}"}, {}, ("eu", "us")),
    "documents of clusters may lack annotations": Variables(
        {"eu": "{REGION: north, TIER: gold}", "us": "{REGION: south, TIER: gold}"}, {"TIER": "gold"}, ("eu", "us"), ("eu", "us")
    ),
    "a text that a Bundle reads as a reference is no value": Variables({"eu": "{A: cluster.name}", "us": "{A: cluster.name}"}),
    "an environment without variables": Variables(
        {"eu": "{REGION: north}", "us": "{REGION: south}", "stage": ""}, {}, ("eu", "us")
    ),
}


@pytest.mark.parametrize("case", VARIABLES.values(), ids=VARIABLES)
def test_a_cluster_gets_the_variables_that_flux_substitutes_for_it(case: Variables) -> None:
    tree = {f"apps/{name}/kustomization.yaml": BASE for name in ("production", "stage")}
    for cluster, text in case.clusters.items():
        path = "./apps/production" if text else "./apps/stage"
        tree[f"clusters/{cluster}/web.yaml"] = substitute(path, f"postBuild: {{substitute: {text}}}") if text else flux(path)
    layout = recognize_layout({path: text.encode() for path, text in tree.items()}, case.described)
    (bundle,) = yaml.safe_load_all(write_bundles(layout, {}))
    assert bundle["spec"].get("values", {}) == case.values
    assert [rule.cluster for rule in layout.rules] == list(case.ruled)


@pytest.mark.parametrize("more", ["targetNamespace: shop", "patches: [{patch: x}]", "postBuild: {substituteFrom: [{name: x}]}"])
def test_kustomizations_of_flux_that_change_one_directory_differently_are_mapped_to_clusters(more: str) -> None:
    tree = {"clusters/eu/web.yaml": substitute("./web", more), "web/kustomization.yaml": BASE}
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    assert [bundle.name for bundle in layout.bundles] == ["web"]
    assert layout.left_out == ()
    tree["clusters/us/web.yaml"] = substitute("./web", "suspend: false")
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    assert [bundle.name for bundle in layout.bundles] == ["web"]
    assert yaml.safe_load(write_source_settings(layout, hidden=False)) == {
        "source": {
            "variants": [
                {"path": "clusters/eu", "clusters": {"names": ["eu"]}},
                {"path": "clusters/us", "clusters": {"names": ["us"]}},
            ]
        }
    }
    for other in ("namePrefix: x", "postBuild: {substitute: {REGION: x}}"):
        tree["clusters/eu/other.yaml"] = substitute("./web", other)
        layout = recognize_layout({path: text.encode() for path, text in tree.items()})
        assert layout.bundles == (), "the directory of the cluster does not tell which document counts"
        places = [entry.place for entry in layout.left_out if more.partition(":")[0] in entry.reason]
        assert "clusters/eu/web.yaml:1" in places


def test_applications_that_change_one_directory_differently_are_mapped_to_clusters() -> None:
    def recognize(**places: str) -> Layout:
        tree = {"web/kustomization.yaml": BASE, "web/web.yaml": WEB}
        for name, place in places.items():
            tree[place] = application(name, "web", f"name: {name}", f", kustomize: {{namePrefix: {name}-}}")
        return recognize_layout({path: text.encode() for path, text in tree.items()})

    layout = recognize(eu="argocd/eu/web.yaml")
    assert ([bundle.name for bundle in layout.bundles], layout.rules) == (["web"], ())
    layout = recognize(eu="argocd/eu/web.yaml", us="argocd/us/web.yaml")
    assert [bundle.name for bundle in layout.bundles] == ["web"]
    assert layout.rules == (("argocd/eu", "eu"), ("argocd/us", "us"))
    layout = recognize(eu="argocd/eu.yaml", us="argocd/us.yaml")
    assert (layout.bundles, layout.rules) == ((), ())
    assert [entry.place for entry in layout.left_out if "different options" in entry.reason] == ["argocd/eu.yaml", "argocd/us.yaml"]


def test_documents_in_hidden_directories_and_of_other_repositories_say_nothing() -> None:
    other = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other}\nspec: {url: https://x.org/y}"
    tree = {
        "clusters/eu/web.yaml": flux("./web"),
        "clusters/us/web.yaml": flux("./lab"),
        "clusters/us/other.yaml": flux("./", name="other"),
        "clusters/us/source.yaml": other,
        ".archive/old/web.yaml": flux("./web"),
        ".github/workflows/x.yaml": "jobs: {}",
        "web/kustomization.yaml": BASE,
        "lab/kustomization.yaml": BASE,
    }
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    assert {bundle.name: bundle.variants[0].target.names for bundle in layout.bundles} == {"web": ("eu",), "lab": ("us",)}
    settings = yaml.safe_load(write_source_settings(layout, hidden=False))
    assert settings == {"source": {"deliveryTools": {"ignore": ["/.archive/"]}}}


def test_the_release_of_a_chart_is_that_of_its_application() -> None:
    tree = {"web.yaml": application("shop-eu", "charts/web", "name: eu, namespace: shop"), "charts/web/Chart.yaml": "name: web"}
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    (bundle,) = yaml.safe_load_all(write_bundles(layout, {}))
    assert bundle["spec"] == {"path": "charts/web", "helm": {"releaseName": "shop-eu", "namespace": "shop"}}


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ("{parameters: [{name: a.b, value: '3'}, {name: c, value: '3', forceString: true}]}", {"a": {"b": 3}, "c": "3"}),
        ("{values: 'a: {x: 1, b: 2}', parameters: [{name: a.b, value: 'true'}]}", {"a": {"x": 1, "b": True}}),
        ("{valuesObject: {a: [1]}, values: 'b: 1'}", {"a": [1]}),
        ("{parameters: [{name: 'a[0]', value: b}]}", None),
        ("{fileParameters: [{name: a, path: b}]}", None),
        ("{values: 'a: \"{{ .Release.Name }}\"'}", {"a": "{{ .Release.Name }}"}),
    ],
)
def test_the_values_of_a_chart_are_those_of_its_application(options: str, values: dict[str, Any] | None) -> None:
    tree = {"web.yaml": application("eu", "charts/web", "name: eu", f", helm: {options}"), "charts/web/Chart.yaml": "name: web"}
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    found = [bundle["spec"]["helm"].get("values") for bundle in yaml.safe_load_all(write_bundles(layout, {})) if bundle]
    assert found == ([values] if values is not None else [])


def write_set(generators: str, source: str, more: str = "") -> str:
    """Return an ApplicationSet."""
    return (
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: web}\n"
        f"spec: {{{more}generators: [{generators}], template: {{metadata: {{name: 'web-{{{{name}}}}'}}, spec: {{destination: {{name: "
        f"'{{{{name}}}}'}}, source: {{{source}}}}}}}}}\n"
    )


CLUSTERS = "{clusters: {}}"
NAMED = "{list: {elements: [{name: eu, size: big}, {name: us, size: small}]}}"
"""Clusters that only Argo CD has, and values for two of them."""


@pytest.mark.parametrize(
    ("text", "bundles", "reason"),
    [
        (write_set(NAMED, "path: web"), {"web": "all"}, ""),
        (
            write_set(f"{{merge: {{mergeKeys: [name], generators: [{CLUSTERS}, {NAMED}]}}}}", "path: 'web-{{size}}'"),
            {"web-big": "eu", "web-small": "us"},
            "",
        ),
        (
            write_set(NAMED, "path: charts/web, helm: {values: 'size: {{secret}}'}").replace(NAMED, "{plugin: {}}"),
            {},
            "the Application sets values that only Argo CD knows: move them to a values file, and add a Bundle",
        ),
        (
            write_set("{list: {elements: [{name: eu, size: 3}]}}", "path: web-big"),
            {},
            "Argo CD makes no Application of it: the value of size in its list generator is not a text: quote it, or set goTemplate",
        ),
    ],
)
def test_application_sets_are_read_as_builds_read_them(text: str, bundles: Mapping[str, str], reason: str) -> None:
    kustomizations = {f"{name}/kustomization.yaml": BASE for name in ("web", "web-big", "web-small")}
    tree = {"set.yaml": text, "charts/web/Chart.yaml": "name: web", **kustomizations}
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    assert {bundle.name: ", ".join(bundle.variants[0].target.names) or "all" for bundle in layout.bundles} == bundles
    assert [one.reason for one in layout.left_out if one.place == "set.yaml:1"] == ([reason] if reason else [])


NAMES = st.sampled_from(["base", "overlays", "clusters", "production", "staging", "web", "eu", "charts", ".git", "flux"])
FILES = st.sampled_from(
    [
        ("kustomization.yaml", "resources: [../base, ../../base, web.yaml, ., ..]"),
        ("kustomization.yaml", "resources: [../production]\ncomponents: [../staging]"),
        ("kustomization.yaml", "{"),
        ("Chart.yaml", "name: x"),
        ("values-eu.yaml", "a: 1"),
        ("web.yaml", WEB),
        ("ks.yaml", flux("./apps/production")),
        ("ks.yaml", flux("../..")),
        ("app.yaml", application("a", "web/overlays/eu", "name: eu")),
        ("app.yaml", application("a", "'{{path}}'", "server: '{{server}}'")),
    ]
)


@given(st.lists(st.tuples(st.lists(NAMES, max_size=4), FILES), max_size=12))
def test_any_tree_has_a_layout_with_unique_names_and_existing_directories(entries: list[tuple[list[str], tuple[str, str]]]) -> None:
    tree = {"/".join([*directories, name]): text.encode() for directories, (name, text) in entries}
    layout = recognize_layout(tree)
    names = [bundle.name for bundle in layout.bundles]
    assert len(set(names)) == len(names)
    parents = {"."} | {path.rpartition("/")[0][: len(path)] for path in tree}
    for bundle in layout.bundles:
        assert len({variant.target for variant in bundle.variants}) == len(bundle.variants)
        for variant in bundle.variants:
            assert any(f"{parent}/".startswith(f"{variant.path}/") for parent in parents) or variant.path == "."
            assert variant.target == Target() or set(variant.target.names) <= set(layout.clusters)
    assert layout == recognize_layout(dict(reversed(tree.items())))


def test_nothing_is_proposed_where_kustomizations_of_several_clusters_are_in_one_directory() -> None:
    text = {f"flux/{name}.yaml": flux(f"./{name}", called="apps") for name in ("one", "two")}
    layout = recognize_layout({path: text.encode() for path, text in {**text, "one/web.yaml": WEB, "two/web.yaml": WEB}.items()})
    assert (layout.bundles, [entry.place for entry in layout.left_out]) == ((), ["flux/one.yaml:1", "flux/two.yaml:1"])
    assert "move those of each cluster to clusters/NAME" in describe_layout(layout)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        *(
            (name, True)
            for name in ("4.10", "1.10.x", "v1", "v1.2", "4", "release-2.10", "stable-5.8", "stable", "acm-2.5", "v1beta1")
        ),
        *((name, False) for name in ("eu-1", "cluster-2", "prod", "prod-eu-1a", "k8s", "x1", "edge", "us-east-1", "gke-prod-3")),
    ],
)
def test_names_of_versions_are_no_clusters(name: str, version: bool) -> None:
    assert is_version(name) is version


def test_a_directory_that_an_artifact_generator_copies_says_how_to_place_it() -> None:
    text = flux("./apps/web", source="ExternalArtifact", name="web", called="web")
    tree = {"k8s/clusters/c0/web.yaml": text, "k8s/apps/web/kustomization.yaml": BASE, "k8s/apps/web/web.yaml": WEB}
    tree["k8s/clusters/c0/generator.yaml"] = (
        "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: all, namespace: flux-system}\nspec:\n"
        "  sources: [{alias: repo, kind: OCIRepository, name: flux-system}]\n"
        "  artifacts: [{name: web, copy: [{from: '@repo/apps/web/', to: '@artifact/apps/web/'}]}]\n"
    )
    layout = recognize_layout({path: text.encode() for path, text in tree.items()})
    assert layout.bundles == ()
    assert [entry.reason for entry in layout.left_out][:1] == [
        "it is in an artifact that an ArtifactGenerator copies: gitsched builds it as Flux does, so have policies select its objects, "
        "not a Bundle"
    ]


LOST = {
    "clusters/fra/apps.yaml": flux("./web").replace(
        "spec: {", "spec: {dependsOn: [{name: db}], suspend: true, interval: 5m, prune: true, wait: false, "
    )
    + "\n---\n"
    + flux("./db").replace(
        "spec: {", "spec: {interval: 10m, prune: false, wait: true, suspend: false, decryption: {provider: sops}, "
    )
    + "\n---\n"
    + flux("./deploy", name="other").replace("spec: {", "spec: {timeout: 1m, ")
    + "\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: flux-system}\n",
    "clusters/fra/flux-system/sync.yaml": flux("./clusters/fra"),
    "db/db.yaml": WEB,
    "web/web.yaml": WEB,
    "argo/mail.yaml": application("mail", "mail", "name: eu").replace(
        "spec: {", "spec: {project: shop, ignoreDifferences: [{kind: Deployment}], syncPolicy: {syncOptions: [Replace=true]}, "
    ),
    "argo/redis.yaml": application("redis", "x", "name: eu").replace("path: x", "chart: redis"),
    "argo/set.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: set}\nspec:\n  generators: [{list: "
    "{elements: [{path: news}]}}]\n  template: {metadata: {name: news}, spec: {project: default, destination: {name: eu}, sources: "
    "[{chart: kafka}, {path: '{{path}}'}], syncPolicy: {automated: {prune: true, selfHeal: true}, retry: {limit: 2}}}}\n",
    "mail/mail.yaml": WEB,
    "news/news.yaml": WEB,
}


def test_settings_that_no_exported_object_has_and_sources_elsewhere_are_named_with_their_documents() -> None:
    found = describe_layout(recognize_layout({path: text.encode() for path, text in LOST.items()}))
    left, _, lost = found.partition("\nNot taken over: ")
    assert lost.splitlines()[1:] == [
        "  decryption: clusters/fra/apps.yaml:6",
        "  dependsOn: clusters/fra/apps.yaml:1",
        "  ignoreDifferences: argo/mail.yaml:1",
        "  interval: clusters/fra/apps.yaml:1",
        "  project: argo/mail.yaml:1",
        "  prune: clusters/fra/apps.yaml:6",
        "  suspend: clusters/fra/apps.yaml:1",
        "  syncPolicy.retry: argo/set.yaml:1",
        "  syncPolicy.syncOptions: argo/mail.yaml:1",
        "  wait: clusters/fra/apps.yaml:1",
    ]
    assert left.partition("  3 sources: ")[2].splitlines()[1:4] == [
        "    clusters/fra/apps.yaml:11: GitRepository other",
        "    argo/redis.yaml:1: chart redis",
        "    and 1 more",
    ]
