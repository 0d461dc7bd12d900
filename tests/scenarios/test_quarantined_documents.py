"""Documents on which a bug shows while a source is read count as broken: they stop no other document, however many they are."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.manifests.parsed_file import ABSENT
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult
from gitsched.reconcile.cache.caches import Caches
from gitsched.reconcile.source import quarantined_documents

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy

BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: bundle}\nspec: {path: directory}\n"
TENANT = "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: %s}\nspec: {paths: [teams/%s], namespaces: [%s]}\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: default}\n"
FILES = {
    "gitsched.yaml": UNGUARDED,
    "clusters/ash.yaml": cluster("ash"),
    "clusters/bru.yaml": cluster("bru"),
    "policy.yaml": policy(""),
    "bundle.yaml": BUNDLE,
    "directory/map.yaml": MAP,
    "good.yaml": deployment("good"),
}


def let_fail(monkeypatch: pytest.MonkeyPatch, target: str, name: str, region: str = "") -> list[str]:
    """Have a function fail for the document with a name, and a region; return a list that has an entry for each failure."""
    place, _, function = target.rpartition(".")
    module = importlib.import_module(f"gitsched.{place}")
    original: Callable[..., Any] = getattr(module, function)
    failures: list[str] = []

    def fail(body: Any) -> Any:
        if body["metadata"]["name"] == name and region in ("", body.get("spec", {}).get("region")):
            failures.append(name)
            raise RuntimeError("secret")
        return original(body)

    monkeypatch.setattr(module, function, fail)
    return failures


def list_faults(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code == "internal-error"]


def read_replicas(fleet: Fleet, name: str = "good") -> int:
    return int(fleet.load(f"clusters/ash/default/deployment-{name}.yaml")["spec"]["replicas"])


def test_a_bug_while_a_source_is_read_concerns_one_document(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet.commit(FILES)
    fleet.reconcile()
    fleet.commit({"good.yaml": deployment("good", 3), "clusters/bad.yaml": cluster("bad")}, hour=1)
    failures = let_fail(monkeypatch, "decide.cluster_metadata.read_labels", "bad", region="north")
    run = fleet.reconcile(1)
    assert failures
    (fault,) = list_faults(run)
    assert fault.location is not None
    assert (fault.severity, fault.location.path) == ("error", "clusters/bad.yaml")
    assert "secret" not in str(run.plan.findings)
    assert read_replicas(fleet) == 3
    for command in (["validate"], ["plan"], ["reconcile"], ["status"], ["tree", "ash"], ["explain", "Deployment/good"]):
        code = main([*command, "-C", str(fleet.path), "--cache-dir", str(fleet.cache)])
        assert code in ((1,) if command[0] in ("validate", "plan", "reconcile") else (0, 1)), capsys.readouterr()
    running = fleet.path.parent / "running" / "ash"
    running.mkdir(parents=True)
    (running / "good.yaml").write_text(deployment("good", 3))
    for command in (
        ["adopt", "--dry-run", "--directories", str(running.parent)],
        ["export", "flux", "--cluster", "ash", "--url", "https://example.com/placements"],
        ["export", "argocd", "--url", "https://example.com/placements"],
        ["export", "tenants", "--for", "flux", "--url", "https://example.com/placements"],
        ["rebalance", "Deployment/good"],
        ["rebalance", "--to", fleet.git("rev-parse", "HEAD~1").strip(), "Deployment/good"],
        ["scores", "--dry-run"],
        ["simulate", "--lose", "cluster/ash"],
    ):
        cache = fleet.path.parent / "-".join(command[:2]).replace("/", "-")  # without a state, from which the bug would not show
        code = main([*command, "-C", str(fleet.path), "--cache-dir", str(cache)])
        assert code in (0, 1), (command, capsys.readouterr())
    monkeypatch.undo()
    fleet.commit({"clusters/bad.yaml": cluster("bad", region="south")}, hour=2)
    assert not list_faults(fleet.reconcile(2))
    assert "clusters/bad/default/deployment-good.yaml" in fleet.files()


def test_the_last_valid_version_of_a_document_with_a_bug_applies(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit({**FILES, "clusters/bad.yaml": cluster("bad")})
    fleet.reconcile()
    fleet.commit({"good.yaml": deployment("good", 3), "clusters/bad.yaml": cluster("bad", region="south")}, hour=1)
    let_fail(monkeypatch, "decide.cluster_metadata.read_labels", "bad", region="south")
    (fault,) = list_faults(fleet.reconcile(1))
    assert fault.location is not None
    assert fault.location.path == "clusters/bad.yaml"
    assert fleet.load("clusters/bad/cluster.json")["region"] == "north"
    assert read_replicas(fleet) == 3


@pytest.mark.parametrize("tenants", [False, True], ids=["directories", "tenants"])
def test_many_bugs_of_one_owner_stop_no_other_one(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, tenants: bool) -> None:
    owned = "".join(f"{TENANT % (name, name, name)}---\n" for name in ("one", "two")) if tenants else MAP
    before = {"teams/one/placed.yaml": deployment("placed", namespace="one")}
    before["teams/one/policy.yaml"] = policy("").replace("namespace: default", "namespace: one")
    before["teams/two/good.yaml"] = deployment("good", namespace="two")
    before["teams/two/policy.yaml"] = policy("").replace("namespace: default", "namespace: two")
    fleet.commit({**FILES, **before, "tenants.yaml": owned})
    fleet.reconcile()
    fleet.reconcile()
    files = {f"teams/one/{number}.yaml": deployment(f"bad{number}", namespace="one") for number in range(30)}
    changed = {"good.yaml": deployment("good", 3), "teams/two/good.yaml": deployment("good", 5, namespace="two")}
    fleet.commit({**files, **changed}, hour=1)
    attempts = count_attempts(monkeypatch)
    let_resolve_fail(monkeypatch)
    run = fleet.reconcile(1)
    faults = list_faults(run)
    assert len(faults) == 1, "one line about all documents of the owner"
    assert "documents count as broken" in faults[0].message
    assert read_replicas(fleet) == 3
    assert fleet.load("clusters/ash/two/deployment-good.yaml")["spec"]["replicas"] == 5
    assert "clusters/ash/one/deployment-placed.yaml" in fleet.files(), "what was placed stays"
    assert len(attempts) < 40


def test_bugs_of_many_owners_stop_no_other_document(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantined_documents, "MAX_FAULTS", 3)
    fleet.commit(FILES)
    fleet.reconcile()
    owners = [f"team{number:02}" for number in range(32)]
    files = {f"{owner}/bad.yaml": deployment(f"bad-{owner}") for owner in owners}
    files |= {f"{owner}/fine.yaml": deployment(f"fine-{owner}") for owner in owners}
    fleet.commit({**files, "good.yaml": deployment("good", 3)}, hour=1)
    present = count_present(monkeypatch, len(files))
    let_resolve_fail(monkeypatch)
    faults = list_faults(fleet.reconcile(1))
    assert {fault.location.path for fault in faults if fault.location} == {f"{owner}/bad.yaml" for owner in owners}
    assert read_replicas(fleet) == 3
    assert {f"clusters/ash/default/deployment-fine-{owner}.yaml" for owner in owners} <= fleet.files().keys()
    assert sum(present) < 30 * len(files), "the documents of all attempts together"


def test_an_owner_with_many_bugs_among_many_owners_is_left_out(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantined_documents, "MAX_FAULTS", 3)
    fleet.commit(FILES)
    fleet.reconcile()
    files = {f"{owner}/{number}.yaml": deployment(f"bad-{owner}-{number}") for owner in "abcd" for number in range(8)}
    fleet.commit({**files, "e/fine.yaml": deployment("fine"), "good.yaml": deployment("good", 3)}, hour=1)
    let_resolve_fail(monkeypatch)
    faults = list_faults(fleet.reconcile(1))
    assert [fault.location.path[0] for fault in faults if fault.location] == ["a", "b", "c", "d"]
    assert all("its 8 documents count as broken" in fault.message for fault in faults)
    assert "clusters/ash/default/deployment-fine.yaml" in fleet.files()


def count_present(monkeypatch: pytest.MonkeyPatch, size: int) -> list[int]:
    """Return a list that has the number of documents of each attempt, of `size` and those that are there already."""
    present: list[int] = []
    original = Caches.set_quarantine

    def count(caches: Caches, quarantine: Any) -> None:
        present.append(size - sum(issue is ABSENT for issues in quarantine.values() for issue in issues.values()))
        original(caches, quarantine)

    monkeypatch.setattr(Caches, "set_quarantine", count)
    return present


def count_attempts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    attempts: list[int] = []
    original = Caches.set_quarantine

    def count(caches: Caches, quarantine: Any) -> None:
        attempts.append(len(quarantine))
        original(caches, quarantine)

    monkeypatch.setattr(Caches, "set_quarantine", count)
    return attempts


def let_resolve_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the catalog fail for each of many documents, without an error that names them."""
    from gitsched.decide.catalog import KindScopes

    original = KindScopes.resolve

    def resolve(self: KindScopes, entry: Any) -> Any:
        if entry.name.startswith("bad") and not entry.broken:
            raise RuntimeError("secret")
        return original(self, entry)

    monkeypatch.setattr(KindScopes, "resolve", resolve)
