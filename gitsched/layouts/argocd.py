"""Recognize a repository that Argo CD deploys: Applications and ApplicationSets, and the directories that they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from gitsched.layouts.argocd_generators import Parameters, fill_template, list_parameters
from gitsched.layouts.layout import DeployedPath, Findings, HelmRelease, LeftOut, Recognition, Target, count_words
from gitsched.layouts.overlay_names import split_path
from gitsched.layouts.repository_files import DeliveryDocument, RepositoryFiles, normalize_path
from gitsched.model.document import Body, as_object, get_field, list_objects

_GROUP: Final = "argoproj.io"
_OWN_SERVER: Final = "https://kubernetes.default.svc"
_OWN_CLUSTER: Final = "in-cluster"
_NO_PARAMETERS: Final[list[Parameters]] = [{}]


class _Source(NamedTuple):
    """A source of an Application: its directory as written, and the values files of a chart."""

    path: str
    values_files: tuple[str, ...]
    cluster: str
    release: HelmRelease
    changes: tuple[str, ...]


def recognize_argocd(files: RepositoryFiles, _: Collection[str] = ()) -> Findings:
    """Return the directories that Applications name, with the clusters that are their destinations."""
    documents = [document for kind in ("Application", "ApplicationSet") for document in files.list_documents(_GROUP, kind)]
    if not documents:
        return Findings()
    found: dict[tuple[str, tuple[str, ...], HelmRelease], dict[str, None]] = {}
    left_out: list[LeftOut] = []
    for document in documents:
        reasons: dict[str, str] = {}
        for source in _list_sources(document, files):
            path = normalize_path(source.path)
            reason = _find_exclusion(files, path) or _describe_changes(source)
            reasons.setdefault(reason, path)
            if not reason:
                release = source.release if path in files.charts else HelmRelease()
                found.setdefault((path, source.values_files, release), {})[source.cluster] = None
        if reasons and "" not in reasons:
            left_out += [LeftOut(document.place, reason, path) for reason, path in reasons.items()]
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
        )
        for (path, values_files, release), names in sorted(found.items())
    )
    counts = Counter(document.kind for document in documents)
    shown = " and ".join(count_words(count, kind) for kind, count in counts.items())
    names = f"; destinations {', '.join(list(clusters)[:4])}{', ...' if len(clusters) > 4 else ''}" if clusters else ""
    reason = f"{shown}, such as {documents[0].place}{names}"
    return Findings((Recognition("Argo CD", reason),), deployed, clusters, tuple(left_out))


def _list_sources(document: DeliveryDocument, files: RepositoryFiles) -> Iterator[_Source]:
    """Yield the directories of a repository that an Application or an ApplicationSet names."""
    spec, sets, name_template = as_object(document.body.get("spec")), _NO_PARAMETERS, document.name
    if document.kind == "ApplicationSet":
        sets = list_parameters(spec.get("generators"), files)
        name_template = str(get_field(spec, "template", "metadata", "name") or "")
        spec = as_object(get_field(spec, "template", "spec"))
    destination = as_object(spec.get("destination"))
    for parameters in sets:
        cluster = _read_cluster(destination, parameters)
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
                yield _Source(filled, files_of_values, cluster, release, tuple(_list_changes(source)))


_CHANGES: Final = {
    "kustomize": (
        "namePrefix",
        "nameSuffix",
        "images",
        "replicas",
        "patches",
        "components",
        "commonLabels",
        "commonAnnotations",
        "namespace",
    ),
    "helm": ("parameters", "fileParameters", "values", "valuesObject"),
    "plugin": ("name", "env", "parameters"),
}
"""Fields with which an Application changes what its directory builds, and which are in no file that a Bundle could name."""


def _list_changes(source: Body) -> Iterator[str]:
    for section, fields in _CHANGES.items():
        yield from (f"{section}.{field}" for field in fields if get_field(source, section, field))


def _describe_changes(source: _Source) -> str:
    """Return why a Bundle of the directory would differ from what Argo CD builds; "" if it would not."""
    if not source.changes:
        return ""
    return f"the Application sets {', '.join(source.changes)}: move them to the overlay or to a values file, and add a Bundle"


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
