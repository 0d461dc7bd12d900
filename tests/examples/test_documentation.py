"""What the documentation shows is true: links lead somewhere, YAML is YAML, every setting is explained."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from gitsched.model.capacity_use import PlacedRequests
from gitsched.model.changes import RetainedCopy
from gitsched.model.document import Key
from gitsched.model.rollouts import RolloutRecord
from gitsched.model.time import EPOCH
from gitsched.render.run_metadata import BuildRecord, RunMetadata, write_run_metadata
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
CONFIG = json.loads((ROOT / "schemas/gitsched.io/v1alpha1/Config.json").read_text())["properties"]["spec"]
LATER = {"notifications"}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_row("page", PAGES)
def test_every_relative_link_has_an_existing_target(page: Path) -> None:
    for target in re.findall(r"\]\((?!https://)([^)\s]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@each_row("page", PAGES)
def test_every_yaml_block_is_yaml(page: Path) -> None:
    for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        assert list(yaml.safe_load_all(block))


def settings(schema: dict[str, Any], path: str = "") -> list[str]:
    """The dotted paths of all settings that are no objects themselves."""
    found = []
    for key, value in schema.get("properties", {}).items():
        found += settings(value, f"{path}{key}.") if "properties" in value else [f"{path}{key}"]
    return found


@each_row("setting", [s for s in settings(CONFIG) if s.split(".")[0] not in LATER])
def test_every_setting_is_documented(setting: str) -> None:
    section, _, key = setting.partition(".")
    page = (ROOT / "docs" / "configuration.md").read_text()
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert text is not None, f"no section for {section}"
    assert not key or f"`{key}`" in text[1]


def test_settings_without_effect_are_documented_as_such() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert f"## {', '.join(sorted(LATER, key=list(CONFIG['properties']).index))}\n" in page


def test_comments_of_the_example_show_the_defaults() -> None:
    spec = yaml.safe_load((ROOT / "examples/repo/gitsched.yaml").read_text())["spec"]
    assert spec.pop("assumed"), "an example of what has no default"
    for section, values in spec.items():
        for key, value in values.items():
            assert CONFIG["properties"][section]["properties"][key]["default"] == value, f"{section}.{key}"


def test_every_member_of_gitsched_json_is_documented() -> None:
    page = (ROOT / "docs" / "development" / "output-format.md").read_text()
    table = page.partition("## gitsched.json")[2].partition("\n## ")[0]
    explained = {name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    complete = RunMetadata("", "", facts={"facts": "1"}, workloads={"placed": 1}, unclaimed=1)
    complete = complete._replace(
        builds=BuildRecord("kubectl", {"a": "1"}),
        kept_files={"a": "1"},
        guard={"frozen": "a holiday"},
        adopted={"Deployment.apps/shop/web": "no status"},
        tenants=({"name": "shop"},),
        rollouts=(RolloutRecord("shop", ()),),
        retained=(RetainedCopy(Key("apps", "Deployment", "shop", "web"), "ash", 1, ()),),
        placed={"ash": (PlacedRequests(EPOCH, {"cpu": 1000}),)},
    )
    assert explained == json.loads(write_run_metadata(complete).data).keys()
