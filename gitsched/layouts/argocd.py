"""Recognize a repository that Argo CD deploys: Applications and ApplicationSets, and the directories that they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from gitsched.layouts.argocd_generators import Parameters, fill_template, list_parameters
from gitsched.layouts.layout import DeployedPath, Findings, LeftOut, Recognition, Target, count_words
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


def recognize_argocd(files: RepositoryFiles, _: Collection[str] = ()) -> Findings:
    """Return the directories that Applications name, with the clusters that are their destinations."""
    documents = [document for kind in ("Application", "ApplicationSet") for document in files.list_documents(_GROUP, kind)]
    if not documents:
        return Findings()
    found: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    left_out: list[LeftOut] = []
    for document in documents:
        reasons: dict[str, str] = {}
        for source in _list_sources(document, files):
            path = normalize_path(source.path)
            reason = _find_exclusion(files, path)
            reasons.setdefault(reason, path)
            if not reason:
                found.setdefault((path, source.values_files), {})[source.cluster] = None
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
        )
        for (path, values_files), names in sorted(found.items())
    )
    counts = Counter(document.kind for document in documents)
    shown = " and ".join(count_words(count, kind) for kind, count in counts.items())
    names = f"; destinations {', '.join(list(clusters)[:4])}{', ...' if len(clusters) > 4 else ''}" if clusters else ""
    reason = f"{shown}, such as {documents[0].place}{names}"
    return Findings((Recognition("Argo CD", reason),), deployed, clusters, tuple(left_out))


def _list_sources(document: DeliveryDocument, files: RepositoryFiles) -> Iterator[_Source]:
    """Yield the directories of a repository that an Application or an ApplicationSet names."""
    spec, sets = as_object(document.body.get("spec")), _NO_PARAMETERS
    if document.kind == "ApplicationSet":
        sets = list_parameters(spec.get("generators"), files)
        spec = as_object(get_field(spec, "template", "spec"))
    for parameters in sets:
        cluster = _read_cluster(as_object(spec.get("destination")), parameters)
        for source in [as_object(spec.get("source")), *list_objects(spec.get("sources"))]:
            path = source.get("path")
            filled = fill_template(path, parameters) if isinstance(path, str) else None
            if filled and not source.get("chart"):
                names = (fill_template(str(name), parameters) for name in get_field(source, "helm", "valueFiles") or ())
                yield _Source(filled, tuple(name for name in names if name and not name.startswith("$")), cluster)


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
