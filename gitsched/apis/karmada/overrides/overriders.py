"""Apply the overriders of a rule in Karmada's order: image, command, args, labels, annotations, fields, plaintext."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gitsched.apis.karmada.interpreter import POD_TEMPLATE_SPEC
from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject, parse_pointer
from gitsched.model.document import Body, get_field, list_objects
from gitsched.named_tuples import NamedTuple

_MAX_ARGUMENTS = 10_000
"""Maximum length of a container's command or args: each overrider copies them."""
_MAX_VISITS = 100_000
"""Containers that all overriders of one object look at: each looks at all of them, and at a hundred arguments in the same time."""
_POD_SPEC_PATHS: Mapping[str, tuple[str, ...]] = {
    "Pod": ("spec",),
    **dict.fromkeys(("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"), POD_TEMPLATE_SPEC),
}
"""The path of the pod spec by kind, for the kinds that upstream supports; their API group is not compared."""


def apply_overriders(patched: PatchedObject, overriders: Body) -> None:
    """Apply the overriders of a rule to an object. Raises InapplicablePatch, with the location of the overrider that fails."""
    for name, index, entry in list_entries(overriders):
        try:
            apply_entry(patched, name, entry)
        except InapplicablePatch as error:
            raise InapplicablePatch(f"{name}[{index}]: {error}", (name, index)) from error
    check_identity(patched)


def apply_entry(patched: PatchedObject, name: str, entry: Body) -> None:
    """Apply one entry of the overriders with a name."""
    _OVERRIDERS[name](patched, entry)


def list_entries(overriders: Body) -> list[tuple[str, int, Body]]:
    """Return the entries of the overriders of a rule, each with the name of its list and its index, in the order of their application."""
    return [(name, index, entry) for name in _OVERRIDERS for index, entry in enumerate(overriders.get(name) or ())]


def list_overriders(overriders: Body) -> tuple[str, ...]:
    """Return the names of the overriders that a rule uses, in the order in which they are applied."""
    return tuple(name for name in _OVERRIDERS if overriders.get(name))


def list_containers(body: Body) -> tuple[str, ...]:
    """Return the names of the containers whose command and args overriders can change."""
    path = _POD_SPEC_PATHS.get(str(body.get("kind")))
    return () if path is None else tuple(str(one.get("name")) for one in list_objects(get_field(body, *path, "containers")))


def check_identity(patched: PatchedObject) -> None:
    """Raise InapplicablePatch if the object is another one than before; an overrider may change the version of the API."""
    if _read_identity(patched.root) != _read_identity(patched.original):
        raise InapplicablePatch("kind, name and namespace of the object must not change")


def change_images(patched: PatchedObject, change: Callable[[str], str], number: int = 1) -> None:
    """Change the image of every container, which stands for a `number` of changes; init containers are not changed."""
    path, containers = _find_containers(patched)
    _count_visits(patched, len(containers) * (number - 1))
    for index in range(len(containers)):
        _change_image(patched, (*path, str(index), "image"), change)


def _change_image(patched: PatchedObject, path: tuple[str, ...], change: Callable[[str], str]) -> None:
    image = patched.find_value(path)
    if not isinstance(image, str):
        raise InapplicablePatch("the image is not a string")
    patched.apply("replace", path, change(image))


def _override_images(patched: PatchedObject, entry: Body) -> None:
    """Apply an image overrider to every container, or to the image at the path of the predicate."""

    def change(image: str) -> str:
        return override_image(image, entry["component"], entry["operator"], entry.get("value") or "")

    predicate = entry.get("predicate")
    if predicate is None:
        change_images(patched, change)
    else:
        _change_image(patched, parse_pointer(predicate["path"]), change)


def _override_arguments(patched: PatchedObject, entry: Body, target: str) -> None:
    """Apply a command or args overrider: add or remove entries of a container's `target`."""
    path, containers = _find_containers(patched)
    values = entry.get("value") or []
    removed = set(values)
    for index, container in enumerate(containers):
        if not isinstance(container, dict) or container.get("name") != entry["containerName"]:
            continue
        arguments = container.get(target)
        if arguments is not None and not (isinstance(arguments, list) and all(isinstance(argument, str) for argument in arguments)):
            raise InapplicablePatch(f"the {target} of container {index} is not a list of strings")
        before = arguments or []
        _count_visits(patched, len(before) // 100)
        after = [*before, *values] if entry["operator"] == "add" else [argument for argument in before if argument not in removed]
        if len(after) > _MAX_ARGUMENTS:
            raise InapplicablePatch(f"the {target} of container {index} would have more than {_MAX_ARGUMENTS} entries")
        if after != before:
            patched.apply("add", (*path, str(index), target), after)


def _override_metadata(patched: PatchedObject, entry: Body, target: str) -> None:
    """Apply a labels overrider or an annotations overrider.

    `add` also replaces existing keys; `replace` and `remove` ignore missing ones.
    """
    present = find_labels(patched, target)
    operator = entry["operator"]
    if operator == "add" and present is None and entry["value"]:
        patched.apply("add", ("metadata", target), {})
    for key, text in entry["value"].items():
        if operator == "add" or key in (present or {}):
            patched.apply(operator, ("metadata", target, key), text)


def find_labels(patched: PatchedObject, target: str) -> dict[str, Any] | None:
    """Return the labels or the annotations of an object; None without any."""
    metadata = patched.find_value(("metadata",))
    present = metadata.get(target) if isinstance(metadata, dict) else {}
    if not isinstance(present, dict | None):
        raise InapplicablePatch(f"the {target} of the object are not a mapping")
    return present


def _override_field(patched: PatchedObject, entry: Body) -> None:
    """Apply a field overrider to the JSON or YAML text in a field."""
    field_path = parse_pointer(entry["fieldPath"])
    text = patched.find_value(field_path)
    if not isinstance(text, str):
        raise InapplicablePatch("the field is not a string")
    from gitsched.apis.karmada.overrides.field_overrider import edit_json, edit_yaml

    if entry.get("yaml"):
        patched.apply("replace", field_path, edit_yaml(text, entry["yaml"]))
    elif entry.get("json"):
        patched.apply("replace", field_path, edit_json(text, entry["json"]))


def _apply_plaintext(patched: PatchedObject, entry: Body) -> None:
    """Apply a plaintext overrider, which is one JSON patch operation."""
    patched.apply(entry["operator"], parse_pointer(entry["path"]), entry.get("value"))


def _read_identity(root: Any) -> tuple[Any, ...]:
    """Return what a rule must not change; it may change the version of the API."""
    if not isinstance(root, dict):
        return ()
    metadata = root.get("metadata")
    names = (metadata.get("name"), metadata.get("namespace")) if isinstance(metadata, dict) else ()
    return (isinstance(root.get("apiVersion"), str), root.get("kind"), *names)


def _find_containers(patched: PatchedObject) -> tuple[tuple[str, ...], list[Any]]:
    """Return the path and the list of containers; an empty list for another kind, or a pod without containers."""
    path = _POD_SPEC_PATHS.get(str(patched.root.get("kind")))
    if path is None:
        return (), []
    value: Any = patched.root
    for step in (*path, "containers"):
        if value is not None and not isinstance(value, dict):
            raise InapplicablePatch(f"the parent of {step} is not an object")
        value = (value or {}).get(step)
    if not isinstance(value, list | None):
        raise InapplicablePatch("containers is not a list")
    _count_visits(patched, len(value or ()))
    return (*path, "containers"), value or []


def _count_visits(patched: PatchedObject, number: int) -> None:
    patched.visits += number
    if patched.visits > _MAX_VISITS:
        raise InapplicablePatch(f"the overriders visit more than {_MAX_VISITS} containers")


_OVERRIDERS: Mapping[str, Callable[[PatchedObject, Body], None]] = {
    "imageOverrider": _override_images,
    "commandOverrider": lambda patched, entry: _override_arguments(patched, entry, "command"),
    "argsOverrider": lambda patched, entry: _override_arguments(patched, entry, "args"),
    "labelsOverrider": lambda patched, entry: _override_metadata(patched, entry, "labels"),
    "annotationsOverrider": lambda patched, entry: _override_metadata(patched, entry, "annotations"),
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
_MAX_IMAGE_LENGTH, _MAX_REPOSITORY_LENGTH = 4096, 255


class Image(NamedTuple):
    """The parts of an image name, [registry/]repository[:tag|@digest]; missing parts are ""."""

    registry: str
    repository: str
    tag: str
    digest: str

    def __str__(self) -> str:
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        return f"{name}:{self.tag}" if self.tag else f"{name}@{self.digest}" if self.digest else name


def parse_image(text: str) -> Image:
    """Parse the name of an image. The first part is a registry if it has a dot or a port, or is localhost.

    A digest after a tag is dropped, as upstream does. Raises InapplicablePatch for an invalid name.
    """
    match = _IMAGE.fullmatch(text) if len(text) <= _MAX_IMAGE_LENGTH else None
    if match is None or (match[3] and not _USABLE_DIGEST.fullmatch(match[3])):
        raise InapplicablePatch("the image name is invalid")
    first, slash, rest = match[1].partition("/")
    known = slash and ("." in first or ":" in first or first == "localhost")
    registry, repository = (first, rest) if known else ("", match[1])
    if len(repository) > _MAX_REPOSITORY_LENGTH:
        raise InapplicablePatch(f"the repository of the image has more than {_MAX_REPOSITORY_LENGTH} characters")
    return Image(registry, repository, match[2] or "", "" if match[2] else match[3] or "")


def is_tag_or_digest(text: str) -> bool:
    """Return whether a string is a valid tag or digest of an image."""
    return bool(_ONLY_TAG.fullmatch(text) or _ONLY_DIGEST.fullmatch(text))


def override_image(text: str, component: str, operator: str, value: str) -> str:
    """Change the Registry, Repository or Tag of an image name.

    `add` appends. A value that is neither a tag nor a digest does not change the tag.
    """
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
