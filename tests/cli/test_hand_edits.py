"""`gitsched tree` and `gitsched explain`: what people changed by hand on the output branch is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import POLICY, Run

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}}\n"
SERVICE_POLICY = POLICY.replace("apps/v1, kind: Deployment", "v1, kind: Service").replace("name: web\n  n", "name: service\n  n")
MANIFEST, SERVICE_FILE = "clusters/one/shop/deployment-web.yaml", "clusters/one/shop/service-web.yaml"


def test_hand_edits_are_reported_with_the_objects_and_fields(
    fleet: Path, commit: Callable[..., None], gitsched: Run, git: Callable[..., str]
) -> None:
    commit(fleet, service=SERVICE, servicepolicy=SERVICE_POLICY)
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    git("checkout", "-q", "placements", at=fleet)
    (fleet / MANIFEST).write_text((fleet / MANIFEST).read_text().replace("replicas: 2", "replicas: 9"))
    (fleet / SERVICE_FILE).unlink()
    commit(fleet)
    edited = git("rev-parse", "HEAD", at=fleet)[:10]
    git("checkout", "-q", "main", at=fleet)

    def show(*arguments: str) -> str:
        return " ".join(gitsched(*arguments, "--now", "2026-03-02T10:00:40Z").stdout.split())

    head = f"edited by hand: {edited} Change (Ada, 1h ago)"
    back = "the next run takes this back"
    changes = f"{head} changed Deployment shop/web (spec.replicas 2 -> 9), removed Service shop/web; {back}"
    assert changes in show("tree", "one")
    assert changes in show("explain", "cluster/one")
    assert head not in show("tree", "two")
    assert f"{head} changed it in one (spec.replicas 2 -> 9); {back}" in show("tree", "deployment/web")
    assert f"Placed on 1 cluster with 2 replicas. E{head[1:]} changed it in one (spec.replicas 2 -> 9); {back}." in show(
        "explain", "deployment/web"
    )
    assert f"{head} removed it from one; {back}" in show("tree", "service/web")
    assert json.loads(gitsched("tree", "one", "--now", "2026-03-02T10:00:40Z", "-o", "json").stdout)["edits"] == [changes]
    git("checkout", "-q", "placements", at=fleet)
    git("revert", "--no-edit", "HEAD", at=fleet, GIT_COMMITTER_DATE="1772442600 +0000")
    git("checkout", "-q", "main", at=fleet)
    assert edited not in show("tree", "one"), "what people took back themselves is not there any more"
