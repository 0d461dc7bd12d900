"""A form that no gitsched has written, with other names for what an output branch records, as the one before the present version.

A later version changes the form in the same way: a function, and a line in `STEPS`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import pygit2
import pytest

from gitsched.git.notes import NOTES_REF
from gitsched.manifests.parser import parse_file
from gitsched.render import format_versions
from gitsched.render.format_versions import FormatStep
from gitsched.render.output_files import write_record
from tests.scenarios.conftest import Fleet

MEMBERS = {
    "adopted": "takenOver",
    "guard": "limits",
    "retainedCopies": "copies",
    "retiring": "leaving",
    "rollouts": "waves",
    "tenants": "teams",
}
"""The members of gitsched.json with other names in the older form."""
FIELDS = {
    ("cluster.open-cluster-management.io", "PlacementDecision"): ("status", "decisions", "chosen"),
    ("kubernetes", "Application"): ("status", "scheduled_to", "cluster"),
    ("sources.knative.dev", "KafkaSource"): ("status", "placements", "pods"),
    ("work.karmada.io", "ResourceBinding"): ("spec", "clusters", "targets"),
}
"""Where records have a field with another name in the older form."""


def read_older_members(members: Mapping[str, Any]) -> Mapping[str, Any]:
    names = {old: new for new, old in MEMBERS.items()}
    return {names.get(name, name): value for name, value in members.items()}


def read_older_record(body: dict[str, Any]) -> dict[str, Any]:
    group = str(body.get("apiVersion") or body.get("api")).partition("/")[0]
    part, name, older = FIELDS[group, body["kind"]]
    return _rename(body, part, older, name)


OLDER = FormatStep(read_older_members, read_older_record, tuple(FIELDS))


def register(patch: pytest.MonkeyPatch, *steps: FormatStep) -> None:
    """Let the code have more versions."""
    patch.setattr(format_versions, "STEPS", (*format_versions.STEPS, *steps))
    for name, module in list(sys.modules.items()):
        if name.startswith("gitsched.") and hasattr(module, "FORMAT_VERSION"):
            patch.setattr(module, "FORMAT_VERSION", 1 + len(format_versions.STEPS))


def age(fleet: Fleet, prefix: str = "") -> str:
    """Replace the head of the output branch by one with the same content in the older form, and return its id."""
    members = {MEMBERS.get(name, name): value for name, value in fleet.load(f"{prefix}gitsched.json").items()}
    files = {f"{prefix}gitsched.json": json.dumps(members).encode()}
    for (group, kind), (part, name, older) in FIELDS.items():
        for path in fleet.files():
            if path.startswith(f"{prefix}status/{group}/{kind.lower()}/"):
                body = parse_file(fleet.read(path).encode(), path=path, validate=None).documents[0].body
                files[path] = write_record(_rename(body, part, name, older)).data
    return replace_head(fleet, files)


def replace_head(fleet: Fleet, files: Mapping[str, bytes | None]) -> str:
    """Replace the head of the output branch by a commit with other files, and with the same parent, message, author and note."""
    repository = fleet.repository
    head = repository.revparse_single("placements").peel(pygit2.Commit)
    index = pygit2.Index()
    index.read_tree(head.tree)
    for path, data in files.items():
        if data is None:
            index.remove(path)
        else:
            index.add(pygit2.IndexEntry(path, repository.create_blob(data), pygit2.enums.FileMode.BLOB))
    tree = index.write_tree(repository)
    commit = repository.create_commit(None, head.author, head.committer, head.message, tree, head.parent_ids)
    repository.references.create("refs/heads/placements", commit, force=True)
    fleet.git("notes", f"--ref={NOTES_REF}", "copy", "-f", str(head.id), str(commit))
    return str(commit)


def _rename(body: dict[str, Any], part: str, name: str, other: str) -> dict[str, Any]:
    """Return a record with another name for a field, at the same place."""
    values = body.get(part)
    if not isinstance(values, dict) or name not in values:
        return body
    return {**body, part: {other if each == name else each: value for each, value in values.items()}}
