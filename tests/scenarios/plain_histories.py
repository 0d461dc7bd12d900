"""A repository of plain manifests for many teams, and random commits of the kinds that people make most."""

from __future__ import annotations

from random import Random

from tests.builders.knative import adapter, node, pods, source

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
  - {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, labelSelector: {matchLabels: {lane: %s}}}
  - {apiVersion: external-secrets.io/v1, kind: ExternalSecret, labelSelector: {matchLabels: {lane: %s}}}
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
  output: {overlap: %(overlap)s%(output)s}
  assumed: [{kind: Secret, name: known%(assumed)s}]
  guard:%(freeze)s
    fleet: {removed: %(removed)d, moved: %(moved)d, replicasLost: %(lost)d, replicasAdded: 1000}
    namespace: {removed: 99}
    cluster: {removed: 100}
%(more)s"""
REBALANCER = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again%d}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, name: %s, namespace: %s}]}
"""
SCOPE = "  kinds: [{apiVersion: example.com/v1, kind: Thing, scope: %s}]\n"
VREPLICAS = "  knative: {capacity: 4, cluster: events, autoscaler: {attemptScaleDown: true}}\n"
PLAIN = {"freeze": "", "output": "", "assumed": "", "lost": 100, "removed": 100, "moved": 100, "overlap": "0s", "more": ""}
STRICT = {"removed": 5, "moved": 10, "lost": 60}
"""Limits of the guard that many random commits exceed."""
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata: {name: %s, labels: {%s: '%d'}}
"""
SCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %(name)s, namespace: %(team)s, labels: {lane: %(lane)s}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %(name)s}
  minReplicas: 1
  maxReplicas: %(number)d
"""
APPLICATION = """\
api: kubernetes
kind: Application
metadata: {name: %(name)s, namespace: tenant}
spec:
  constraints: {cluster: {labels: [region is %(region)s]}}
  manifest:
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: %(name)s, namespace: %(team)s}, spec: {replicas: %(number)d%(more)s}}
  - {apiVersion: v1, kind: %(kind)s, metadata: {name: %(other)s, namespace: %(team)s}%(spec)s}
"""
REGIONS = ("north", "south")
SITES = ("bay", "cape", "delta")
SITE = """\
api: kubernetes
kind: Cluster
metadata: {name: %s, namespace: tenant, labels: {region: %s}}
spec:
  kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}
  metrics: [{name: load, weight: %s, namespaced: true}]
status: {state: %s}
"""
METRIC = """\
api: core
kind: Metric
metadata: {name: load, namespace: tenant}
spec: {min: 0, max: 10, allowed_values: [], provider: {name: fixed, metric: load}}
---
api: core
kind: MetricsProvider
metadata: {name: fixed, namespace: tenant}
spec: {type: static, static: {metrics: {load: %d}}}
"""
OBSERVED_METRIC = """\
api: core
kind: Metric
metadata: {name: load, namespace: tenant}
spec: {min: 0, max: 10, allowed_values: [], provider: {name: server, metric: load}}
---
api: core
kind: MetricsProvider
metadata: {name: server, namespace: tenant}
spec: {type: prometheus, prometheus: {url: "http://127.0.0.1:9"}}
"""
SCHEDULER_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: config-kafka-scheduler, namespace: knative-eventing}
data: {}
"""
CONSUMERS = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %s, namespace: shop}
spec: {scaleTargetRef: {apiVersion: sources.knative.dev/v1beta1, kind: KafkaSource, name: %s}, maxReplicas: 9}
status: {desiredReplicas: %d}
"""
SETTINGS_READER = ", template: {spec: {containers: [{name: c, image: i}], volumes: [{name: settings, configMap: {name: %s}}]}}"
READER = ", envFrom: [{configMapRef: {name: %s}}]"
CLIENT = ", envFrom: [{secretRef: {name: %s, optional: %s}}]"
MENTION = ", args: [--secret=%s]"
LACKING = ("key", "token", "app1", "known")
"""Secrets that the repository does not have; it assumes that clusters have the last one."""
WRITER = """\
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: from-%(name)s, namespace: %(team)s, labels: {lane: %(lane)s}}
spec:
  secretStoreRef: {name: vault, kind: ClusterSecretStore}
  target: {name: %(name)s}
  data: [{secretKey: a, remoteRef: {key: %(number)d}}]
"""


def write_policy(lane: str, zone: str, kind: str) -> str:
    """Return a policy for all applications of a lane, in the clusters of a zone."""
    return POLICY % (lane, lane, lane, lane, lane, lane, zone, kind)


class PlainHistory:
    """The current content of a repository, one file for each object at first. `kinds` counts the commits of each kind."""

    def __init__(
        self,
        dice: Random,
        *,
        lenient: bool = False,
        strict: bool = False,
        lacking: bool = False,
        rebalances: bool = False,
        overlap: str = "0s",
        apis: tuple[str, ...] = (),
        more: str = "",
    ) -> None:
        self._dice, self._next, self._lacking, self._rebalances = dice, 0, lacking, rebalances
        self._settings = {**PLAIN, "overlap": overlap, "more": more or (VREPLICAS if "knative" in apis else "")}
        self._settings |= STRICT if strict else {}
        self.files: Files = {f"clusters/{name}.yaml": self._write_cluster(name) for name in CLUSTERS[:-1]}
        self.files |= {f"policies/{lane}.yaml": self._write_policy(lane) for lane in LANES}
        self.files["README.md"] = "fleet"
        if lenient or self._dice.random() < 0.7:
            self.files["gitsched.yaml"] = SETTINGS % self._settings
        for team in TEAMS:
            for lane in LANES:
                self.files |= self._add(team, lane)
        if lacking:
            self.files["writers/seal-blue.yaml"] = WRITER % {"name": "seal", "team": "blue", "lane": LANES[0], "number": 1}
        if "krake" in apis:
            self.files |= {f"krake/{name}.yaml": self._write_site(name) for name in SITES[:2]}
            self.files |= {f"krake/app{number}.yaml": self._write_application(number) for number in range(2)}
            self.files["krake/metric.yaml"] = METRIC % 1
        if "knative" in apis:
            self.files |= {"knative/adapter.yaml": adapter(3), "knative/pods.yaml": pods({0: "n0", 1: "n1", 2: "n0"})}
            self.files |= {f"knative/{name}.yaml": node(name, zone) for name, zone in (("n0", "east"), ("n1", "west"))}
            self.files |= {"knative/orders.yaml": source("orders", 3), "knative/config.yaml": SCHEDULER_MAP}
        self._apis = apis
        self.kind = ""

    def _write_site(self, name: str) -> str:
        region, weight = self._dice.choice(REGIONS), self._dice.randrange(1, 4)
        return SITE % (name, region, weight, self._dice.choice(("ONLINE", "ONLINE", "ONLINE", "OFFLINE")))

    def _write_application(self, number: int) -> str:
        """Return an Application whose objects are in a namespace of its own, or in one that others use, too."""
        dice, name = self._dice, f"echo{number}"
        team = dice.choice((f"team{number}", f"team{number}", f"team{number}", "shared", "blue"))
        kind = dice.choice(("Service", "ConfigMap", "ConfigMap"))
        more = SETTINGS_READER % dice.choice((name, name, name, name, "app1", "none")) if dice.random() < 0.4 else ""
        values = {"name": name, "team": team, "region": dice.choice(REGIONS), "number": dice.randrange(1, 9), "kind": kind}
        spec = ", spec: {ports: [{port: 80}]}" if kind == "Service" else ""
        return APPLICATION % {**values, "more": more, "spec": spec, "other": dice.choice((name, name, name, "echo"))}

    def _change_knative(self) -> dict[str, Files]:
        """Return the changes of documents that Knative reads by kind."""
        dice, name = self._dice, self._dice.choice(("orders", "bills", "calls"))
        where = {number: dice.choice(("n0", "n1", "n2", None)) for number in range(dice.randrange(1, 5))}
        wish = CONSUMERS % (name, name, dice.randrange(6))
        return {
            "source": {f"knative/{name}.yaml": dice.choice((None, *[source(name, dice.randrange(7))] * 3))},
            "pods": {"knative/pods.yaml": pods(where, {0} if dice.random() < 0.2 else ())},
            "node": {"knative/n1.yaml": dice.choice((None, node("n1", dice.choice(ZONES), cordoned=dice.random() < 0.3)))},
            "adapter": {"knative/adapter.yaml": adapter(dice.randrange(1, 6))},
            "wish": {f"knative/wish-{name}.yaml": dice.choice((None, wish, wish))},
            "scheduler": {"knative/config.yaml": dice.choice((None, SCHEDULER_MAP, f"# map\n{SCHEDULER_MAP}"))},
        }

    def _change_krake(self) -> dict[str, Files]:
        """Return the changes of documents of Krake by kind."""
        dice, number, site = self._dice, self._dice.randrange(4), self._dice.choice(SITES)
        text = self._write_application(number)
        known = str(self.files.get(f"krake/app{number}.yaml") or text)
        return {
            "application": {f"krake/app{number}.yaml": dice.choice((None, text, text))},
            "application edit": {f"krake/app{number}.yaml": known.replace("replicas: ", "replicas: 1")},
            "site": {f"krake/{site}.yaml": dice.choice((None, self._write_site(site), self._write_site(site)))},
            "metric": {"krake/metric.yaml": METRIC % dice.randrange(12)},
        }

    def _write_cluster(self, name: str) -> str:
        taint = TAINT % self._dice.choice(("NoSchedule", "NoExecute")) if self._dice.random() < 0.1 else ""
        zone = self._dice.choice(ZONES) if self._dice.random() < 0.2 else ZONES[CLUSTERS.index(name) % 2]
        return CLUSTER % (name, zone, self._dice.randrange(3), taint)

    def _write_policy(self, lane: str) -> str:
        kind = self._dice.choice(("Duplicated", "Divided"))
        zone = self._dice.choice((*ZONES, *ZONES, *ZONES, "north"))
        return write_policy(lane, zone, kind)

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
        elif self._lacking:
            name = self._dice.choice((*LACKING, values["name"]))
            texts = (
                CLIENT % (name, self._dice.choice(("false", "true"))),
                CLIENT % (name, "false"),
                READER % name,
                MENTION % name,
                "",
            )
            values["more"] = self._dice.choice(texts)
        return {f"{team}/app{self._next}.yaml": DEPLOYMENT % values, **files}

    def _list_apps(self) -> list[str]:
        return sorted(path for path, text in self.files.items() if text and path.startswith(TEAMS))

    def _change_settings(self) -> Files:
        """Return another gitsched.yaml, if there is one: other comments, or a setting that concerns few things."""
        dice, known = self._dice, self.files.get("gitsched.yaml")
        subject, number = dice.randrange(9), dice.randrange(9)
        values = dice.choice(
            (
                {},
                {"output": f", commitSubject: Placements {subject}"},
                {"output": ", retireAfter: 30m"},
                {"assumed": f"}}, {{kind: {('ConfigMap', 'Service')[number % 2]}, name: app{number}"},
                *(
                    {"assumed": f"}}, {{kind: {kind}, name: {LACKING[number % 3]}"}
                    for kind in ("Secret", "ConfigMap")
                    if self._lacking
                ),
                (
                    {"lost": dice.choice((90, 99))},
                    {"freeze": "\n    freeze: audit"},
                    {"more": f"{self._settings['more']}{SCOPE % ('Cluster', 'Namespaced')[number % 2]}"},
                )[number % 3],
            )
        )
        return {"gitsched.yaml": dice.choice(("", "# settings\n")) + SETTINGS % {**self._settings, **values}} if known else {}

    def _change_namespace(self) -> Files:
        """Return a Namespace that comes, goes or has another label."""
        team, label = self._dice.choice((*TEAMS, "empty")), self._dice.choice(("team", "lane"))
        text = NAMESPACE % (team, label, self._dice.randrange(3))
        return {f"namespaces/{team}.yaml": self._dice.choice((None, text, text))}

    def _change_scaler(self, path: str) -> Files:
        """Return an autoscaler of an application that comes, goes or has another limit."""
        team, _, name = path.removesuffix(".yaml").partition("/")
        values = {"team": team, "name": name.split("-")[0], "lane": self._dice.choice(LANES), "number": self._dice.randrange(1, 9)}
        return {f"{team}/{name.split('-')[0]}-scaler.yaml": self._dice.choice((None, SCALER % values, SCALER % values))}

    def _change_rebalancer(self, path: str) -> Files:
        """Return a rebalancer that comes, goes or names another application."""
        team, _, name = path.removesuffix(".yaml").partition("/")
        text = REBALANCER % (self._dice.randrange(3), name.split("-")[0], team)
        return {"rebalancers/again.yaml": self._dice.choice((None, text, text))}

    def _change_writer(self, lane: str) -> dict[str, Files]:
        """Return an ExternalSecret that comes, goes or writes another Secret, and an application that comes with one."""
        dice, name = self._dice, self._dice.choice(LACKING)
        team, number = dice.choice(TEAMS), dice.randrange(9)
        text = WRITER % {"team": team, "lane": lane, "number": number, "name": dice.choice(LACKING)}
        own = {"team": team, "lane": lane, "number": number + 1, "name": f"own{number}", "more": CLIENT % (f"own{number}", "false")}
        return {
            "writer": {f"writers/{name}-{team}.yaml": dice.choice((None, text, text))},
            "add with writer": {f"{team}/own{number}.yaml": f"{DEPLOYMENT % own}---\n{WRITER % own}"},
        }

    def go_on(self, kind: str = "") -> Files:
        """Return the changes of the next commit, of a kind if one is given."""
        apps = self._list_apps()
        changes = self.list_changes(self._dice.choice(apps) if apps else "blue/none.yaml")
        self.kind = kind or self._dice.choice([name for name in changes if changes[name]])
        found = {name: body for name, body in changes[self.kind].items() if body is not None or self.files.get(name) is not None}
        self.files |= found
        return found

    def list_changes(self, path: str) -> dict[str, Files]:
        """Return the changes of each kind; those of one file are of the one with this path."""
        dice, apps = self._dice, self._list_apps()
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
            "settings": self._change_settings(),
            "comment": {"gitsched.yaml": f"# {dice.randrange(99)}\n{self.files['gitsched.yaml']}"}
            if "gitsched.yaml" in self.files
            else {},
            "namespace": self._change_namespace(),
            "scaler": self._change_scaler(path),
        }
        changes |= self._change_writer(lane) if self._lacking else {}
        changes |= {"rebalancer": self._change_rebalancer(path)} if self._rebalances else {}
        changes |= self._change_krake() if "krake" in self._apis else {}
        changes |= self._change_knative() if "knative" in self._apis else {}
        return changes
