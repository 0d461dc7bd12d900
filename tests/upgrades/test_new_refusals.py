"""An upgrade refuses documents that an earlier version has delivered: each keeps its bytes, with an error at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.manifests import reader_differences
from gitsched.manifests.field_relations import RelationTree
from gitsched.manifests.reader_differences import Differences
from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, policy

pytestmark = pytest.mark.replaces_parsing

POD = "  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: a, image: b}, {name: a, image: c}]\n"
REFUSED = {
    "kubectl and kustomize cannot read it": (
        deployment("web").replace("spec:", '  annotations: {url: "http:\\/\\/web.example"}\nspec:', 1),
        "refused-by-kubernetes",
        6,
    ),
    "an API server refuses its values": (deployment("web") + POD, "invalid-field", 12),
}


@pytest.fixture(params=list(REFUSED))
def upgraded(request: pytest.FixtureRequest, fleet: Fleet, tmp_path: Path) -> tuple[Fleet, str, int]:
    """A fleet whose output branch is of a version that did not know the rules, and the finding of this one."""
    text, code, line = REFUSED[request.param]
    files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    fleet.commit(
        {**files, "apps/web.yaml": text, "apps/api.yaml": deployment("api"), "policy.yaml": policy(""), "gitsched.yaml": UNGUARDED}
    )
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(reader_differences, "find_differences", lambda *_: Differences([], []))
        earlier.setattr(RelationTree, "find_issues", lambda *_: None)
        assert fleet.reconcile(cache=tmp_path / "cache-of-the-earlier-version").after
    assert fleet.delivered("default/deployment-web") == ["first", "second"]
    return fleet, code, line


def test_what_was_delivered_and_is_refused_now_keeps_its_bytes(upgraded: tuple[Fleet, str, int]) -> None:
    fleet, code, line = upgraded
    before = {path: blob for path, blob in fleet.files().items() if path.startswith("clusters/") and "/deployment-" in path}
    assert len(before) == 4
    for hour in (1, 2):
        fleet.commit({"apps/more.yaml": deployment(f"more-{hour}")}, hour=hour)
        result = fleet.reconcile(hour)
        errors = [
            (finding.code, finding.location.path, finding.location.line)
            for finding in result.plan.findings
            if finding.severity == "error"
        ]
        assert errors == [(code, "apps/web.yaml", line)]
        after = fleet.files()
        assert {path: after.get(path) for path in before} == before
        assert fleet.delivered(f"default/deployment-more-{hour}") == ["first", "second"]


def test_a_repaired_document_is_delivered_again(upgraded: tuple[Fleet, str, int]) -> None:
    fleet, _, _ = upgraded
    fleet.reconcile(1)
    fleet.commit({"apps/web.yaml": deployment("web", 3)}, hour=2)
    fleet.reconcile(2)
    assert "replicas: 3" in fleet.read("clusters/first/default/deployment-web.yaml")
