"""The page of a plan: the times of its commits, and a map with the clusters that were available before a change, and after it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.reconcile.review import withheld_changes
from tests.scenarios.conftest import UNGUARDED, Fleet, at_hour, cluster, deployment, policy

TOLERANT = "    clusterTolerations: [{operator: Exists}]\n"
READY, LOST = (f"status:\n  conditions: [{{type: Ready, status: '{status}'}}]\n" for status in ("True", "False"))
EARLIER = {
    "clusters/drained.yaml": cluster("drained"),
    "clusters/left.yaml": cluster("left", "power:NoExecute"),
    "clusters/healed.yaml": cluster("healed", "power:NoExecute"),
    "clusters/lost.yaml": cluster("lost") + READY,
    "clusters/silent.yaml": cluster("silent") + LOST,
    "clusters/gone.yaml": cluster("gone"),
    "clusters/dead.yaml": cluster("dead", "power:NoExecute"),
    "clusters/same.yaml": cluster("same"),
    "apps/web.yaml": deployment("web"),
    "policy.yaml": policy("", more=TOLERANT),
    "gitsched.yaml": UNGUARDED,
}
LATER: dict[str, str | bytes | None] = {
    "clusters/drained.yaml": cluster("drained", "power:NoExecute"),
    "clusters/healed.yaml": cluster("healed"),
    "clusters/lost.yaml": cluster("lost") + LOST,
    "clusters/silent.yaml": cluster("silent", region="south") + LOST,
    "clusters/gone.yaml": None,
    "clusters/dead.yaml": None,
    "clusters/new.yaml": cluster("new"),
    "policy.yaml": policy(""),
}


def write_plan(fleet: Fleet, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the page of a plan."""
    capsys.readouterr()
    assert main(["plan", "-C", str(fleet.path), "--now", at_hour(3).isoformat(), "-o", "html", *words]) in (0, 1)
    return capsys.readouterr().out


def list_clusters(html: str) -> dict[str, Any]:
    """Return the clusters of the page of a plan, by name."""
    found = re.search(r'id="fleet-data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return {one["name"]: one for one in json.loads(found[1])["clusters"]}


@pytest.mark.parametrize("base", [True, False], ids=["against-a-commit", "against-the-output"])
def test_the_map_knows_which_clusters_were_available_before(fleet: Fleet, capsys: pytest.CaptureFixture[str], base: bool) -> None:
    fleet.commit(EARLIER)
    fleet.reconcile(0)
    fleet.commit(LATER, hour=2)
    clusters = list_clusters(write_plan(fleet, capsys, *(["HEAD~1"] if base else [])))
    states = {name: ("wasDown" in one and bool(one["wasDown"]), "unavailable" in one) for name, one in clusters.items()}
    assert states == {
        "drained": (False, True),
        "left": (True, True),
        "healed": (True, False),
        "lost": (False, True),
        "silent": (True, True),
        "gone": (False, True),
        "dead": (True, True),
        "same": (False, False),
        "new": (False, False),
    }
    assert [name for name, one in clusters.items() if "added" in one] == ["new"]


def test_the_html_of_a_plan_has_the_times_of_both_commits(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.commit(EARLIER, message="Add the fleet")
    fleet.reconcile(0)
    fleet.commit(LATER, hour=2, message="Change the fleet")
    found = re.findall(r'(\w+) the fleet \([^<]*<time datetime="([^"]*)"', write_plan(fleet, capsys, "HEAD~1"))
    assert found == [(word, at_hour(hour).isoformat().replace("+00:00", "Z")) for word, hour in (("Change", 2), ("Add", 0))]


DRAINED, OTHER_TAINT = (cluster("one", *taints) for taints in (("power:NoExecute",), ("disk:NoExecute",)))
STAYS = (
    "1 workload stays where it went: Deployment default/web.",
    "gitsched rebalance --all-displaced says what returns by itself",
)


@pytest.mark.parametrize("base", [True, False], ids=["against-a-commit", "against-the-output"])
@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (
            {"one.yaml": cluster("one")},
            ("The drain of one ends: the taint power:NoExecute is removed", "Nothing goes to one by this change alone: ", *STAYS),
        ),
        (
            {"one.yaml": cluster("one"), "api.yaml": deployment("api")},
            ("The drain of one ends: ", "1 workload goes to one with this change: Deployment default/api", *STAYS),
        ),
        ({"one.yaml": OTHER_TAINT}, ("one stays drained, but for one taint less: the taint power:NoExecute is removed",)),
    ],
    ids=["nothing-returns", "a-new-workload", "another-taint"],
)
def test_the_html_of_a_plan_says_which_drain_ends_who_began_it_and_what_returns(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], later: dict[str, str], expected: tuple[str, ...], base: bool
) -> None:
    files = {"two.yaml": cluster("two"), "web.yaml": deployment("web"), "policy.yaml": policy("one", "two")}
    files["gitsched.yaml"] = UNGUARDED
    fleet.commit({**files, "one.yaml": cluster("one")})
    fleet.reconcile()
    drain = fleet.commit({"one.yaml": DRAINED}, hour=1, message="Drain one for new disks")
    fleet.reconcile(1)
    fleet.commit(later, hour=2, message="Back")
    page = write_plan(fleet, capsys, *(["HEAD~1"] if base else []))
    problem = re.search(r'<li class="note" id="ended-drain-1">(.*?)</li>', page, re.DOTALL)
    assert problem is not None
    assert [text for text in expected if text not in problem[1]] == [], problem[1]
    assert re.search(rf"\(was one.yaml:\d+\); {drain[:10]} Drain one for new disks \(Ada Author\) added it", problem[1]), problem[1]


def test_the_html_of_a_plan_names_no_drain_that_goes_on(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.commit(EARLIER)
    fleet.reconcile(0)
    fleet.commit({"apps/web.yaml": deployment("web", 3)}, hour=2)
    assert "ended-drain" not in write_plan(fleet, capsys)


def test_a_plan_as_html_names_what_requests_withheld_changes_and_reads_no_delivered_manifest(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.commit(
        {"one.yaml": cluster("one"), "two.yaml": cluster("two"), "web.yaml": deployment("web"), "policy.yaml": policy("one")}
    )
    fleet.reconcile()
    set_freeze(fleet.settings(1), "audit week")
    request = fleet.commit({"policy.yaml": policy("two")}, hour=2, message="To two")
    fleet.reconcile(2)

    def read(*_: object) -> None:
        raise AssertionError("the page shows nothing of manifests of withheld workloads")

    monkeypatch.setattr(withheld_changes, "_list_data", read)
    assert f"Requested by {request[:10]} To two (Ada Author); to withdraw it: git revert {request[:10]}" in write_plan(
        fleet, capsys
    )


def test_the_html_of_a_plan_says_which_clusters_are_full_after_it(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    summary = "status: {resourceSummary: {allocatable: {cpu: '2', pods: '9'}}}\n"
    pods = "  template: {spec: {containers: [{name: main, image: 'a:1', resources: {requests: {cpu: '1'}}}]}}\n"
    files = {"one.yaml": cluster("one") + summary, "two.yaml": cluster("two") + summary, "policy.yaml": policy("one")}
    fleet.commit(files)
    fleet.reconcile(0)
    full = "full, no new workload with requests fits: "
    assert full not in write_plan(fleet, capsys)
    fleet.commit({"web.yaml": deployment("web", 2) + pods}, hour=1)
    assert f"{full}one<" in write_plan(fleet, capsys)
