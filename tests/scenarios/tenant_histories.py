"""Repositories of tenants, with random commits: most keep to the rules of the Tenants, and some do not."""

from __future__ import annotations

from random import Random

from tests.scenarios.plain_histories import CLUSTERS, LANES, TEAMS, ZONES, Files, PlainHistory

TENANT = """\
apiVersion: gitsched.io/v1alpha1
kind: Tenant
metadata: {name: %s}
spec:
  paths: [%s]
  namespaces: [%s, %s-*]
  clusterKinds: [{kind: Namespace, names: [%s, %s-*]}]
%s"""
RULES = {
    "blue": "",
    "green": "  clusters: {names: [ams, ber, cph]}\n  limits: {replicas: %d}\n",
    "red": "  clusters: {matchLabels: {zone: east}}\n  policies: Cluster\n  priorityClasses: [system-*]\n",
}
OWN_POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s, namespace: %s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {lane: %s}}}]
  placement: {clusterAffinity: {clusterNames: [%s]}, replicaScheduling: {replicaSchedulingType: %s}}
"""
OVERRIDE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: image, namespace: %s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules:
  - targetCluster: {clusterNames: [%s]}
    overriders: {imageOverrider: [{component: Registry, operator: add, value: mirror%d.example.net}]}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {number: '%d'}}\n"
ALLOWED = {"blue": CLUSTERS[:4], "green": CLUSTERS[:3], "red": ("ams", "cph")}
KEPT_RULES = ("own policy", "add", "cluster")
"""Kinds of commits that keep to the rules, each of which is planned from the state of the last run."""
BREAKING = ("foreign", "forbidden", "tenant", "platform's", "priority", "too many", "merge", "move", "rename")
PRIORITY = "  schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: system-node-critical}\n"


class TenantHistory(PlainHistory):
    """A history in which each team is a tenant, with policies and Namespaces of its own."""

    def __init__(self, dice: Random, *, lenient: bool = False, overlap: str = "0s", limit: int = 300) -> None:
        super().__init__(dice, lenient=lenient, overlap=overlap)
        self._limit, self._kept = limit, dict[str, str | bytes | None]()
        for team in TEAMS:
            self.files[f"tenants/{team}.yaml"] = self._write_tenant(team)
            self.files[f"{team}/own.yaml"] = self._write_own_policy(team)
            self.files[f"{team}/space.yaml"] = NAMESPACE % (team, 1)

    def _write_cluster(self, name: str) -> str:
        text = super()._write_cluster(name)
        if self._dice.random() < 0.9:  # else a Tenant may lose a cluster
            zone = ZONES[CLUSTERS.index(name) % 2]
            text = text.replace("zone: east", f"zone: {zone}").replace("zone: west", f"zone: {zone}")
        return text

    def _write_tenant(self, team: str) -> str:
        rules = RULES[team] % self._limit if "%d" in RULES[team] else RULES[team]
        return TENANT % (team, team, team, team, team, team, rules)

    def _write_own_policy(self, team: str) -> str:
        dice = self._dice
        names = dice.sample(ALLOWED[team], dice.randrange(1, 3))
        return OWN_POLICY % ("own", team, dice.choice(LANES), ", ".join(names), dice.choice(("Duplicated", "Divided")))

    def _list_apps(self) -> list[str]:
        return [path for path in super()._list_apps() if path.rpartition("/")[2].startswith(("app", "moved"))]

    def go_on(self, kind: str = "") -> Files:
        """Return the changes of the next commit. One that breaks a rule is often taken back by the next one."""
        broken = {path: text for path, text in self._kept.items() if self.files.get(path) != text}
        if broken and not kind and self._dice.random() < 0.7:
            self._kept, self.kind = {}, "correction"
            self.files |= broken
            return broken
        before = dict(self.files)
        found = super().go_on(kind)
        self._kept = {path: before.get(path) for path in found} if self.kind in BREAKING else {}
        return found

    def list_changes(self, path: str) -> dict[str, Files]:
        dice, changes = self._dice, super().list_changes(path)
        team, other = dice.sample(TEAMS, 2)
        text = str(self.files.get(path) or "")
        return changes | {
            "own policy": {f"{team}/own.yaml": self._write_own_policy(team)},
            "own policy gone": {f"{team}/own.yaml": dice.choice((None, self._write_own_policy(team)))},
            "override": {
                f"{team}/image.yaml": dice.choice((None, OVERRIDE % (team, dice.choice(ALLOWED[team]), dice.randrange(3))))
            },
            "own namespace": {f"{team}/space.yaml": NAMESPACE % (team, dice.randrange(9))},
            "other space": {f"{team}/space-{dice.randrange(2)}.yaml": dice.choice((None, NAMESPACE % (f"{team}-more", 1)))},
            "foreign": {f"{team}/foreign.yaml": dice.choice((None, None, text))},
            "forbidden": {f"{team}/own.yaml": OWN_POLICY % ("own", team, LANES[0], "dub", "Duplicated")},
            "tenant": {
                f"tenants/{team}.yaml": self._write_tenant(team).replace("policies: Cluster", dice.choice(("policies: None", "")))
            },
            "tenant comment": {f"tenants/{team}.yaml": f"# {dice.randrange(99)}\n{self._write_tenant(team)}"},
            "platform's": {f"{team}-more.yaml": dice.choice((None, text.replace(f"namespace: {team}", f"namespace: {other}")))},
            "priority": {f"{team}/own.yaml": f"{self._write_own_policy(team)}{PRIORITY}"},
            "too many": {path: text.replace("replicas: ", "replicas: 9")},
        }
