"""A dump of a hub is delivered without what only the hub may have in it; what a person writes in Git is delivered as it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.edits.manifest_edits import edit_manifest
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Origin, list_server_owned, remove_server_owned
from gitsched.model.json_values import is_same_json
from gitsched.model.planned_files import PatchedBlob

CASES = yaml.safe_load(Path(__file__).with_name("dumped.yaml").read_text())


@pytest.mark.parametrize("case", CASES["dumped"].values(), ids=CASES["dumped"])
@pytest.mark.parametrize("style", [False, None, True], ids=["block", "mixed", "flow"])
def test_what_only_the_hub_may_have_is_not_delivered(case: dict[str, Any], style: bool | None) -> None:
    dump = {"apiVersion": "v1", **case["dump"]}
    rest = {"apiVersion": "v1", **case["rest"]}
    assert is_same_json(remove_server_owned(dump), rest)
    assert list_server_owned(rest) == []
    text = yaml.safe_dump(dump, sort_keys=False, default_flow_style=style)
    (document,) = parse_file(text.encode(), path="a.yaml", validate=None).documents
    if document.spans.server_owned is not None:
        for start, end in reversed(document.spans.server_owned):
            text = text[:start] + text[end:]
        assert is_same_json(yaml.safe_load(text), rest)
    origin = Origin("a.yaml", "0" * 40, 0, -1, 1, 1, document.spans)
    edited = edit_manifest(yaml.safe_dump(dump, sort_keys=False, default_flow_style=style), PatchedBlob(origin, dump, rest))
    assert is_same_json(yaml.safe_load(edited.file.data), rest)


@pytest.mark.parametrize("written", CASES["written"], ids=lambda body: body["kind"])
def test_what_a_person_writes_in_git_is_delivered(written: dict[str, Any]) -> None:
    assert [path for path in list_server_owned(written) if path[-1] != "creationTimestamp"] == []


def test_an_encrypted_dump_keeps_its_fields() -> None:
    assert list_server_owned({"metadata": {"name": "a", "uid": "x", "finalizers": ["f"]}, "sops": {"mac": "m"}}) == []
