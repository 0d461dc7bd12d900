"""Apply the overriders of a rule in Karmada's order: image, command, args, labels, annotations, fields, plaintext."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject, parse_pointer
from gitsched.model.document import Body

_MAX_ARGUMENTS = 10_000
"""Words of a container's command, or of its args: no process could be started with more, and each overrider copies them."""
_POD_TEMPLATE_SPEC = ("spec", "template", "spec")
_POD_SPEC_PATHS: Mapping[str, tuple[str, ...]] = {
    "Pod": ("spec",),
    **dict.fromkeys(("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"), _POD_TEMPLATE_SPEC),
}
"""The kinds whose containers upstream finds by itself, whatever their API group, and where the pod is."""


def apply_overriders(draft: PatchedObject, overriders: Body) -> None:
    """Change the object. Raises Inapplicable, with the place of the overrider, for one that does not fit it."""
    before = _read_identity(draft.root)
    for name, change in _OVERRIDERS.items():
        for index, entry in enumerate(overriders.get(name) or ()):
            try:
                change(draft, entry)
            except InapplicablePatch as error:
                raise InapplicablePatch(f"{name}[{index}]: {error}", (name, index)) from error
    if _read_identity(draft.root) != before:
        raise InapplicablePatch("they change what identifies the object: kind, name and namespace must stay")


def list_overriders(overriders: Body) -> tuple[str, ...]:
    """The names of the overriders that a rule uses, in the order in which they are applied."""
    return tuple(name for name in _OVERRIDERS if overriders.get(name))


def _override_images(draft: PatchedObject, entry: Body) -> None:
    """Every container's image, or the one that the predicate points at; init containers are left alone."""
    predicate = entry.get("predicate")
    if predicate is not None:
        places = [parse_pointer(predicate["path"])]
    else:
        path, containers = _find_containers(draft)
        places = [(*path, str(index), "image") for index in range(len(containers))]
    for place in places:
        image = draft.find_value(place)
        if not isinstance(image, str):
            raise InapplicablePatch("the image is no text")
        draft.apply("replace", place, override_image(image, entry["component"], entry["operator"], entry.get("value") or ""))


def _override_arguments(draft: PatchedObject, entry: Body, target: str) -> None:
    path, containers = _find_containers(draft)
    given = entry.get("value") or []
    gone = set(given)
    for index, container in enumerate(containers):
        if not isinstance(container, dict) or container.get("name") != entry["containerName"]:
            continue
        words = container.get(target)
        if words is not None and not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
            raise InapplicablePatch(f"the {target} of container {index} is no list of texts")
        before = words or []
        after = [*before, *given] if entry["operator"] == "add" else [word for word in before if word not in gone]
        if len(after) > _MAX_ARGUMENTS:
            raise InapplicablePatch(f"the {target} of container {index} would be more than {_MAX_ARGUMENTS}")
        if after != before:
            draft.apply("add", (*path, str(index), target), after)


def _override_metadata(draft: PatchedObject, entry: Body, target: str) -> None:
    """`add` sets what is there, too; `replace` and `remove` pass over what is not."""
    metadata = draft.find_value(("metadata",))
    present = metadata.get(target) if isinstance(metadata, dict) else {}
    if not isinstance(present, dict | None):
        raise InapplicablePatch(f"the object's {target} are no mapping")
    operator = entry["operator"]
    if operator == "add" and present is None and entry["value"]:
        draft.apply("add", ("metadata", target), {})
    for key, text in entry["value"].items():
        if operator == "add" or key in (present or {}):
            draft.apply(operator, ("metadata", target, key), text)


def _override_field(draft: PatchedObject, entry: Body) -> None:
    place = parse_pointer(entry["fieldPath"])
    text = draft.find_value(place)
    if not isinstance(text, str):
        raise InapplicablePatch("the field is no text")
    from gitsched.apis.karmada.overrides.field_overrider import (  # loads PyYAML, and few overrides look into a text
        edit_json,
        edit_yaml,
    )

    if entry.get("yaml"):
        draft.apply("replace", place, edit_yaml(text, entry["yaml"]))
    elif entry.get("json"):
        draft.apply("replace", place, edit_json(text, entry["json"]))


def _apply_plaintext(draft: PatchedObject, entry: Body) -> None:
    draft.apply(entry["operator"], parse_pointer(entry["path"]), entry.get("value"))


def _read_identity(root: Any) -> tuple[Any, ...]:
    """What must be the same after a rule; the version of the API may be another one."""
    if not isinstance(root, dict):
        return ()
    metadata = root.get("metadata")
    names = (metadata.get("name"), metadata.get("namespace")) if isinstance(metadata, dict) else ()
    return (isinstance(root.get("apiVersion"), str), root.get("kind"), *names)


def _find_containers(draft: PatchedObject) -> tuple[tuple[str, ...], list[Any]]:
    """Where the containers are, and what they are; none for a kind that has none, or for a pod that lists none."""
    path = _POD_SPEC_PATHS.get(str(draft.root.get("kind")))
    if path is None:
        return (), []
    value: Any = draft.root
    for step in (*path, "containers"):
        if value is not None and not isinstance(value, dict):
            raise InapplicablePatch(f"what holds {step} is no object")
        value = (value or {}).get(step)
    if not isinstance(value, list | None):
        raise InapplicablePatch("the containers are no list")
    return (*path, "containers"), value or []


_OVERRIDERS: Mapping[str, Callable[[PatchedObject, Body], None]] = {
    "imageOverrider": _override_images,
    "commandOverrider": lambda draft, entry: _override_arguments(draft, entry, "command"),
    "argsOverrider": lambda draft, entry: _override_arguments(draft, entry, "args"),
    "labelsOverrider": lambda draft, entry: _override_metadata(draft, entry, "labels"),
    "annotationsOverrider": lambda draft, entry: _override_metadata(draft, entry, "annotations"),
    "fieldOverrider": _override_field,
    "plaintext": _apply_plaintext,
}


_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = r"\w[\w.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"((?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::({_TAG}))?(?:@({_DIGEST}))?", re.ASCII)
_ONLY_TAG, _ONLY_DIGEST = re.compile(_TAG, re.ASCII), re.compile(_DIGEST, re.ASCII)
_USABLE_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}", re.ASCII)
_MAX_LENGTH, _MAX_REPOSITORY_LENGTH = 4096, 255


class Image(NamedTuple):
    """[registry/]repository[:tag], or with @digest in place of the tag; "" for what is not there."""

    registry: str
    repository: str
    tag: str
    digest: str

    def __str__(self) -> str:
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        return f"{name}:{self.tag}" if self.tag else f"{name}@{self.digest}" if self.digest else name


def parse_image(text: str) -> Image:
    """Read the name of an image. The first part is a registry if it has a dot or a port, or is localhost.

    A digest beside a tag is dropped, as upstream drops it. Raises Inapplicable for what is no image name.
    """
    match = _IMAGE.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None or (match[3] and not _USABLE_DIGEST.fullmatch(match[3])):
        raise InapplicablePatch("the image has no valid name")
    first, slash, rest = match[1].partition("/")
    known = slash and ("." in first or ":" in first or first == "localhost")
    registry, repository = (first, rest) if known else ("", match[1])
    if len(repository) > _MAX_REPOSITORY_LENGTH:
        raise InapplicablePatch(f"the image's repository is longer than {_MAX_REPOSITORY_LENGTH} characters")
    return Image(registry, repository, match[2] or "", "" if match[2] else match[3] or "")


def is_tag_or_digest(text: str) -> bool:
    """Whether a text can be set as the tag of an image, or as its digest in place of a tag."""
    return bool(_ONLY_TAG.fullmatch(text) or _ONLY_DIGEST.fullmatch(text))


def override_image(text: str, component: str, operator: str, value: str) -> str:
    """The image name with its Registry, Repository or Tag changed. `add` appends; a value that could be neither tag nor digest
    leaves the tag as it is."""
    image = parse_image(text)
    if component == "Registry":
        return str(image._replace(registry=_override_component(image.registry, operator, value)))
    if component == "Repository":
        return str(image._replace(repository=_override_component(image.repository, operator, value)))
    changed = _override_component(image.tag or image.digest, operator, value)
    if operator == "remove" or _ONLY_TAG.fullmatch(changed):
        return str(image._replace(tag=changed, digest=""))
    return str(image._replace(tag="", digest=changed)) if _ONLY_DIGEST.fullmatch(changed) else str(image)


def _override_component(old: str, operator: str, value: str) -> str:
    return old + value if operator == "add" else value if operator == "replace" else ""
