"""How Flux builds the path of a Kustomization. Source: fluxcd/pkg/kustomize and fluxcd/kustomize-controller."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Any

from gitsched.build.commit_files import CommitFiles, join_path
from gitsched.build.path_recipe import (
    PathRecipe,
    Substitution,
    ValueSource,
    append_entries,
    describe_unreadable,
    find_kustomization,
    list_manifests,
    merge_images,
    read_kustomization_body,
    write_kustomization,
)
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.document import (
    Body,
    as_object,
    as_string_map,
    get_text,
    list_objects,
    list_texts,
    read_annotations,
    read_labels,
)
from gitsched.model.tool_groups import KUSTOMIZE_GROUP

KIND = "Kustomization"
BOOTSTRAP_SOURCE = "flux-system"
"""The name that `flux bootstrap` and Flux Operator give to the source of the repository itself."""
SUBSTITUTE_KEY = f"{KUSTOMIZE_GROUP}/substitute"
"""With the value `disabled`, as a label or an annotation, variables of an object are not substituted."""
_REMOTE = re.compile(r"git::|gh:|ssh://|https?://|git@|github\.com[:/]|/|file:///", re.IGNORECASE)
_VARIABLE = re.compile(r"[_A-Za-z][_A-Za-z0-9]*")
_TEXTS = {"targetNamespace": "namespace", "namePrefix": "namePrefix", "nameSuffix": "nameSuffix"}
"""Fields of a Flux Kustomization with the fields of a kustomization that they replace."""


def read_path(body: Body) -> str:
    """Return the directory that a Flux Kustomization builds, relative to the root of its source."""
    path = as_object(body.get("spec")).get("path")
    return posixpath.normpath((path if isinstance(path, str) else "").lstrip("/") or ".")


def read_source(body: Body) -> tuple[str, str, str]:
    """Return kind, namespace and name of the source that a Flux Kustomization reads."""
    reference = as_object(as_object(body.get("spec")).get("sourceRef"))
    namespace = str(reference.get("namespace") or get_text(body, "metadata", "namespace") or "default")
    return str(reference.get("kind") or "GitRepository"), namespace, str(reference.get("name") or "")


def list_directories(body: Body, source: tuple[str, str, str]) -> list[str]:
    """Return the directory that a Flux Kustomization builds of a source, if it reads this one."""
    return [read_path(body)] if read_source(body) == source else []


def make_flux_recipe(body: Body, commit: CommitFiles, is_excluded: Callable[[str], bool]) -> PathRecipe:
    """Return how Flux builds the path of a Kustomization. `is_excluded` says which files are not in the source that Flux reads."""
    spec, directory = as_object(body.get("spec")), read_path(body)
    path = find_kustomization(directory, commit)
    content = read_kustomization_body(path, commit)
    merged: dict[str, Any] = content or {}
    if not path:
        merged = {"resources": [f"./{name}" for name in list_manifests(directory, commit, is_excluded)]}
    changes = [
        *_add_build_metadata(path, merged),
        *_set_texts(spec, merged),
        *_add_lists(spec, merged, directory, commit),
        *_add_common_metadata(spec, merged),
    ]
    remote = [name for name in list_texts(spec.get("components")) if _REMOTE.match(name)]
    substitution = _read_substitution(spec)
    problem = describe_unreadable(path) if content is None else ""
    if remote:
        problem = f"the component {remote[0]} is not in this repository: Flux does not build that either"
    wrong = next((name for name in substitution.values if not _VARIABLE.fullmatch(name)), None) if substitution else None
    if wrong is not None:
        problem = f"{wrong!r} in spec.postBuild.substitute is not a name of a variable: use letters, digits and _"
    return PathRecipe(
        directory,
        path or join_path(directory, "kustomization.yaml"),
        write_kustomization(merged),
        tuple(dict.fromkeys((*changes, *(("postBuild",) if substitution else ())))),
        substitution,
        problem=problem,
    )


def _add_build_metadata(path: str, merged: dict[str, Any]) -> Iterator[str]:
    """Add the option with which Flux builds a kustomization without resources, which kustomize refuses if there is nothing else in it."""
    if path and not merged.get("resources"):
        merged["buildMetadata"] = ["originAnnotations"]
        yield "buildMetadata"


def _set_texts(spec: Body, merged: dict[str, Any]) -> Iterator[str]:
    for field, target in _TEXTS.items():
        value = spec.get(field)
        if isinstance(value, str) and value:
            merged[target] = value
            yield f"{field} {value}"


def _add_lists(spec: Body, merged: dict[str, Any], directory: str, commit: CommitFiles) -> Iterator[str]:
    for field in ("patches", "patchesStrategicMerge", "patchesJson6902"):
        entries = list_objects(spec.get(field))
        if entries:
            yield field
        if field == "patches":
            append_entries(
                merged, field, ({name: entry[name] for name in ("patch", "target") if name in entry} for entry in entries)
            )
        elif field == "patchesStrategicMerge":
            append_entries(merged, field, map(json.dumps, entries))
        else:
            append_entries(merged, field, ({**entry, "patch": json.dumps(entry.get("patch"))} for entry in entries))
    components = list_texts(spec.get("components"))
    if spec.get("ignoreMissingComponents") is True:
        components = [name for name in components if resolve_path(directory, name) in commit.directories]
    append_entries(merged, "components", components)
    if components:
        yield "components"
    images = list_objects(spec.get("images"))
    if images:
        merged["images"] = merge_images(merged.get("images"), images)
        yield "images"
    metadata = list_texts(spec.get("buildMetadata"))
    if metadata:
        merged["buildMetadata"] = metadata
        yield "buildMetadata"


def _add_common_metadata(spec: Body, merged: dict[str, Any]) -> Iterator[str]:
    """Add the labels and annotations that Flux sets on objects, but not on the pod templates in them."""
    common = as_object(spec.get("commonMetadata"))
    for field, kind in (("labels", "LabelTransformer"), ("annotations", "AnnotationsTransformer")):
        values = as_string_map(common.get(field))
        if values:
            transformer = {
                "apiVersion": "builtin",
                "kind": kind,
                "metadata": {"name": f"common-{field}"},
                field: values,
                "fieldSpecs": [{"path": f"metadata/{field}", "create": True}],
            }
            append_entries(merged, "transformers", [json.dumps(transformer, ensure_ascii=False) + "\n"])
            yield f"commonMetadata.{field}"


def is_substitution_disabled(body: Body) -> bool:
    """Return whether a label or an annotation of an object says that no variables are substituted in it."""
    return "disabled" in (read_labels(body).get(SUBSTITUTE_KEY), read_annotations(body).get(SUBSTITUTE_KEY))


def _read_substitution(spec: Body) -> Substitution | None:
    """Return the variables of spec.postBuild; None if it substitutes nothing."""
    if not isinstance(spec.get("postBuild"), dict):
        return None
    post_build = spec["postBuild"]
    values = {name: value.replace("\n", "") for name, value in as_string_map(post_build.get("substitute")).items()}
    sources = tuple(
        ValueSource(str(entry.get("kind") or ""), str(entry.get("name") or ""))
        for entry in list_objects(post_build.get("substituteFrom"))
    )
    always = post_build.get("substituteStrategy") == "Always"
    return Substitution(values, sources, always) if values or sources or always else None
