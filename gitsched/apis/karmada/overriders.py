"""What the overriders of one rule make of an object, in upstream's order: image, command, args, labels, annotations, fields, plaintext.

Each overrider sees what the ones before it made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gitsched.apis.karmada.images import change_image
from gitsched.apis.karmada.patching import Draft, Inapplicable, parse_pointer
from gitsched.model.document import Body

_MOST_WORDS = 10_000
"""Words of a container's command, or of its args: no process could be started with more, and each overrider copies them."""
_POD_TEMPLATE = ("spec", "template", "spec")
_PODS: Mapping[str, tuple[str, ...]] = {
    "Pod": ("spec",),
    **dict.fromkeys(("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"), _POD_TEMPLATE),
}
"""The kinds whose containers upstream finds by itself, whatever their API group, and where the pod is."""


def apply_overriders(draft: Draft, overriders: Body) -> None:
    """Change the object. Raises Inapplicable, with the place of the overrider, for one that does not fit it."""
    before = _identify(draft.root)
    for name, change in _CHANGES.items():
        for index, entry in enumerate(overriders.get(name) or ()):
            try:
                change(draft, entry)
            except Inapplicable as error:
                raise Inapplicable(f"{name}[{index}]: {error}", (name, index)) from error
    if _identify(draft.root) != before:
        raise Inapplicable("they change what identifies the object: kind, name and namespace must stay")


def list_overriders(overriders: Body) -> tuple[str, ...]:
    """The names of the overriders that a rule uses, in the order in which they are applied."""
    return tuple(name for name in _CHANGES if overriders.get(name))


def _change_images(draft: Draft, entry: Body) -> None:
    """Every container's image, or the one that the predicate points at; init containers are left alone."""
    predicate = entry.get("predicate")
    if predicate is not None:
        places = [parse_pointer(predicate["path"])]
    else:
        path, containers = _containers(draft)
        places = [(*path, str(index), "image") for index in range(len(containers))]
    for place in places:
        image = draft.find(place)
        if not isinstance(image, str):
            raise Inapplicable("the image is no text")
        draft.apply("replace", place, change_image(image, entry["component"], entry["operator"], entry.get("value") or ""))


def _change_words(draft: Draft, entry: Body, target: str) -> None:
    path, containers = _containers(draft)
    given = entry.get("value") or []
    gone = set(given)
    for index, container in enumerate(containers):
        if not isinstance(container, dict) or container.get("name") != entry["containerName"]:
            continue
        words = container.get(target)
        if words is not None and not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
            raise Inapplicable(f"the {target} of container {index} is no list of texts")
        before = words or []
        after = [*before, *given] if entry["operator"] == "add" else [word for word in before if word not in gone]
        if len(after) > _MOST_WORDS:
            raise Inapplicable(f"the {target} of container {index} would be more than {_MOST_WORDS}")
        if after != before:
            draft.apply("add", (*path, str(index), target), after)


def _change_map(draft: Draft, entry: Body, target: str) -> None:
    """`add` sets what is there, too; `replace` and `remove` pass over what is not."""
    metadata = draft.find(("metadata",))
    present = metadata.get(target) if isinstance(metadata, dict) else {}
    if not isinstance(present, dict | None):
        raise Inapplicable(f"the object's {target} are no mapping")
    operator = entry["operator"]
    if operator == "add" and present is None and entry["value"]:
        draft.apply("add", ("metadata", target), {})
    for key, text in entry["value"].items():
        if operator == "add" or key in (present or {}):
            draft.apply(operator, ("metadata", target, key), text)


def _change_field(draft: Draft, entry: Body) -> None:
    place = parse_pointer(entry["fieldPath"])
    text = draft.find(place)
    if not isinstance(text, str):
        raise Inapplicable("the field is no text")
    from gitsched.apis.karmada.fields import edit_json, edit_yaml  # loads PyYAML, and few overrides look into a text

    if entry.get("yaml"):
        draft.apply("replace", place, edit_yaml(text, entry["yaml"]))
    elif entry.get("json"):
        draft.apply("replace", place, edit_json(text, entry["json"]))


def _patch(draft: Draft, entry: Body) -> None:
    draft.apply(entry["operator"], parse_pointer(entry["path"]), entry.get("value"))


def _identify(root: Any) -> tuple[Any, ...]:
    """What must be the same after a rule; the version of the API may be another one."""
    if not isinstance(root, dict):
        return ()
    metadata = root.get("metadata")
    names = (metadata.get("name"), metadata.get("namespace")) if isinstance(metadata, dict) else ()
    return (isinstance(root.get("apiVersion"), str), root.get("kind"), *names)


def _containers(draft: Draft) -> tuple[tuple[str, ...], list[Any]]:
    """Where the containers are, and what they are; none for a kind that has none, or for a pod that lists none."""
    path = _PODS.get(str(draft.root.get("kind")))
    if path is None:
        return (), []
    value: Any = draft.root
    for step in (*path, "containers"):
        if value is not None and not isinstance(value, dict):
            raise Inapplicable(f"what holds {step} is no object")
        value = (value or {}).get(step)
    if not isinstance(value, list | None):
        raise Inapplicable("the containers are no list")
    return (*path, "containers"), value or []


_CHANGES: Mapping[str, Callable[[Draft, Body], None]] = {
    "imageOverrider": _change_images,
    "commandOverrider": lambda draft, entry: _change_words(draft, entry, "command"),
    "argsOverrider": lambda draft, entry: _change_words(draft, entry, "args"),
    "labelsOverrider": lambda draft, entry: _change_map(draft, entry, "labels"),
    "annotationsOverrider": lambda draft, entry: _change_map(draft, entry, "annotations"),
    "fieldOverrider": _change_field,
    "plaintext": _patch,
}
