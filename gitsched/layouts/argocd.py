"""Recognize a repository that Argo CD deploys: Applications and ApplicationSets, and the directories that they name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from gitsched.layouts.argocd_generators import Parameters, fill_template, list_parameters
from gitsched.layouts.helm_values import read_helm_values
from gitsched.layouts.layout import DeployedPath, DocumentRule, Findings, HelmRelease, LeftOut, Recognition, Target, choose_rules
from gitsched.layouts.overlay_names import split_path
from gitsched.layouts.repository_files import DeliveryDocument, RepositoryFiles, normalize_path
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.finding import format_count

_GROUP: Final = "argoproj.io"
_OWN_SERVER: Final = "https://kubernetes.default.svc"
_OWN_CLUSTER: Final = "in-cluster"
_SEVERAL: Final = "several"
_UNKNOWN: Final = "the Application has options that only Argo CD knows, or a plugin: move them to the overlay, and add a Bundle"
_DIFFERENT: Final = (
    "Applications build it with different options: map their directories to clusters in source.variants and add a Bundle, or have "
    "policies select its objects; gitsched builds both as Argo CD does"
)
_NO_PARAMETERS: Final[list[Parameters]] = [{}]


class _Source(NamedTuple):
    """A source of an Application: its directory as written, and the values files of a chart.

    `problem` says why a Bundle of the directory would differ from what Argo CD builds, or is "". `options` is a text that is equal for
    sources which change a kustomization equally.
    """

    path: str
    values_files: tuple[str, ...]
    cluster: str
    release: HelmRelease
    problem: str
    options: str


def recognize_argocd(files: RepositoryFiles, _: Collection[str] = ()) -> Findings:
    """Return the directories that Applications name, with the clusters that are their destinations."""
    documents = [document for kind in ("Application", "ApplicationSet") for document in files.list_documents(_GROUP, kind)]
    if not documents:
        return Findings()
    found: dict[tuple[str, tuple[str, ...], HelmRelease], dict[str, None]] = {}
    named: dict[str, dict[str, dict[str, str]]] = {}
    left_out: list[LeftOut] = []
    for document in documents:
        reasons: dict[str, str] = {}
        for source in _list_sources(document, files):
            path = normalize_path(source.path)
            reason = _find_exclusion(files, path) or source.problem
            reasons.setdefault(reason, path)
            if not reason:
                release = source.release if path in files.charts else HelmRelease()
                found.setdefault((path, source.values_files, release), {})[source.cluster] = None
                texts = named.setdefault(path, {}).setdefault(source.cluster, {})
                options = source.options if path not in files.charts else ""
                texts[document.path] = options if texts.get(document.path, options) == options else _SEVERAL
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
            documents=tuple(dict.fromkeys(file for texts in named[path].values() for file in texts)),
        )
        for (path, values_files, release), names in sorted(found.items())
    )
    counts = Counter(document.kind for document in documents)
    shown = " and ".join(format_count(count, kind) for kind, count in counts.items())
    names = f"; destinations {', '.join(list(clusters)[:4])}{', ...' if len(clusters) > 4 else ''}" if clusters else ""
    reason = f"{shown}, such as {documents[0].place}{names}"
    return Findings((Recognition("Argo CD", reason),), deployed, clusters, tuple(left_out), rules=tuple(rules))


def _list_sources(document: DeliveryDocument, files: RepositoryFiles) -> Iterator[_Source]:
    """Yield the directories of a repository that an Application or an ApplicationSet names."""
    spec, sets, name_template = as_object(document.body.get("spec")), _NO_PARAMETERS, document.name
    if document.kind == "ApplicationSet":
        sets = list_parameters(spec.get("generators"), files, f"ApplicationSet {document.name} ({document.place})")
        name_template = str(get_field(spec, "template", "metadata", "name") or "")
        spec = as_object(get_field(spec, "template", "spec"))
    destination = as_object(spec.get("destination"))
    for parameters in sets:
        cluster = files.find_cluster(document.path)[1] or _read_cluster(destination, parameters)
        for source in [as_object(spec.get("source")), *list_objects(spec.get("sources"))]:
            path = source.get("path")
            filled = fill_template(path, parameters) if isinstance(path, str) else None
            if filled and not source.get("chart"):
                names = (fill_template(str(name), parameters) for name in get_field(source, "helm", "valueFiles") or ())
                files_of_values = tuple(name for name in names if name and not name.startswith("$"))
                release = HelmRelease(
                    fill_template(str(get_field(source, "helm", "releaseName") or name_template), parameters) or "",
                    fill_template(str(destination.get("namespace") or ""), parameters) or "",
                )
                values, problem = read_helm_values(as_object(source.get("helm")), parameters)
                release = release._replace(values=json.dumps(values, sort_keys=True) if values else "")
                options = fill_template(json.dumps([source.get("kustomize"), release.namespace], sort_keys=True), parameters)
                if options is None or source.get("plugin"):
                    problem = problem or _UNKNOWN
                yield _Source(filled, files_of_values, cluster, release, problem, options or "")


def _read_cluster(destination: Body, parameters: Parameters) -> str:
    """Return the name of the destination; "" if only Argo CD knows it."""
    name = fill_template(str(destination.get("name") or ""), parameters)
    if name:
        return name
    server = fill_template(str(destination.get("server") or ""), parameters)
    if server == _OWN_SERVER:
        return _OWN_CLUSTER
    return parameters.get("cluster") or parameters.get("name") or parameters.get("nameNormalized") or ""


def _find_exclusion(files: RepositoryFiles, path: str) -> str:
    """Return why a directory is not proposed; "" if it is."""
    if path not in files.directories or not files.find_kind(path):
        return "the directory of the Application is not in this repository"
    if path in files.charts:
        return ""
    _, reached = files.list_reached(path)
    inner = any(document.path in reached and document.group == _GROUP for document in files.documents)
    return "the directory has further Applications, whose directories are proposed" if inner else ""
