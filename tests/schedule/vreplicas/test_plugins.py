"""A plug-in of one's own is a class and a line: the one that the documentation shows works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gitsched.apis.knative.policies import read_profile
from gitsched.schedule.vreplicas import plugins
from gitsched.schedule.vreplicas.adapter import Adapter, Pod, Vpod
from gitsched.schedule.vreplicas.ledger import Ledger
from gitsched.schedule.vreplicas.placing import Strategy, place

PAGE = Path(__file__).parents[3] / "docs" / "knative.md"


def config(args: str) -> dict[str, object]:
    predicates = f'[{{"Name": "PodFitsResources"}}, {{"Name": "FewVreplicas", "Args": "{args}"}}]'
    return {"kind": "ConfigMap", "metadata": {"name": "config-scheduler"}, "data": {"predicates": predicates, "priorities": "[]"}}


def test_a_documented_predicate_needs_no_more_than_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    scope = dict(vars(plugins))
    exec(code, scope)
    monkeypatch.setattr("gitsched.apis.knative.policies.PREDICATES", {**plugins.PREDICATES, "FewVreplicas": scope["FewVreplicas"]})
    assert [issue.code for issue in read_profile(config('{\\"Least\\": 2}'))[1]] == ["knative-arguments"]
    profile, issues = read_profile(config('{\\"Most\\": 2}'))
    assert issues == []
    adapter = Adapter(5, 3, {o: Pod(o, f"n{o}", "z") for o in range(3)}, {f"n{o}": "z" for o in range(3)})
    shares = place(Vpod("s", 9, {}), adapter, Ledger(adapter, []), Strategy(profile, None))
    assert shares == {0: 2, 1: 2, 2: 2}
