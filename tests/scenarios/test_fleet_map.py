"""The map of the page of a plan shows which clusters were available before a change, and which are after it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gitsched.cli import main
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


def plan(fleet: Fleet, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the clusters of the page of a plan, by name."""
    capsys.readouterr()
    assert main(["plan", "-C", str(fleet.path), "--now", at_hour(3).isoformat(), "-o", "html", *words]) in (0, 1)
    found = re.search(r'id="fleet-data">(.*?)</script>', capsys.readouterr().out, re.DOTALL)
    assert found is not None
    return {one["name"]: one for one in json.loads(found[1])["clusters"]}


@pytest.mark.parametrize("base", [True, False], ids=["against-a-commit", "against-the-output"])
def test_the_map_knows_which_clusters_were_available_before(fleet: Fleet, capsys: pytest.CaptureFixture[str], base: bool) -> None:
    fleet.commit(EARLIER)
    fleet.reconcile(0)
    fleet.commit(LATER, hour=2)
    clusters = plan(fleet, capsys, *(["HEAD~1"] if base else []))
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
