"""Predicates and priorities of the vreplica scheduler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gitsched.apis.knative.scheduler_policies import read_profile
from gitsched.schedule.vreplicas import plugins
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy, schedule_vpod
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, FreeCapacity, Pod, Vpod

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "knative.md"


def config(args: str) -> dict[str, object]:
    predicates = f'[{{"Name": "PodFitsResources"}}, {{"Name": "FewVreplicas", "Args": "{args}"}}]'
    return {"kind": "ConfigMap", "metadata": {"name": "config-scheduler"}, "data": {"predicates": predicates, "priorities": "[]"}}


def test_the_documented_predicate_works_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    section = (DOCS / "development" / "architecture.md").read_text().partition("## Predicates and priorities of event sources\n")[2]
    code = re.search(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert code is not None
    scope = dict(vars(plugins))
    exec(code[1], scope)
    monkeypatch.setattr(
        "gitsched.apis.knative.scheduler_policies.PREDICATES", {**plugins.PREDICATES, "FewVreplicas": scope["FewVreplicas"]}
    )
    assert [issue.code for issue in read_profile(config('{\\"Least\\": 2}'))[1]] == ["knative-arguments"]
    profile, issues = read_profile(config('{\\"Most\\": 2}'))
    assert issues == []
    adapter = AdapterStatefulSet(5, 3, {o: Pod(o, f"n{o}", "z") for o in range(3)}, {f"n{o}": "z" for o in range(3)})
    shares = schedule_vpod(Vpod("s", 9, {}), adapter, FreeCapacity(adapter, []), SchedulingStrategy(profile, None))
    assert shares == {0: 2, 1: 2, 2: 2}


def test_the_documented_config_maps_are_valid() -> None:
    bodies = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)]
    profiles = {body["metadata"]["name"]: read_profile(body) for body in bodies if body.get("kind") == "ConfigMap"}
    assert {name: issues for name, (_, issues) in profiles.items()} == {"config-scheduler": [], "config-descheduler": []}
    assert [(plugin.name, plugin.value) for plugin in profiles["config-scheduler"][0].predicates] == [
        ("PodFitsResources", 0),
        ("NoMaxResourceCount", 100),
        ("EvenPodSpread", 2),
    ]
    assert [(plugin.name, weight) for plugin, weight in profiles["config-descheduler"][0].priorities] == [
        ("RemoveWithEvenPodSpreadPriority", 10),
        ("RemoveWithAvailabilityZonePriority", 10),
        ("RemoveWithHighestOrdinalPriority", 2),
    ]


def test_every_plugin_and_alias_is_documented() -> None:
    page = PAGE.read_text()
    assert [name for name in (*plugins.PREDICATES, *plugins.PRIORITIES, *plugins.ALIASES) if f"`{name}`" not in page] == []
