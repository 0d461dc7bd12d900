"""The table of the fields of Flux and Argo CD: each is documented, and what is not read is a finding."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Collection
from pathlib import Path

import yaml

from gitsched.build.tool_fields import FIELD_ROWS, SOURCE_KIND, list_unread_fields
from gitsched.kinds.read_fields import READ_FIELDS
from gitsched.model.tool_groups import ARGO_GROUP, ARTIFACT_GROUP, KUSTOMIZE_GROUP, RELEASE_GROUP, SOURCE_GROUP
from tests.upstream_definitions import NEEDS_DEFINITIONS, read_definitions

ROOT = Path(__file__).parents[2]


def test_the_site_shows_the_rows_of_the_table() -> None:
    spec = importlib.util.spec_from_file_location("tool_field_tables", ROOT / ".ci" / "tool_field_tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    page = tables.write_tables((ROOT / "docs" / "delivery-tool-fields.md").read_text(encoding="utf-8"))
    found: list[tuple[str, str, str, str]] = []
    for section in page.split("\n## ")[1:]:
        rows = re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) ?\|$", section, re.MULTILINE)
        found += [(section.partition("\n")[0], " ".join(re.findall("`([^`]*)`", fields)), *rest) for fields, *rest in rows]
    assert found == [tuple(row) for row in FIELD_ROWS]


def test_all_fields_that_are_read_are_in_the_table() -> None:
    known = {(row.kind, path) for row in FIELD_ROWS for path in row.list_paths()}
    for (group, kind), types in READ_FIELDS.items():
        if kind not in ("Kustomization", "Application", "GitRepository") or group == "kustomize.config.k8s.io":
            continue
        for path in " ".join(types.values()).split():
            names = tuple(path.replace("[]", ".*").split("."))
            names = names[1:] if names[0] == "spec" else names
            of_source = names[0] in ("source", "sources") and kind == "Application"
            names = names[2 if names[0] == "sources" else 1 :] if of_source else names
            prefixes = {(SOURCE_KIND if of_source else kind, names[:length]) for length in range(1, len(names) + 1)}
            assert prefixes & known, path


def test_every_field_of_flux_and_argo_cd_is_in_the_table() -> None:
    known = {(row.kind, path) for row in FIELD_ROWS for path in row.list_paths()}
    fields = yaml.safe_load(Path(__file__).with_name("tool_fields.yaml").read_text(encoding="utf-8"))
    assert fields.keys() == {row.kind for row in FIELD_ROWS}
    for kind, names in fields.items():
        paths = {name: tuple(name.replace("[]", ".*").split(".")) for name in names}
        prefixes = {name: {(kind, path[:length]) for length in range(1, len(path) + 1)} for name, path in paths.items()}
        assert [name for name in names if not prefixes[name] & known] == [], kind
        listed = [path for row in FIELD_ROWS if row.kind == kind for path in row.list_paths()]
        assert [
            path for path in listed if not any(path[: len(one)] == one or one[: len(path)] == path for one in paths.values())
        ] == []


@NEEDS_DEFINITIONS
def test_every_field_of_the_definitions_is_in_the_table() -> None:
    """Definitions of all releases may be given: a field of any version of a kind is to be in the table."""
    known = {(row.kind, path) for row in FIELD_ROWS for path in row.list_paths()}
    groups = (ARGO_GROUP, ARTIFACT_GROUP, KUSTOMIZE_GROUP, RELEASE_GROUP, SOURCE_GROUP)
    found = [
        (kind, path.removeprefix("spec."))
        for (group, _, kind), fields in read_definitions()
        if group in groups and kind != "AppProject"
        for path in fields
        if path.startswith("spec.")
    ]
    assert found, "no definition of these groups"
    of_source = [(SOURCE_KIND, match[1]) for kind, path in found if kind == "Application" and (match := _OF_SOURCE.fullmatch(path))]
    missing = {one for one in (*found, *of_source) if not _is_known(*one, known)}
    assert sorted(missing) == []


_OF_SOURCE = re.compile(r"(?:source|sources\[\]|sourceHydrator\.drySource)\.(.*)")


def _is_known(kind: str, path: str, known: Collection[tuple[str, tuple[str, ...]]]) -> bool:
    names = tuple(path.replace("[]", ".*").split("."))
    return any((kind, names[:length]) in known for length in range(1, len(names) + 1))


def test_fields_that_are_not_read_are_listed_where_they_are_set() -> None:
    assert [field for field, _ in list_unread_fields(SOURCE_KIND, {"kustomize": {"version": "v4", "kubeVersion": ""}})] == [
        "kustomize.version"
    ]
    assert list(list_unread_fields("Kustomization", {"path": "a", "ignore": []})) == []
    assert all(row.reason for row in FIELD_ROWS if row.treatment in ("differs", "finding"))
