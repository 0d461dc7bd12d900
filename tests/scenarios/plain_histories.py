"""A repository of plain manifests for many teams, and random commits of the kinds that people make most."""

from __future__ import annotations

from random import Random

Files = dict[str, str | bytes | None]

TEAMS = ("blue", "green", "red")
CLUSTERS = ("ams", "ber", "cph", "dub", "edi")
LANES = ("one", "two")
ZONES = ("east", "west")
CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: %s, labels: {zone: %s, rank: '%d'}}
spec: {syncMode: Pull%s}
"""
TAINT = ", taints: [{key: drain, effect: %s}]"
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: %s}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {lane: %s}}}
  - {apiVersion: v1, kind: Service, labelSelector: {matchLabels: {lane: %s}}}
  - {apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {lane: %s}}}
  placement:
    clusterAffinity: {labelSelector: {matchLabels: {zone: %s}}}
    replicaScheduling: {replicaSchedulingType: %s}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %(name)s, namespace: %(team)s, labels: {lane: %(lane)s}}
spec:
  replicas: %(number)d
  selector: {matchLabels: {app: %(name)s}}
  template:
    metadata: {labels: {app: %(name)s}}
    spec:
      containers: [{name: app, image: app:%(number)d%(more)s}]
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: %(name)s, namespace: %(team)s, labels: {lane: %(lane)s}}
spec: {selector: {app: %(name)s}, ports: [{port: %(number)d}]}
"""
SETTINGS_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: %(name)s, namespace: %(team)s, labels: {lane: %(lane)s}}
data: {number: '%(number)d'}
"""
SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  output: {overlap: 0s}
  guard: {fleet: {removed: 100, moved: 100, replicasLost: 100, replicasAdded: 1000}, namespace: {removed: 100}, cluster: {removed: 100}}
"""
READER = ", envFrom: [{configMapRef: {name: %s}}]"


class PlainHistory:
    """The current content of a repository, one file for each object at first. `kinds` counts the commits of each kind."""

    def __init__(self, dice: Random, *, lenient: bool = False) -> None:
        self._dice, self._next = dice, 0
        self.files: Files = {f"clusters/{name}.yaml": self._write_cluster(name) for name in CLUSTERS[:-1]}
        self.files |= {f"policies/{lane}.yaml": self._write_policy(lane) for lane in LANES}
        self.files["README.md"] = "fleet"
        if lenient or self._dice.random() < 0.7:
            self.files["gitsched.yaml"] = SETTINGS
        for team in TEAMS:
            for lane in LANES:
                self.files |= self._add(team, lane)
        self.kind = ""

    def _write_cluster(self, name: str) -> str:
        taint = TAINT % self._dice.choice(("NoSchedule", "NoExecute")) if self._dice.random() < 0.1 else ""
        zone = self._dice.choice(ZONES) if self._dice.random() < 0.2 else ZONES[CLUSTERS.index(name) % 2]
        return CLUSTER % (name, zone, self._dice.randrange(3), taint)

    def _write_policy(self, lane: str) -> str:
        kind = self._dice.choice(("Duplicated", "Divided"))
        zone = self._dice.choice((*ZONES, *ZONES, *ZONES, "north"))
        return POLICY % (lane, lane, lane, lane, zone, kind)

    def _add(self, team: str, lane: str) -> Files:
        """Return an application: a Deployment, often with a Service and a ConfigMap that it reads."""
        self._next += 1
        values = {"name": f"app{self._next}", "team": team, "lane": lane, "number": self._dice.randrange(1, 9), "more": ""}
        files: Files = {}
        if self._dice.random() < 0.6:
            files[f"{team}/app{self._next}-service.yaml"] = SERVICE % values
        if self._dice.random() < 0.5:
            files[f"{team}/app{self._next}-config.yaml"] = SETTINGS_MAP % values
            values["more"] = READER % values["name"]
        return {f"{team}/app{self._next}.yaml": DEPLOYMENT % values, **files}

    def _list_apps(self) -> list[str]:
        return sorted(path for path, text in self.files.items() if text and path.startswith(TEAMS))

    def go_on(self, kind: str = "") -> Files:
        """Return the changes of the next commit, of a kind if one is given."""
        dice, apps = self._dice, self._list_apps()
        path = dice.choice(apps) if apps else "blue/none.yaml"
        text = str(self.files.get(path) or "")
        other = f"{dice.choice(TEAMS)}/moved{dice.randrange(99)}.yaml"
        stem = path.split("-")[0].removesuffix(".yaml")
        together = [one for one in apps if one.split("-")[0].removesuffix(".yaml") == stem]
        cluster, lane = dice.choice(CLUSTERS), dice.choice(LANES)
        changes: dict[str, Files] = {
            "add": self._add(dice.choice(TEAMS), lane),
            "add one": dict(list(self._add(dice.choice(TEAMS), lane).items())[:1]),
            "remove": dict.fromkeys(together),
            "remove one": {path: None},
            "move": {path: None, other: text},
            "rename": {path: text.replace(f"name: {stem.partition('/')[2]},", f"name: renamed{dice.randrange(99)},")},
            "edit": {path: text.replace("replicas: ", "replicas: 1")},
            "relabel": {
                one: str(self.files[one]).replace(f"lane: {LANES[0]}", f"lane: {dice.choice((*LANES, 'none'))}") for one in together
            },
            "merge": {path: None, other: f"{text}---\n{self.files.get(together[-1])}", together[-1]: None} if together else {},
            "policy": {f"policies/{lane}.yaml": self._write_policy(lane)},
            "cluster": {f"clusters/{cluster}.yaml": self._write_cluster(cluster)},
            "cluster gone": {f"clusters/{CLUSTERS[-1]}.yaml": dice.choice((None, self._write_cluster(CLUSTERS[-1])))},
            "policy gone": {f"policies/{lane}.yaml": dice.choice((None, self._write_policy(lane), self._write_policy(lane)))},
            "several": {
                f"clusters/{cluster}.yaml": self._write_cluster(cluster),
                f"policies/{lane}.yaml": self._write_policy(lane),
                path: None,
                **self._add(dice.choice(TEAMS), lane),
            },
            "nothing": {"README.md": f"fleet {dice.randrange(9)}"},
        }
        self.kind = kind or dice.choice([name for name in changes if changes[name]])
        found = {name: body for name, body in changes[self.kind].items() if body is not None or self.files.get(name) is not None}
        self.files |= found
        return found
