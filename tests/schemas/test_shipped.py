"""The JSON Schemas that the package ships."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import gitsched
from gitsched.apis.schemas import SchemaDirectory, shipped_schemas

ROOT = Path(__file__).parents[2]
POLICY = ("policy.karmada.io", "v1alpha1", "PropagationPolicy")
REPORT = """
import gitsched, json
from gitsched.apis.schemas import shipped_schemas
schemas = shipped_schemas()
title = schemas["policy.karmada.io", "v1alpha1", "PropagationPolicy"]["title"]
print(json.dumps([gitsched.__file__, title, sorted("/".join(key) for key in schemas)]))
"""


def report_from(directory: Path) -> list[object]:
    """What a fresh interpreter finds when the package lies in `directory`."""
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    run = subprocess.run([sys.executable, "-c", REPORT], cwd=directory, env=environment, capture_output=True, text=True, check=True)
    return list(json.loads(run.stdout))


def expect_all(report: list[object], directory: Path) -> None:
    assert report[0] == str(directory / "gitsched" / "__init__.py")
    assert report[1] == "PropagationPolicy"
    assert report[2] == sorted("/".join(key) for key in shipped_schemas())


def test_a_checkout_has_its_schemas_beside_the_package() -> None:
    expect_all(report_from(ROOT), ROOT)
    assert len(shipped_schemas()) >= 10


def test_a_wheel_layout_contains_the_schemas(tmp_path: Path) -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    shutil.copytree(ROOT / "gitsched", tmp_path / "gitsched", ignore=shutil.ignore_patterns("__pycache__"))
    for source, target in wheel["sources"].items():
        shutil.copytree(ROOT / source, tmp_path / target)
    assert not (tmp_path / "schemas").exists()
    expect_all(report_from(tmp_path), tmp_path)


def test_a_built_wheel_contains_the_schemas(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="a wheel is built without the network, so its build backend must be there")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-build-isolation",
        "--no-deps",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("gitsched-*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    expect_all(report_from(site), site)
    strangers = [path.name for path in (site / "gitsched" / "schemas").iterdir() if not path.is_dir()]
    assert strangers == [], "what the schemas are written with is nothing that gitsched runs with"
    assert not (site / "schemas").exists()
    (metadata,) = site.glob("gitsched-*.dist-info/METADATA")
    check_description(metadata.read_text(encoding="utf-8"))


def check_description(metadata: str) -> None:
    """A package index shows README.md without the files beside it: its links and images are absolute, and are those of this version."""
    headers, _, description = metadata.partition("\n\n")
    assert "\nProject-URL: Source, https://" in headers
    links = re.findall(r"\]\(([^)\s]+)\)", description) + re.findall(r'(?:src|srcset|href)="([^"]+)"', description)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert any(f"/v{gitsched.__version__}/" in link for link in links)


def test_a_schema_is_parsed_once_and_on_demand(tmp_path: Path) -> None:
    directory = tmp_path / "example.io" / "v1"
    directory.mkdir(parents=True)
    (directory / "Good.json").write_text('{"title": "Good"}')
    (directory / "Broken.json").write_text("{")
    (directory / "notes.txt").write_text("not a schema")
    (tmp_path / "shared.json").write_text("{}")
    schemas = SchemaDirectory(tmp_path)
    assert list(schemas) == [("example.io", "v1", "Broken"), ("example.io", "v1", "Good")]
    assert ("example.io", "v1", "Broken") in schemas
    assert schemas["example.io", "v1", "Good"] == {"title": "Good"}
    assert schemas["example.io", "v1", "Good"] is schemas["example.io", "v1", "Good"]
    with pytest.raises(ValueError):
        schemas["example.io", "v1", "Broken"]


def test_an_unknown_kind_has_no_schema() -> None:
    schemas = shipped_schemas()
    assert POLICY in schemas
    assert ("policy.karmada.io", "v1", "PropagationPolicy") not in schemas
    assert schemas.get(("", "v1", "ConfigMap")) is None
    with pytest.raises(KeyError):
        schemas["", "v1", "ConfigMap"]
