"""What Karmada demands of override policies beyond their schema."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.apis.karmada.images import is_tag
from gitsched.apis.karmada.label_rules import Pointer, error, judge_annotations, judge_labels
from gitsched.apis.karmada.placement_rules import judge_affinity
from gitsched.model.document import Body
from gitsched.model.issue import Issue

_OLD_FORM = ("plaintext", "imageOverrider", "commandOverrider", "argsOverrider", "labelsOverrider", "annotationsOverrider")


def judge_overrides(spec: Body) -> Iterator[Issue]:
    if "targetCluster" in spec:
        yield from judge_affinity(spec["targetCluster"], ("spec", "targetCluster"))
    if "overrideRules" in spec:
        if "targetCluster" in spec:
            yield error("karmada-override-conflict", "overrideRules and targetCluster cannot co-exist", "spec", "targetCluster")
        if any(spec.get("overriders", {}).get(name) for name in _OLD_FORM):
            yield error("karmada-override-conflict", "overrideRules and overriders cannot co-exist", "spec", "overriders")
    for index, rule in enumerate(spec.get("overrideRules", [])):
        at = ("spec", "overrideRules", index)
        yield from _judge_overriders(rule["overriders"], (*at, "overriders"))
        if "targetCluster" in rule:
            yield from judge_affinity(rule["targetCluster"], (*at, "targetCluster"))


def _judge_overriders(overriders: Body, at: Pointer) -> Iterator[Issue]:
    for index, entry in enumerate(overriders.get("annotationsOverrider", [])):
        yield from judge_annotations(entry["value"], (*at, "annotationsOverrider", index, "value"), "karmada-override-annotation")
    for index, entry in enumerate(overriders.get("labelsOverrider", [])):
        yield from judge_labels(entry["value"], (*at, "labelsOverrider", index, "value"), "karmada-override-label")
    for index, entry in enumerate(overriders.get("imageOverrider", [])):
        if "predicate" in entry:
            yield from _judge_path(entry["predicate"]["path"], (*at, "imageOverrider", index, "predicate", "path"))
        if (entry["component"], entry["operator"]) == ("Tag", "replace") and not is_tag(entry.get("value", "")):
            message = "value is neither a tag nor a digest: the image keeps the one that it has"
            yield Issue("warning", "karmada-override-tag", message, (*at, "imageOverrider", index))
    for index, entry in enumerate(overriders.get("plaintext", [])):
        if entry["path"] and not entry["path"].startswith("/"):
            message = f"{entry['path']!r} is no JSON pointer, which begins with /: it cannot be applied"
            yield Issue("warning", "karmada-override-path", message, (*at, "plaintext", index, "path"))
    for index, entry in enumerate(overriders.get("fieldOverrider", [])):
        yield from _judge_field(entry, (*at, "fieldOverrider", index))


def _judge_field(overrider: Body, at: Pointer) -> Iterator[Issue]:
    if overrider.get("json") and overrider.get("yaml"):
        yield error("karmada-override-field", "fieldOverrider has both json and yaml; only one is allowed", *at)
    if not (overrider.get("json") or overrider.get("yaml")):
        yield error("karmada-override-field", "fieldOverrider must have either json or yaml", *at)
    yield from _judge_path(overrider["fieldPath"], (*at, "fieldPath"))
    for language in ("json", "yaml"):
        for index, patch in enumerate(overrider.get(language, [])):
            yield from _judge_patch(patch, (*at, language, index))


def _judge_patch(patch: Body, at: Pointer) -> Iterator[Issue]:
    yield from _judge_path(patch["subPath"], (*at, "subPath"))
    if patch["operator"] == "remove":
        if "value" in patch:
            yield error("karmada-override-value", "value is not allowed for remove", *at, "value")
    elif "value" not in patch:
        yield error("karmada-override-value", f"value is required for {patch['operator']}", *at)


def _judge_path(path: str, at: Pointer) -> Iterator[Issue]:
    if path and not path.startswith("/"):
        yield error("karmada-override-path", f"{path!r} must be a JSON pointer: empty, or beginning with /", *at)
