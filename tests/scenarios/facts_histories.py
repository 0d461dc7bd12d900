"""A repository whose clusters have facts on branches of their own, and random commits to the source and to these branches."""

from __future__ import annotations

from random import Random

import pygit2

from tests.scenarios.conftest import Fleet, at_hour
from tests.scenarios.histories import FOLLOWER, PLACEMENT
from tests.scenarios.plain_histories import CLUSTERS, LANES, Files, PlainHistory
from tests.scenarios.plain_histories import SETTINGS as PLAIN_SETTINGS
from tests.scenarios.test_rollouts import SETS, managed

SETTINGS = """\
  source: {facts: {branch: facts, clusterBranches: "facts-{cluster}", staleAfter: 2h, stale: %s}}
"""
FACTS = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterFacts
metadata: {name: %(name)s}
status:
  observedAt: "%(time)s"
  ready: {status: "%(ready)s", reason: Observed}
  kubernetesVersion: v1.34.%(version)d
  allocatable: {cpu: "16", memory: 64Gi, pods: "110"}
  allocated: {cpu: "%(used)d", memory: 4Gi, pods: "9"}
  apis: {apps/v1: [%(kind)s], v1: [ConfigMap, Service], autoscaling/v2: [HorizontalPodAutoscaler]}
"""
SCORE = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata: {name: load, namespace: %s}
status: {validUntil: "%s", scores: [{name: cpu, value: %d}]}
"""
REPORT = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterReport
metadata: {name: %s}
spec: {appliedCommit: %s, health: %s, since: "%s"}
"""
DYNAMIC = """\
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
"""
BROKEN = ("kind: [", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: foreign}\n")
SHARED = "facts"


class FactsHistory(PlainHistory):
    """The current content of a repository and of its facts branches, by branch and path."""

    def __init__(self, dice: Random, *, apis: tuple[str, ...] = ()) -> None:
        super().__init__(dice, lenient=True, overlap=dice.choice(("0s", "30m")), apis=apis)
        self._settings["more"] += SETTINGS % dice.choice(("keep", "noNewPlacements", "evict"))
        self.files["gitsched.yaml"] = PLAIN_SETTINGS % self._settings
        self.branches: dict[str, Files] = {}
        if "ocm" in apis:
            self.files |= {f"managed/{name}.yaml": managed(name, "live") for name in CLUSTERS[:3]}
            self.files |= {"managed/sets.yaml": SETS, "managed/placement.yaml": PLACEMENT % (2, 1)}
            self.files |= {f"shop/{name}.yaml": FOLLOWER % (name, "everywhere", 1) for name in ("left", "right")}

    def _write_policy(self, lane: str) -> str:
        text = super()._write_policy(lane)
        dynamic = lane == LANES[1] and self._dice.random() < 0.7
        return text[: text.index("    replicaScheduling")] + DYNAMIC if dynamic else text

    def observe(self, hour: float) -> None:
        """Write facts of all clusters but one."""
        for name in CLUSTERS[:-2]:
            self.branches[f"facts-{name}"] = {"facts.yaml": self._write_facts(name, hour)}
        self.branches[SHARED] = {"clusters/none.yaml": self._write_facts("none", hour)} if self._dice.random() < 0.5 else {}
        self.branches[SHARED] |= {"scores/load.yaml": self._write_scores(hour)} if "ocm" in self._apis else {}

    def _write_facts(self, name: str, hour: float) -> str:
        dice = self._dice
        observed = hour + dice.choice((0, 0, 0, -0.3, -1.5, 0.4))
        values = {
            "name": name,
            "time": format_hour(observed),
            "ready": dice.choice(("True", "True", "True", "False", "Unknown")),
            "version": dice.randrange(3),
            "used": dice.choice((2, 2, 2, 8, 14)),
            "kind": dice.choice(("Deployment", "Deployment", "Deployment", "StatefulSet")),
        }
        return FACTS % values

    def _write_scores(self, hour: float) -> str:
        until = format_hour(hour + self._dice.choice((0.2, 1, 3)))
        return "---\n".join(SCORE % (name, until, self._dice.randrange(100)) for name in CLUSTERS[:3] if self._dice.random() < 0.8)

    def move_facts(self, hour: float, kind: str = "") -> dict[str, Files | None]:
        """Return the branches that change, of a kind if one is given, with their new content; None for one that is removed."""
        dice, name = self._dice, self._dice.choice(CLUSTERS)
        branch, text = f"facts-{name}", self._write_facts(name, hour)
        known = self.branches.get(branch, {})
        shared = dict(self.branches.get(SHARED, {}))
        old = str(known.get("facts.yaml") or text)
        changes: dict[str, dict[str, Files | None]] = {
            "observed": {branch: {"facts.yaml": text}},
            "ready": {branch: {"facts.yaml": old.replace('ready: {status: "True"', 'ready: {status: "False"')}},
            "renewed": {branch: {"facts.yaml": old.replace(old.partition('observedAt: "')[2][:20], format_hour(hour))}},
            "all": {f"facts-{one}": {"facts.yaml": self._write_facts(one, hour)} for one in CLUSTERS},
            "again": {branch: dict(known)} if known else {},
            "broken": {branch: {"facts.yaml": dice.choice((*BROKEN, text.replace('"16"', '"-16"')))}},
            "gone": {branch: None} if known else {},
            "empty": {branch: {"README.md": "none"}},
            "foreign": {branch: {**known, "other.yaml": self._write_facts(dice.choice(CLUSTERS), hour)}},
            "shared": {SHARED: {**shared, f"clusters/{name}.yaml": text}},
            "unshared": {SHARED: {path: text for path, text in shared.items() if not path.startswith("clusters/")}},
        }
        health = dice.choice(("Healthy", "Degraded"))
        changes["report"] = {branch: {**known, "report.yaml": REPORT % (name, "a" * 40, health, format_hour(hour))}}
        if "ocm" in self._apis:
            score = SCORE % (name, "2026-03-03T00:00:00Z", dice.randrange(100))
            changes |= {"scores": {SHARED: {**shared, "scores/load.yaml": self._write_scores(hour)}}}
            changes |= {"own score": {branch: {**known, "score.yaml": score}}}
        self.kind = kind or dice.choice([one for one in changes if changes[one]])
        for changed, files in changes[self.kind].items():
            if files is None:
                self.branches.pop(changed, None)
            else:
                self.branches[changed] = files
        return changes[self.kind]


def format_hour(hour: float) -> str:
    return f"{at_hour(hour):%Y-%m-%dT%H:%M:%SZ}"


def commit_branch(fleet: Fleet, branch: str, files: Files | None, hour: float) -> None:
    """Set the content of a facts branch in a new commit without a parent, or remove the branch."""
    repository, ref = fleet.repository, f"refs/heads/{branch}"
    if files is None:
        repository.references.delete(ref)
        return
    index = pygit2.Index()
    for path, text in files.items():
        data = text if isinstance(text, bytes) else str(text).encode()
        index.add(pygit2.IndexEntry(path, repository.create_blob(data), pygit2.enums.FileMode.BLOB))
    who = pygit2.Signature("agent", "agent@example.com", int(at_hour(hour).timestamp()), 0)
    oid = repository.create_commit(None, who, who, "Facts\n", index.write_tree(repository), [])
    repository.references.create(ref, oid, force=True)
