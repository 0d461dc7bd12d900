"""Recognize a repository that Argo CD deploys: Applications and ApplicationSets, and the directories that they name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from gitsched.build.application_sets import APPLICATION_SET, list_applications
from gitsched.build.argo_cd import list_sources
from gitsched.build.go_templates import Parameters, find_unknown
from gitsched.build.parameter_sets import IN_CLUSTER, IN_CLUSTER_SERVER, GeneratorInput
from gitsched.layouts.cluster_directories import ONLY_CLUSTER, separate_clusters
from gitsched.layouts.delivery_settings import list_lost_settings
from gitsched.layouts.helm_values import read_helm_values
from gitsched.layouts.layout import (
    NOT_BUILT,
    DeployedPath,
    DocumentRule,
    Findings,
    HelmRelease,
    LeftOut,
    Recognition,
    Target,
    choose_rules,
)
from gitsched.layouts.overlay_names import split_path
from gitsched.layouts.repository_files import DeliveryDocument, RepositoryFiles, normalize_path
from gitsched.model.document import Body, as_object, get_field
from gitsched.model.finding import format_count
from gitsched.named_tuples import NamedTuple

_GROUP: Final = "argoproj.io"
_SEVERAL: Final = "several"
_UNKNOWN: Final = "the Application has options that only Argo CD knows, or a plugin: move them to the overlay, and add a Bundle"
_DIFFERENT: Final = (
    "Applications build it with different options: map their directories to clusters in source.variants and add a Bundle, or have "
    "policies select its objects; gitsched builds both as Argo CD does"
)
_SEVERAL_HUBS: Final = (
    "several Applications have the same name, so they are of several instances of Argo CD, each with a cluster of its own, and their "
    "directories do not say of which: say which with --cluster DIR=NAME, or move those of each instance to a directory beside the others"
)
_NO_PARAMETERS: Final = Parameters({})


class _Source(NamedTuple):
    """A source of an Application: its directory as written, and the values files of a chart.

    `problem` says why a Bundle of the directory would differ from what Argo CD builds, or is "". `options` is a text that is equal for
    sources which change a kustomization equally. `chart` is one of another server.
    """

    path: str
    values_files: tuple[str, ...]
    cluster: str
    release: HelmRelease
    problem: str
    options: str
    chart: str = ""


def recognize_argocd(files: RepositoryFiles, _: Collection[str] = ()) -> Findings:
    """Return the directories that Applications name, with the clusters that are their destinations."""
    documents = [document for kind in ("Application", "ApplicationSet") for document in files.list_documents(_GROUP, kind)]
    if not documents:
        return Findings()
    hubs = _separate_hubs(documents, files)
    found: dict[tuple[str, tuple[str, ...], HelmRelease], dict[str, None]] = {}
    named: dict[str, dict[str, dict[str, str]]] = {}
    lost: dict[str, dict[LeftOut, None]] = {}
    places: dict[str, dict[tuple[str, int], None]] = {}
    left_out: list[LeftOut] = []
    source_of_generators = GeneratorInput(files, (), lambda _: True)
    for document in documents:
        reasons: dict[str, str] = {}
        hub = hubs and hubs.get(document.path, IN_CLUSTER)
        for source in _list_sources(document, files, source_of_generators):
            source = source._replace(cluster=hub) if hub and source.cluster == IN_CLUSTER else source
            path = normalize_path(source.path)
            reason = source.problem if not source.path else _find_exclusion(files, path) or source.problem
            if reason == NOT_BUILT:
                left_out.append(LeftOut(document.place, reason, source.chart))
                continue
            if not reason and hubs is None and source.cluster == IN_CLUSTER:
                reason = _SEVERAL_HUBS
            reasons.setdefault(reason, path)
            if not reason:
                release = source.release if path in files.charts else HelmRelease()
                found.setdefault((path, source.values_files, release), {})[source.cluster] = None
                texts = named.setdefault(path, {}).setdefault(source.cluster, {})
                options = source.options if path not in files.charts else ""
                texts[document.path] = options if texts.get(document.path, options) == options else _SEVERAL
                places.setdefault(path, {})[document.path, document.line] = None
                lost.setdefault(path, {}).update(dict.fromkeys(list_lost_settings(document)))
        if reasons and "" not in reasons:
            left_out += [LeftOut(document.place, reason, path) for reason, path in reasons.items()]
    rules: dict[DocumentRule, None] = {}
    for path, documents_by_cluster in named.items():
        texts_of_path = {text for texts in documents_by_cluster.values() for text in texts.values()}
        if len(texts_of_path) > 1 or _SEVERAL in texts_of_path:
            own = choose_rules(documents_by_cluster) if _SEVERAL not in texts_of_path else None
            if own is not None and "" not in documents_by_cluster:
                rules |= dict.fromkeys(own)
                continue
            files_of_path = dict.fromkeys(file for texts in documents_by_cluster.values() for file in texts)
            left_out += [LeftOut(file, _DIFFERENT, path) for file in files_of_path]
            found = {key: names for key, names in found.items() if key[0] != path}
    clusters = dict.fromkeys((name for names in found.values() for name in names if name), "")
    deployed = tuple(
        DeployedPath(
            path,
            Target(tuple(name for name in names if name)),
            split_path(path, clusters).bundle,
            files.find_kind(path) or "plain",
            values_files,
            explicit=True,
            release=release,
            documents=tuple(places[path]),
            lost_settings=tuple(lost[path]),
        )
        for (path, values_files, release), names in sorted(found.items())
    )
    counts = Counter(document.kind for document in documents)
    shown = " and ".join(format_count(count, kind) for kind, count in counts.items())
    names = f"; destinations {', '.join(list(clusters)[:4])}{', ...' if len(clusters) > 4 else ''}" if clusters else ""
    reason = f"{shown}, such as {documents[0].place}{names}"
    return Findings((Recognition("Argo CD", reason),), deployed, clusters, tuple(left_out), rules=tuple(rules))


def _separate_hubs(documents: Collection[DeliveryDocument], files: RepositoryFiles) -> Mapping[str, str] | None:
    """Return the name of its own cluster for each file of one of several instances of Argo CD: none has two Applications of one name.

    None: directories do not tell the instances apart."""
    local = [
        document
        for document in documents
        if not files.find_cluster(document.path)[1]
        and get_field(document.body, "spec", "destination", "server") == IN_CLUSTER_SERVER
    ]
    hubs = separate_clusters(local)
    if hubs == {".": ONLY_CLUSTER}:
        return {}
    paths = {document.path for document in documents}
    return {path: name for directory, name in hubs.items() for path in paths if path.startswith(f"{directory}/")} if hubs else None


def _list_sources(document: DeliveryDocument, files: RepositoryFiles, generators: GeneratorInput) -> Iterator[_Source]:
    """Yield the directories of a repository that an Application or an ApplicationSet names."""
    applications, problem = [(document.body, _NO_PARAMETERS)], ""
    if document.kind == APPLICATION_SET:
        made, title = list_applications(document.body, generators), f"{APPLICATION_SET} {document.name} ({document.place})"
        applications = list(zip(made.applications, made.parameters, strict=True))
        problem = f"Argo CD makes no Application of it: {made.problem}" if made.problem else ""
        if not made.is_complete:
            files.notes[f"{title} makes more than {len(applications):,} Applications: only the first ones are considered"] = None
    for application, parameters in applications:
        spec = as_object(application.get("spec"))
        destination = as_object(spec.get("destination"))
        cluster = files.find_cluster(document.path)[1] or _read_cluster(destination, parameters)
        for source in list_sources(application):
            path = _keep_known(source.get("path"))
            if source.get("chart"):
                yield _Source("", (), cluster, HelmRelease(), NOT_BUILT, "", f"chart {source['chart']}")
            elif path or problem:
                yield _read_source(source, path, cluster, application, problem)


def _read_source(source: Body, path: str, cluster: str, application: Body, problem: str) -> _Source:
    """Return a source of an Application with a known path. `problem` is why Argo CD makes no such Application."""
    helm, destination = as_object(source.get("helm")), as_object(get_field(application, "spec", "destination"))
    names = map(_keep_known, helm.get("valueFiles") or ())
    files_of_values = tuple(name for name in names if name and not name.startswith("$"))
    values, unknown = read_helm_values(helm)
    release = HelmRelease(
        _keep_known(helm.get("releaseName") or get_field(application, "metadata", "name")),
        _keep_known(destination.get("namespace")),
        json.dumps(values, sort_keys=True) if values else "",
    )
    given = [source.get("kustomize"), release.namespace]
    if source.get("plugin") or find_unknown([given[0], destination.get("namespace")]) is not None:
        unknown = unknown or _UNKNOWN
    return _Source(path, files_of_values, cluster, release, problem or unknown, json.dumps(given, sort_keys=True))


def _keep_known(value: object) -> str:
    """Return a text; "" if it has an expression whose value is not known, and for no value."""
    text = "" if value is None else str(value)
    return "" if find_unknown(text) is not None else text


def _read_cluster(destination: Body, parameters: Parameters) -> str:
    """Return the name of the destination; "" if only Argo CD knows it."""
    name = _keep_known(destination.get("name"))
    if name or _keep_known(destination.get("server")) == IN_CLUSTER_SERVER:
        return name or IN_CLUSTER
    return next((text for key in ("cluster", "name", "nameNormalized") if (text := _keep_known(parameters.values.get(key)))), "")


def _find_exclusion(files: RepositoryFiles, path: str) -> str:
    """Return why a directory is not proposed; "" if it is."""
    if path not in files.directories or not files.find_kind(path):
        return "the directory of the Application is not in this repository"
    if path in files.charts:
        return ""
    _, reached = files.list_reached(path)
    inner = any(document.path in reached and document.group == _GROUP for document in files.documents)
    return "the directory has further Applications, whose directories are proposed" if inner else ""
