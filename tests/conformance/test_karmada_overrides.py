"""What upstream's own parser of image names and upstream's own JSON patch made of random input, recorded; a null result is a refusal."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject, parse_pointer
from gitsched.apis.karmada.overrides.overriders import override_image
from gitsched.model.json_values import is_same_json

CASES = [
    json.loads(line)
    for line in lzma.decompress(Path(__file__).with_name("karmada-overrides.jsonl.xz").read_bytes()).decode().splitlines()
]


def change(case: dict[str, Any]) -> Any:
    return override_image(case["image"], case["component"], case["operator"], case["value"])


def patch(case: dict[str, Any]) -> Any:
    draft = PatchedObject(case["object"])
    for operation in case["patch"]:
        draft.apply(operation["operator"], parse_pointer(operation["path"]), operation.get("value"))
    return draft.root


def differing(kind: str) -> list[dict[str, Any]]:
    """The recorded cases of which something else is made here."""
    found = []
    for case in (case for case in CASES if kind in case):
        try:
            result = change(case) if kind == "image" else patch(case)
        except InapplicablePatch:
            result = None
        if not is_same_json(result, case["result"]):
            found.append({**case, "here": result})
    return found


def test_the_recording_has_changes_and_rejections_of_both_kinds() -> None:
    for kind in ("image", "object"):
        assert {case["result"] is None for case in CASES if kind in case} == {True, False}


def test_image_names_change_as_in_karmada() -> None:
    assert differing("image") == []


def test_patches_have_the_results_of_karmada() -> None:
    assert differing("object") == []
