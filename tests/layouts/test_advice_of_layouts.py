"""Advice of `gitsched init` about what it leaves out is carried out as it is printed: the directory is proposed then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gitsched.layouts.layout import Layout
from gitsched.layouts.recognition import recognize_layout
from tests.layouts.test_recognition import BASE, DEEP, WEB, application, flux, substitute
from tests.scenarios.advice_texts import list_advice
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
CHART = "name: shop"
NAMED = {"web/overlays/production/kustomization.yaml": BASE}
IN_CLUSTER = "server: https://kubernetes.default.svc"


class Case(NamedTuple):
    """`tree` has a directory that is left out with `phrase`. With `follow`, and with --cluster for the directories of `options`, it is
    proposed: `expected` is a directory with its clusters, or its environment."""

    phrase: str
    tree: Mapping[str, str]
    expected: tuple[str, str]
    options: Mapping[str, str] = {}
    follow: Mapping[str, str | None] = {}


def chart(options: str) -> dict[str, str]:
    return {"app.yaml": application("shop", "charts/shop", "name: eu", f", helm: {options}"), "charts/shop/Chart.yaml": CHART}


def move_values(name: str) -> dict[str, str | None]:
    return {**chart("{valueFiles: [own.yaml]}"), "charts/shop/own.yaml": name}


CASES = [
    Case(
        "it may be for an environment, or for tests, as its name is that of both: if it is for a cluster, say so with --cluster DIR=NAME",
        {"test/web/kustomization.yaml": BASE, "test/web/web.yaml": WEB},
        ("test/web", "eu-1"),
        {"test": "eu-1"},
    ),
    Case(
        "it is a base that no overlay includes: if it is for a cluster, say so with --cluster DIR=NAME",
        {"web/base/kustomization.yaml": BASE, **NAMED},
        ("web/base", "eu-1"),
        {"web/base": "eu-1"},
    ),
    Case(
        "it may be for a cluster of this name, or for another purpose: if it is for a cluster, say so with --cluster DIR=NAME",
        {"web/overlays/paris/kustomization.yaml": DEEP},
        ("web/overlays/paris", "paris"),
        {"web/overlays/paris": "paris"},
    ),
    Case(
        "its name says that it is not in use: if a cluster gets it, say so with --cluster DIR=NAME",
        {"_archive/db/overlays/production/kustomization.yaml": BASE, **NAMED},
        ("_archive/db/overlays/production", "eu-1"),
        {"_archive": "eu-1"},
    ),
    Case(
        "its name says that it is not in use: if a cluster gets it, say so with --cluster DIR=NAME",
        {"old/ks.yaml": flux("./web"), "ks.yaml": flux("./dns"), "web/web.yaml": WEB, "dns/web.yaml": WEB},
        ("web", "eu-1"),
        {"old": "eu-1"},
    ),
    Case(
        "no directory or document says where it is deployed: say it with --cluster DIR=NAME",
        {"db/kustomization.yaml": BASE, **NAMED},
        ("db", "eu-1"),
        {"db": "eu-1"},
    ),
    Case(
        "no directory or document says where it is deployed: say it with --cluster DIR=NAME",
        {"charts/db/Chart.yaml": CHART, **NAMED},
        ("charts/db", "eu-1"),
        {"charts/db": "eu-1"},
    ),
    Case(
        "no cluster is in its environment: say the cluster with --cluster DIR=NAME",
        {"web/overlays/eu-1/kustomization.yaml": DEEP, "web/overlays/prod/kustomization.yaml": DEEP},
        ("web/overlays/prod", "eu-2"),
        {"web/overlays/prod": "eu-2"},
    ),
    Case(
        "no document of Flux or Argo CD names it, so that it may not be deployed: if a cluster gets it, say so with --cluster DIR=NAME",
        {"clusters/eu/web.yaml": flux("./web"), "web/kustomization.yaml": BASE, "db/overlays/prod/kustomization.yaml": DEEP},
        ("db/overlays/prod", "eu"),
        {"db": "eu"},
    ),
    Case(
        "named like a version, not like a cluster: if it is for one, say so with --cluster DIR=NAME",
        {"op/overlays/4.10/kustomization.yaml": DEEP, **NAMED},
        ("op/overlays/4.10", "eu-1"),
        {"op/overlays/4.10": "eu-1"},
    ),
    Case(
        "no cluster can have this name, of lower case letters, digits and '-': say the name with --cluster DIR=NAME",
        {"app.yaml": application("web", "web", "name: EU_West"), "web/kustomization.yaml": BASE},
        ("web", "eu-west"),
        {"web": "eu-west"},
    ),
    Case(
        "their directories do not say of which: say which with --cluster DIR=NAME",
        {
            "a/ks.yaml": flux("./one", called="apps"),
            "a/b/ks.yaml": flux("./two", called="apps"),
            "one/a.yaml": WEB,
            "two/a.yaml": WEB,
        },
        ("two", "c2"),
        {"a/b": "c2"},
    ),
    Case(
        "or move those of each cluster to clusters/NAME",
        {
            "a/ks.yaml": flux("./one", called="apps"),
            "a/b/ks.yaml": flux("./two", called="apps"),
            "one/a.yaml": WEB,
            "two/a.yaml": WEB,
        },
        ("two", "c2"),
        follow={
            "a/ks.yaml": None,
            "a/b/ks.yaml": None,
            "clusters/c1/ks.yaml": flux("./one", called="apps"),
            "clusters/c2/ks.yaml": flux("./two", called="apps"),
        },
    ),
    Case(
        "the directory of no cluster has or builds this Kustomization: if one does, say which with --cluster DIR=NAME",
        {"clusters/eu/dns.yaml": flux("./dns"), "more/ks.yaml": flux("./web"), "web/web.yaml": WEB, "dns/web.yaml": WEB},
        ("web", "us"),
        {"more": "us"},
    ),
    Case(
        "their directories do not say of which: say which with --cluster DIR=NAME",
        {
            "a/app.yaml": application("apps", "one", IN_CLUSTER),
            "a/b/app.yaml": application("apps", "two", IN_CLUSTER),
            "one/a.yaml": WEB,
            "two/a.yaml": WEB,
        },
        ("two", "c2"),
        {"a/b": "c2"},
    ),
    Case(
        "or move those of each instance to a directory beside the others",
        {
            "a/app.yaml": application("apps", "one", IN_CLUSTER),
            "a/b/app.yaml": application("apps", "two", IN_CLUSTER),
            "one/a.yaml": WEB,
            "two/a.yaml": WEB,
        },
        ("two", "b"),
        follow={"a/app.yaml": None, "a/c/app.yaml": application("apps", "one", IN_CLUSTER)},
    ),
    Case(
        "the Application has options that only Argo CD knows, or a plugin: move them to the overlay",
        {"app.yaml": application("web", "web", "name: eu", ", plugin: {name: x}"), "web/kustomization.yaml": BASE},
        ("web", "eu"),
        follow={"app.yaml": application("web", "web", "name: eu")},
    ),
    Case(
        "the Application sets helm.fileParameters: move them to a values file",
        chart("{fileParameters: [{name: a, path: b}]}"),
        ("charts/shop", "eu"),
        follow=move_values("a: b"),
    ),
    Case(
        "the Application sets the parameter a[0]: move it to a values file",
        chart("{parameters: [{name: 'a[0]', value: b}]}"),
        ("charts/shop", "eu"),
        follow=move_values("a: [b]"),
    ),
    Case(
        "the Application sets values that only Argo CD knows: move them to a values file",
        {
            **chart("{}"),
            "app.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: web}\n"
            "spec: {generators: [{plugin: {}}], template: {metadata: {name: web}, spec: {destination: {name: eu}, source: {path: "
            "charts/shop, helm: {values: 'size: {{secret}}'}}}}}\n",
        },
        ("charts/shop", "eu"),
        follow=move_values("size: big"),
    ),
    Case(
        "Kustomizations set namePrefix, targetNamespace differently: map their directories to clusters in source.variants",
        {
            "clusters/eu/web.yaml": substitute("./web", "targetNamespace: a"),
            "clusters/eu/more.yaml": substitute("./web", "namePrefix: b-"),
            "web/kustomization.yaml": BASE,
            "web/web.yaml": WEB,
        },
        ("web", "all"),
        follow={"clusters/eu/more.yaml": None, "clusters/us/more.yaml": substitute("./web", "namePrefix: b-")},
    ),
    Case(
        "gitsched does not build what comes from elsewhere: keep it in its document, or commit the files",
        {"app.yaml": application("web", "web", "name: eu").replace("path: web", "chart: web")},
        ("web", "all"),
        follow={"app.yaml": application("web", "web", "name: eu"), "web/Chart.yaml": "name: web"},
    ),
]
CARRIED_OUT_ELSEWHERE = {
    "add a variant to the Bundle of the chart": "tests/scenarios/bundles.yaml",
    "Applications build it with different options": "tests/layouts/test_recognition.py",
    "its plain YAML may be for a cluster, as that of a directory beside it": "tests/cli/test_init.py",
    "exists and lacks this: add": "tests/cli/test_advice_of_init.py",
    "bundles were found: only the first": "tests/layouts/test_limits_of_recognition.py",
}


def recognize(tree: Mapping[str, str | None], options: Mapping[str, str] | None = None) -> Layout:
    return recognize_layout({path: text.encode() for path, text in tree.items() if text is not None}, directories=options)


def list_proposed(layout: Layout) -> set[tuple[str, str]]:
    """Return the directories that are proposed, each with a cluster or an environment."""
    variants = [variant for bundle in layout.bundles for variant in bundle.variants]
    return {(one.path, target) for one in variants for target in (one.target.names or (one.target.environment or "all",))} | {
        (one.path, next(iter(layout.clusters))) for one in variants if one.target == ((), "") and len(layout.clusters) == 1
    }


@each_row("case", CASES)
def test_a_directory_is_proposed_as_the_advice_says(case: Case) -> None:
    directory = case.expected[0]
    before = recognize(case.tree)
    assert any(case.phrase in entry.reason for entry in before.left_out)
    assert directory not in {path for path, _ in list_proposed(before)}
    after = recognize({**case.tree, **case.follow}, case.options)
    assert case.expected in list_proposed(after)
    assert not any(case.phrase in entry.reason and directory in entry[::2] for entry in after.left_out)


def test_every_advice_about_layouts_has_a_case_or_a_reason() -> None:
    found = list(list_advice(ROOT / "gitsched/layouts"))
    assert len(found) > 15
    phrases = [*(case.phrase for case in CASES), *CARRIED_OUT_ELSEWHERE]
    fragments = [(place, [part.strip() for part in text.split("{}") if len(part) > 12]) for text, place in found]
    assert [place for place, parts in fragments if not any(part in one or one in part for part in parts for one in phrases)] == []
    assert [path for path in CARRIED_OUT_ELSEWHERE.values() if not (ROOT / path).exists()] == []
