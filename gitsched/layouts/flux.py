"""Recognize a repository that Flux deploys: Kustomizations in a directory for each cluster, and the directories that they name."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence

from gitsched.apis.gitsched.bundle import CLUSTER_ANNOTATIONS, CLUSTER_LABELS, CLUSTER_NAME
from gitsched.layouts.cluster_directories import ONLY_CLUSTER, separate_clusters
from gitsched.layouts.delivery_settings import list_lost_settings
from gitsched.layouts.layout import (
    NOT_BUILT,
    UNUSED,
    DeployedPath,
    DocumentRule,
    Findings,
    LeftOut,
    Recognition,
    Target,
    choose_rules,
)
from gitsched.layouts.overlay_names import is_base, is_unused, names_cluster, split_path
from gitsched.layouts.repository_files import DeliveryDocument, RepositoryFiles, list_parents, normalize_path
from gitsched.model.document import as_object, get_field, list_objects
from gitsched.model.finding import format_count

_KUSTOMIZATION = "kustomize.toolkit.fluxcd.io", "Kustomization"
_SOURCE_GROUP = "source.toolkit.fluxcd.io"
_ARTIFACT = "ExternalArtifact"
_SEVERAL_CLUSTERS = (
    "several Kustomizations have the same name, so they are of several clusters, and their directories do not say of which: say which "
    "with --cluster DIR=NAME, or move those of each cluster to clusters/NAME"
)
_UNREACHED = "the directory of no cluster has or builds this Kustomization: if one does, say which with --cluster DIR=NAME"
_COPIED = (
    "it is in an artifact that an ArtifactGenerator copies: gitsched builds it as Flux does, so have policies select its objects, not a "
    "Bundle"
)
_CLUSTER_FIELDS = (CLUSTER_NAME, CLUSTER_LABELS, CLUSTER_ANNOTATIONS)
_Documents = dict[str, list[DeliveryDocument]]
"""The Kustomizations of a directory by cluster."""
_DIRECTORY_SOURCES = ("OCIRepository", "Bucket")
"""Sources that may have one directory of the repository."""


def recognize_flux(files: RepositoryFiles, known: Collection[str] = ()) -> Findings:
    """Return the directories that Flux Kustomizations name, with the clusters whose directories have them. `known` are clusters whose
    documents may exist."""
    kustomizations = [_find_root(document, files) for document in files.list_documents(*_KUSTOMIZATION) if _read_path(document)]
    sources = _list_own_sources(files, kustomizations)
    foreign = [document for document in kustomizations if _is_foreign(document, sources)]
    kustomizations = [document for document in kustomizations if not _is_foreign(document, sources)]
    if not kustomizations:
        return Findings()
    entries = _find_named_clusters(kustomizations, files)
    entries = _add_clusters(entries, _find_clusters(kustomizations, files))
    unused = tuple(LeftOut(document.place, NOT_BUILT, " ".join(_read_source(document))) for document in foreign)
    if entries == {".": ONLY_CLUSTER}:
        unused += tuple(
            LeftOut(document.place, UNUSED, _read_path(document)) for document in kustomizations if is_unused(document.path)
        )
        kustomizations = [document for document in kustomizations if not is_unused(document.path)]
        entries = separate_clusters(kustomizations)
    if not entries or not kustomizations:
        left = tuple(LeftOut(document.place, _SEVERAL_CLUSTERS, _read_path(document)) for document in kustomizations)
        count = format_count(len(kustomizations), "Flux Kustomization")
        return Findings((Recognition("Flux", f"{count} of several clusters"),) if left else (), left_out=(*left, *unused))
    by_file: dict[str, list[DeliveryDocument]] = {}
    for document in kustomizations:
        by_file.setdefault(document.path, []).append(document)
    own_paths, reached = set(entries), set[str]()
    found: dict[str, _Documents] = {}
    left_out: dict[LeftOut, None] = dict.fromkeys(unused)
    for entry, cluster in entries.items():
        for document in _list_reached_documents(files, entry, by_file):
            reached.add(document.place)
            path = _resolve_artifact(files, document)
            if path in own_paths:
                continue
            reason = _find_exclusion(files, path, by_file, is_copied=_read_source(document)[0] == _ARTIFACT)
            if reason:
                left_out[LeftOut(document.place, reason, path)] = None
            else:
                found.setdefault(path, {}).setdefault(cluster, []).append(document)
    left_out |= dict.fromkeys(
        LeftOut(document.place, _UNREACHED, _read_path(document)) for document in kustomizations if document.place not in reached
    )
    bundles: dict[str, list[tuple[str, list[DeliveryDocument]]]] = {}
    for path, clusters in found.items():
        bundles.setdefault(_find_bundle(path, entries, files.clusters), []).extend(clusters.items())
    values = {bundle: _list_bundle_values(documents, known) for bundle, documents in bundles.items()}
    rules: dict[DocumentRule, None] = {}
    deployed: list[DeployedPath] = []
    for path, clusters in sorted(found.items()):
        bundle = _find_bundle(path, entries, files.clusters)
        documents = {document.place: document for listed in clusters.values() for document in listed}
        if len({_write_options(document, values[bundle]) for document in documents.values()}) > 1:
            # a Bundle is built with the options of one document
            own = choose_rules(_list_options(clusters, values[bundle]), {cluster: path for path, cluster in entries.items()})
            if own is None:
                fields = ", ".join(dict.fromkeys(field for document in documents.values() for field in _list_changes(document)))
                left_out |= dict.fromkeys(LeftOut(place, _DIFFERENT.format(fields), path) for place in documents)
                continue
            rules |= dict.fromkeys(own)
        deployed.append(
            DeployedPath(
                path,
                Target(tuple(clusters)),
                bundle,
                files.find_kind(path) or "plain",
                explicit=True,
                variables=tuple(
                    (cluster, tuple((name, value) for name, value in _read_variables(listed[0]).items() if name in values[bundle]))
                    for cluster, listed in clusters.items()
                ),
                documents=tuple((document.path, document.line) for document in documents.values()),
                lost_settings=tuple(setting for document in documents.values() for setting in list_lost_settings(document)),
            )
        )
    shown = [f"{path} is cluster {name}" if path != "." else f"one cluster, here called {name}" for path, name in entries.items()]
    names = f"{', '.join(shown[:4])}{', ...' if len(shown) > 4 else ''}"
    text = f"{format_count(len(kustomizations), 'Flux Kustomization')}, such as {kustomizations[0].place}; {names}"
    return Findings(
        (Recognition("Flux", text),),
        tuple(deployed),
        dict.fromkeys(entries.values(), ""),
        tuple(left_out),
        tuple(path for path in entries if path != "."),
        tuple(rules),
        _list_unnamed_roots(files, kustomizations),
    )


def _list_unnamed_roots(files: RepositoryFiles, kustomizations: Collection[DeliveryDocument]) -> tuple[str, ...]:
    """Return the outermost kustomizations that build Kustomizations of Flux, and that none of these builds: something else does, such as an
    instance of Flux Operator that a chart makes, and what they change counts."""
    documents, paths = {document.path for document in kustomizations}, {_read_path(document) for document in kustomizations}
    outermost = sorted(files.kustomizations.keys() - files.included)
    return tuple(
        directory
        for directory in outermost
        if not any(path == "." or f"{directory}/".startswith(f"{path}/") for path in paths)
        and not documents.isdisjoint(files.list_reached(directory)[1])
    )


def _find_bundle(path: str, entries: Mapping[str, str], named: Collection[str]) -> str:
    """Return what a directory is a variant of: in the directory of a cluster, the same path without the name of the cluster. `named` are
    the directories of which the user says the cluster."""
    name = split_path(path, entries.values())
    entry = next((entry for entry in entries if path.startswith(f"{entry}/")), "")
    if not entry or name.cluster == entries[entry] or (posixpath.basename(entry) != entries[entry] and entry not in named):
        return name.bundle
    return normalize_path(posixpath.join(posixpath.dirname(entry), path[len(entry) + 1 :]))


def _find_root(document: DeliveryDocument, files: RepositoryFiles) -> DeliveryDocument:
    """Return a Kustomization with its path from the root of the repository. An artifact may have one directory of the repository: the only
    one above the document that has the path in it."""
    path = _read_path(document)
    spec = as_object(document.body.get("spec"))
    if path in files.directories or as_object(spec.get("sourceRef")).get("kind") not in _DIRECTORY_SOURCES:
        return document
    parents = [document.path[:index] for index, character in enumerate(document.path) if character == "/"]
    found = [place for parent in parents if (place := normalize_path(posixpath.join(parent, path))) in files.directories]
    return document._replace(body={**document.body, "spec": {**spec, "path": found[0]}}) if len(found) == 1 else document


def _read_path(document: DeliveryDocument) -> str:
    path = get_field(document.body, "spec", "path")
    return normalize_path(path) if isinstance(path, str) else ""


def _find_named_clusters(kustomizations: list[DeliveryDocument], files: RepositoryFiles) -> dict[str, str]:
    """Return the directories with Kustomizations of which the user says the cluster."""
    found = {files.find_cluster(document.path)[0] for document in kustomizations} - {""}
    return {directory: files.clusters[directory] for directory in sorted(found)}


def _add_clusters(named: dict[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """Return the directories of clusters that the user names, and those that were found, but for the ones above or below them."""
    others = {
        path: name
        for path, name in found.items()
        if not any(path == "." or f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/") for other in named)
    }
    return {**others, **named}


def _find_clusters(kustomizations: list[DeliveryDocument], files: RepositoryFiles) -> dict[str, str]:
    """Return the directories that Flux starts from, with the names of their clusters.

    These are the paths of the Kustomizations that `flux bootstrap` writes below them, unless that of a directory above has these, and the
    directories in a directory `clusters` if it has such a path or there is none; else the whole repository is one cluster.
    """
    own = _find_own_paths(kustomizations, files)
    parts = [document.path.split("/") for document in kustomizations]
    listed = {
        "/".join(path[: path.index("clusters") + 2])
        for path in parts
        if "clusters" in path[:-1] and path.index("clusters") + 2 < len(path)
    }
    beside = {posixpath.dirname(path) for path in own}
    own |= {path for path in listed if not own or posixpath.dirname(path) in beside}
    if not own:
        return {".": ONLY_CLUSTER}
    names = {path: _name_cluster(path) for path in sorted(own) if path != "."} or {".": ONLY_CLUSTER}
    if len(set(names.values())) < len(names):
        names = {path: path.replace("/", "-") for path in names}
    return names


def _find_own_paths(kustomizations: list[DeliveryDocument], files: RepositoryFiles) -> set[str]:
    """Return the paths of Kustomizations below them, unless that of a directory above applies these."""
    found = [(document.path, _read_path(document)) for document in kustomizations]
    beneath = [(file, path) for file, path in found if f"{file}/".startswith(f"{path}/") and not is_base(path)]
    named = {path for _, path in found}
    above = {path: [parent for parent in (".", *list_parents(path)) if parent in named and parent != path] for _, path in beneath}
    return {path for file, path in beneath if not any(file in files.list_reached(parent)[1] for parent in above[path])}


def _name_cluster(path: str) -> str:
    """Return the name of a cluster: that of its directory, or in a directory such as main/flux, of the one above it."""
    parts = path.split("/")
    return next((part for part in reversed(parts) if names_cluster(part)), parts[-1])


def _list_own_sources(files: RepositoryFiles, kustomizations: Collection[DeliveryDocument]) -> frozenset[tuple[str, str]]:
    """Return the kind and name of the sources of this repository: those of the Kustomizations that name the directory that they are in,
    and those that no document describes."""
    described = {(document.kind, document.name) for document in files.documents if document.group == _SOURCE_GROUP}
    own = {_read_source(document) for document in kustomizations if f"{document.path}/".startswith(f"{_read_path(document)}/")}
    return frozenset(own | ({_read_source(document) for document in kustomizations} - described))


def _is_foreign(document: DeliveryDocument, own: Collection[tuple[str, str]]) -> bool:
    """Return whether a Kustomization applies what another repository has."""
    source = _read_source(document)
    return bool(own) and source not in own and source[0] != _ARTIFACT


def _read_source(document: DeliveryDocument) -> tuple[str, str]:
    reference = as_object(get_field(document.body, "spec", "sourceRef"))
    return str(reference.get("kind") or "GitRepository"), str(reference.get("name"))


def _list_reached_documents(
    files: RepositoryFiles, entry: str, by_file: dict[str, list[DeliveryDocument]]
) -> Iterator[DeliveryDocument]:
    """Yield the Flux Kustomizations that a cluster gets: in its directory, and in those that they apply."""
    if entry == ".":
        yield from (document for documents in by_file.values() for document in documents)
        return
    seen, rest = {entry}, [entry]
    for directory in rest:
        _, reached = files.list_reached(directory)
        below = {path for path in by_file if directory == entry and path.startswith(f"{entry}/")}
        for document in (document for path in sorted(reached | below) for document in by_file.get(path, ())):
            yield document
            path = _resolve_artifact(files, document)
            if path not in seen:
                seen.add(path)
                rest.append(path)


def _resolve_artifact(files: RepositoryFiles, document: DeliveryDocument) -> str:
    """Return the directory of the repository that a Kustomization names; in an artifact that an ArtifactGenerator copies, its origin."""
    path = _read_path(document)
    if get_field(document.body, "spec", "sourceRef", "kind") != _ARTIFACT:
        return path
    wanted = get_field(document.body, "spec", "sourceRef", "name")
    for generator in files.list_documents("source.extensions.fluxcd.io", "ArtifactGenerator"):
        for artifact in list_objects(get_field(generator.body, "spec", "artifacts")):
            if artifact.get("name") != wanted:
                continue
            for copy in list_objects(artifact.get("copy")):
                origin = _map_copied_path(path, str(copy.get("from")), str(copy.get("to")))
                if origin in files.directories:
                    return origin
    return path


def _map_copied_path(path: str, origin: str, target: str) -> str:
    """Return where a directory of an artifact comes from, given one of its copies, such as @repository/apps/** to @artifact/."""
    directory = normalize_path(target.partition("/")[2] or ".")
    source = normalize_path(origin.partition("/")[2].removesuffix("**").rstrip("/") or ".")
    if not origin.endswith("/**") or not (directory == "." or f"{path}/".startswith(f"{directory}/")):
        return ""
    return normalize_path(posixpath.join(source, posixpath.relpath(path, directory)))


def _find_exclusion(
    files: RepositoryFiles, path: str, by_file: dict[str, list[DeliveryDocument]], *, is_copied: bool = False
) -> str:
    """Return why the directory of a Kustomization is not proposed; "" if it is. `is_copied`: an ArtifactGenerator copies it."""
    if path not in files.directories or not files.find_kind(path):
        return _COPIED if is_copied else "the directory of the Kustomization is not in this repository"
    _, reached = files.list_reached(path)
    return (
        "the directory has further Kustomizations, whose directories are proposed"
        if any(file in by_file for file in reached)
        else ""
    )


_CHANGES = (
    *("targetNamespace", "namePrefix", "nameSuffix", "commonMetadata", "components", "images"),
    *("patches", "patchesStrategicMerge", "patchesJson6902"),
)
"""Fields with which a Kustomization changes what its directory builds, and for which a Bundle has no equivalent."""
_SUBSTITUTE, _SUBSTITUTE_FROM = "postBuild.substitute", "postBuild.substituteFrom"
_DIFFERENT = (
    "Kustomizations set {} differently: map their directories to clusters in source.variants and add a Bundle, or have policies select "
    "its objects; gitsched builds both as Flux does"
)


def _list_changes(document: DeliveryDocument) -> list[str]:
    """Return the fields with which a Kustomization changes what its directory builds."""
    spec = as_object(document.body.get("spec"))
    return [field for field in (*_CHANGES, _SUBSTITUTE, _SUBSTITUTE_FROM) if get_field(spec, *field.split("."))]


def _write_options(document: DeliveryDocument, values: Collection[str]) -> str:
    """Return a text that is equal for Kustomizations that change a directory equally, besides variables that are values of the Bundle.
    Values of variables that a ConfigMap has may depend on the file that names it."""
    options = {field: get_field(document.body, "spec", *field.split(".")) for field in _list_changes(document)}
    own = {name: value for name, value in _read_variables(document).items() if name not in values}
    options = {**options, _SUBSTITUTE: own}
    return json.dumps([options, document.place if _SUBSTITUTE_FROM in options else ""], sort_keys=True, default=str)


def _list_options(clusters: _Documents, values: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the files of the Kustomizations of each cluster with their options; "" for a file with several that differ."""
    found: dict[str, dict[str, str]] = {}
    for cluster, documents in clusters.items():
        texts = found.setdefault(cluster, {})
        for document in documents:
            text = _write_options(document, values)
            texts[document.path] = text if texts.get(document.path, text) == text else ""
    return found


def _list_bundle_values(documents: Sequence[tuple[str, Sequence[DeliveryDocument]]], known: Collection[str]) -> frozenset[str]:
    """Return the variables of a Bundle that can be its values: those with one value for each cluster, which is not the name of a field of
    clusters. Where clusters differ, annotations have the values, which a `known` cluster may lack."""
    variables = [(cluster, [_read_variables(document) for document in listed]) for cluster, listed in documents]
    names = frozenset.intersection(*(frozenset(own) for _, listed in variables for own in listed))

    def is_value(name: str) -> bool:
        texts = [{own[name] for own in listed} for _, listed in variables]
        if any(len(of_cluster) > 1 for of_cluster in texts):
            return False
        first, *others = {text for of_cluster in texts for text in of_cluster}
        return all(cluster not in known for cluster, _ in variables) if others else not first.startswith(_CLUSTER_FIELDS)

    return frozenset(filter(is_value, names))


def _read_variables(document: DeliveryDocument) -> dict[str, str]:
    values = as_object(get_field(document.body, "spec", "postBuild", "substitute"))
    return {str(name): str(value) for name, value in sorted(values.items())}
