"""The kustomization with which Argo CD builds a directory: it edits that of the repository with `kustomize edit`.

Source: argoproj/argo-cd/util/kustomize, and kustomize/commands/edit of kubernetes-sigs/kustomize.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.build.argo_environment import expand_variables
from gitsched.build.commit_files import CommitFiles
from gitsched.build.path_recipe import append_entries
from gitsched.manifests.glob import matches_glob, parse_glob
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.document import Body, as_object, list_objects, list_texts

KEEP = "*"
"""In place of a name, a tag or a digest of an image: that of the kustomization."""
_PARTS = ("newName", "newTag", "digest")


class EditError(Exception):
    """`kustomize edit` fails, so that Argo CD applies nothing."""


def edit_kustomization(
    options: Body, body: dict[str, Any], directory: str, commit: CommitFiles, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Change the content of a kustomization as the options of a source say; return what they change. Raises EditError."""
    return tuple(_edit(options, body, directory, commit, environment))


def list_substituted(options: Body) -> list[Any]:
    """Return the options of a source in which Argo CD replaces variables; it leaves those in others as they are."""
    annotations = options.get("commonAnnotations") if options.get("commonAnnotationsEnvsubst") is True else None
    return [options.get("images"), options.get("commonLabels"), annotations]


def _edit(
    options: Body, body: dict[str, Any], directory: str, commit: CommitFiles, environment: Mapping[str, str]
) -> Iterator[str]:
    for field in ("namePrefix", "nameSuffix", "namespace"):
        value = options.get(field)
        if isinstance(value, str) and value:
            body[field] = value
            yield f"{'targetNamespace' if field == 'namespace' else field} {value}"
    images = [expand_variables(text, environment) for text in list_texts(options.get("images"))]
    if images:
        body["images"] = set_images(body.get("images"), images)
        yield "images"
    replicas = {str(entry.get("name")): _read_count(entry) for entry in list_objects(options.get("replicas"))}
    if replicas:
        before = [entry for entry in list_objects(body.get("replicas")) if entry.get("name") not in replicas]
        added = [{"name": name, "count": count} for name, count in replicas.items()]
        body["replicas"] = sorted([*before, *added], key=lambda entry: str(entry.get("name")))
        yield "replicas"
    yield from _edit_metadata(options, body, environment)
    patches = list_objects(options.get("patches"))
    if patches:
        if not isinstance(body.get("patches", []), list):
            raise EditError("patches of its kustomization is not a list")
        append_entries(body, "patches", patches)
        yield "patches"
    components = list(_list_components(options, directory, commit))
    known = list_texts(body.get("components"))
    append_entries(body, "components", (name for name in dict.fromkeys(components) if name not in known))
    if components:
        yield "components"


def set_images(images: Any, arguments: list[str]) -> list[dict[str, Any]]:
    """Return the images of a kustomization after `kustomize edit set image`: an argument replaces the entry of that name as a whole."""
    overrides = {str(image["name"]): image for image in map(parse_image, arguments)}
    found: dict[str, dict[str, Any]] = {}
    for entry in list_objects(images):
        override = overrides.get(str(entry.get("name")))
        if override is None:
            found[str(entry.get("name"))] = dict(entry)
            continue
        for part in _PARTS:
            if override.get(part) == KEEP:
                override[part] = entry.get(part) or ""
    for name, override in overrides.items():
        found[name] = {part: value for part, value in override.items() if value and (value != KEEP or part == "name")}
    return [found[name] for name in sorted(found)]


def parse_image(argument: str) -> dict[str, Any]:
    """Return an image of a kustomization for `name=new:tag@digest`, or without the name. Raises EditError."""
    name, equals, value = argument.partition("=")
    value = value if equals else argument
    new, tag, digest = split_image(value)
    if new == argument:
        raise EditError(f"the image {argument!r} has neither a tag, nor a digest, nor another name")
    return {"name": name if equals else new, "newName": new if equals else "", "newTag": tag, "digest": digest}


def split_image(image: str) -> tuple[str, str, str]:
    """Return the name, the tag and the digest of an image. Source: kustomize/api/internal/image."""
    slash = max(image.find("/"), 0)
    at, colon = image.find("@", slash), image.find(":", slash)
    if at >= 0 and (colon < 0 or at < colon):
        return image[:at], "", image[at + 1 :]
    if colon < 0:
        return image, "", ""
    return (image[:colon], image[colon + 1 : at], image[at + 1 :]) if at >= 0 else (image[:colon], image[colon + 1 :], "")


def _read_count(entry: Body) -> int:
    text = str(entry.get("count"))
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise EditError(f"the count {text!r} of the replicas of {entry.get('name')} is not a number")
    return int(text)


def _edit_metadata(options: Body, body: dict[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    for field, force in (("commonLabels", "forceCommonLabels"), ("commonAnnotations", "forceCommonAnnotations")):
        values = {name: str(value) for name, value in as_object(options.get(field)).items()}
        if not values:
            continue
        if field == "commonLabels" or options.get("commonAnnotationsEnvsubst") is True:
            values = {name: expand_variables(value, environment) for name, value in values.items()}
        without_selector = field == "commonLabels" and options.get("labelWithoutSelector") is True
        templates = options.get("labelIncludeTemplates") is True
        if field == "commonLabels" and templates and not without_selector:
            raise EditError("labelIncludeTemplates needs labelWithoutSelector")
        if without_selector:
            _add_labels(body, values, templates, options.get(force) is True)
        else:
            body[field] = _add_values(as_object(body.get(field)), values, field, force, options.get(force) is True)
        yield field


def _add_labels(body: dict[str, Any], values: Mapping[str, str], templates: bool, is_forced: bool) -> None:
    """Add labels that no selector gets to the entry of `labels` with these settings, or to a new one."""
    entries = [dict(entry) for entry in list_objects(body.get("labels"))]
    settings = (False, templates)
    found = next((entry for entry in entries if _read_settings(entry) == settings), None)
    if found is None:
        found = {"pairs": {}, **({"includeTemplates": True} if templates else {})}
        entries.append(found)
    found["pairs"] = _add_values(as_object(found.get("pairs")), values, "labels", "forceCommonLabels", is_forced)
    body["labels"] = entries


def _read_settings(entry: Body) -> tuple[bool, bool]:
    return entry.get("includeSelectors") is True, entry.get("includeTemplates") is True


def _add_values(before: Body, values: Mapping[str, str], field: str, force: str, is_forced: bool) -> Body:
    twice = next((name for name in values if name in before), None)
    if twice is not None and not is_forced:
        raise EditError(f"{twice} is in {field} of its kustomization, and Argo CD overrules that only with {force}: true")
    return {**before, **values}


def _list_components(options: Body, directory: str, commit: CommitFiles) -> Iterator[str]:
    for name in list_texts(options.get("components")):
        if options.get("ignoreMissingComponents") is True and resolve_path(directory, name) not in commit.directories:
            continue
        path = resolve_path(directory, name)
        if path is None or path in commit.directories or not re.search(r"[*?\[]", path):
            yield name
            continue
        patterns = [parse_glob(part) for part in path.split("/")]
        matching = [other for other in _list_directories(commit) if _matches_parts(patterns, other)]
        prefix = "../" * (0 if directory == "." else directory.count("/") + 1)
        yield from (f"{prefix}{other}" for other in matching) if matching else (name,)


def _list_directories(commit: CommitFiles) -> list[str]:
    found = {path[:index] for path in commit.entries for index, character in enumerate(path) if character == "/"}
    return sorted(found)


def _matches_parts(patterns: list[Any], path: str) -> bool:
    parts = path.split("/")
    return len(parts) == len(patterns) and all(matches_glob(tokens, part) for tokens, part in zip(patterns, parts, strict=True))
