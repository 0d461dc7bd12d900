"""Repositories in which every feature may meet every other one, and random commits to them.

A history is drawn at once, as a list of steps that do not depend on what gitsched makes of them: so it can be played again in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tests.scenarios.conftest import deployment, policy
from tests.scenarios.coupled_histories import CoupledHistory
from tests.scenarios.facts_histories import FactsHistory, format_hour
from tests.scenarios.histories import WORKLOADS, Files, History, settings_of
from tests.scenarios.plain_histories import PlainHistory
from tests.scenarios.scarce_histories import ScarceHistory
from tests.scenarios.source_histories import SourceHistory
from tests.scenarios.tenant_histories import TenantHistory
from tests.scenarios.test_application_failover import RULES as FAILOVER
from tests.scenarios.test_waves import rollout

HEAD = "@HEAD@"
"""What stands for the head of the output branch in the files of a step."""
Branches = dict[str, Files | None]
Settings = dict[str, dict[str, str]]


class Step(NamedTuple):
    """A commit, and the run after it. `seed` draws what the caches go through, and what is looked at."""

    hour: float
    now: float
    files: Files
    branches: Branches
    message: str
    allowed: bool
    seed: float


class Part:
    """A part of the repository: its first files, and the changes of a commit to it."""

    def __init__(self, files: Files, go_on: Callable[[float], Files], settings: Settings | None = None) -> None:
        self.files, self.go_on, self.settings = files, go_on, settings or {}
        self.move: Callable[[float], Branches] | None = None


class Recorder:
    """Takes the place of a fleet, and keeps what is committed."""

    def __init__(self) -> None:
        self.files: Files = {}

    def commit(self, files: Files, hour: float = 0) -> None:
        self.files = dict(files)


GUARDS = (
    {
        "fleet": "{removed: 100, moved: 100, replicasLost: 100, replicasAdded: 100000}",
        "namespace": "{removed: 100}",
        "cluster": "{removed: 100}",
    },
    {"fleet": "{removed: 20, moved: 40}", "namespace": "{removed: 100}"},
    {"fleet": "{removed: 5, moved: 10, replicasLost: 60}", "namespace": "{removed: 50}", "cluster": "{removed: 40}"},
    {},
)
COUPLED: Settings = {
    "karmada": {
        "quotaEnforcement": "true",
        "spread": "strict",
        "featureGates": "{WorkloadAffinity: true, MultiplePodTemplatesScheduling: true}",
    }
}
SETTINGS: dict[tuple[str, str], tuple[str, ...]] = {
    ("output", "overlap"): ("", "0s", "10m", "1h"),
    ("output", "retireAfter"): ("", "0s", "20m", "3h"),
    ("output", "commitSubject"): ("", "Placements", "More"),
    ("karmada", "failback"): ("", "Never", "OnRebalance", "{AfterStabilization: 30m}"),
    ("karmada", "autoscalerLimits"): ("", "divide"),
    ("karmada", "preserveOnMove"): ("", "", "true"),
    ("karmada", "preemption"): ("", "", "true"),
    ("karmada", "taintEviction"): ("", "", "true"),
    ("guard", "freeze"): ("", "", "", "", "audit"),
    ("", "followTargets"): ("", "true", "false"),
    ("", "assumed"): ("", "[{kind: Secret, name: key}]", "[{kind: ConfigMap, name: conf}, {kind: Secret, name: token}]"),
    ("", "kinds"): ("", "[{apiVersion: example.com/v1, kind: Tenant, scope: Cluster}]"),
}
"""The values that settings may have, "" for the default."""


class SettingsPart:
    """gitsched.yaml, with what the parts need and what they do not."""

    def __init__(self, dice: Random, needed: Settings) -> None:
        self._dice, self._needed, self._guard = dice, needed, dice.choice(GUARDS)
        self._chosen = {key: dice.choice(values) for key, values in SETTINGS.items() if dice.random() < 0.4}
        self.files: Files = {"gitsched.yaml": self._write()}

    def _write(self) -> str:
        sections: Settings = {"guard": dict(self._guard)}
        for section, values in self._needed.items():
            sections.setdefault(section, {}).update(values)
        for (section, name), value in self._chosen.items():
            if value and name not in self._needed.get(section, {}):
                sections.setdefault(section, {})[name] = value
        text = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"
        for section, values in sections.items():
            lines = "".join(f"{'    ' if section else '  '}{name}: {value}\n" for name, value in values.items())
            text += (f"  {section}:\n" if section else "") + lines if lines else ""
        return text if text.splitlines()[-1] != "spec:" else text.replace("spec:", "spec: {}")

    def go_on(self, _hour: float) -> Files:
        dice = self._dice
        chance = dice.random()
        if chance < 0.1:
            return {"gitsched.yaml": dice.choice(("kind: Nothing\n", f"{self._write()}  [\n"))}
        if chance < 0.2:
            return {"gitsched.yaml": f"# {dice.randrange(9)}\n{self._write()}"}
        if chance < 0.4:
            self._guard = dice.choice(GUARDS)
        else:
            key = dice.choice(sorted(SETTINGS))
            self._chosen[key] = dice.choice(SETTINGS[key])
        return {"gitsched.yaml": self._write()}


def start_karmada(dice: Random) -> Part:
    """Return workloads with dependencies, priorities, overrides, data, companions and rebalancers, often with other APIs."""
    apis = tuple(
        api for api, chance in (("ocm", 0.5), ("knative", 0.25), ("krake", 0.25), ("tenants", 0.12)) if dice.random() < chance
    )
    history = History(dice, apis)
    return Part(dict(history.files), lambda _: history.go_on(0.6), {"karmada": {}})


def start_coupled(dice: Random) -> Part:
    """Return workloads that share capacity, quotas and groups."""
    recorder: Any = Recorder()
    history = CoupledHistory(recorder, dice.randrange(10**6))

    def go_on(_hour: float) -> Files:
        history.step()
        return dict(recorder.files)

    return Part(dict(recorder.files), go_on, COUPLED)


def start_scarce(dice: Random) -> Part:
    """Return workloads that want more capacity than there is, which the guard withholds."""
    history = ScarceHistory(dice)
    return Part(dict(history.files), lambda _: history.go_on(), {"karmada": {}})


def start_teams(dice: Random) -> Part:
    """Return plain manifests of teams: with Tenants, files that are broken, listed or defined twice, objects that are missing, or facts."""
    knative: Settings = {"knative": {"capacity": "4", "cluster": "events"}}
    kind = dice.choice(("plain", "lacking", "apis", "sources", "sources", "tenants", "tenants", "facts", "facts"))
    if kind == "facts":
        return start_facts(dice)
    history: PlainHistory
    settings: Settings = {}
    if kind == "tenants":
        history = TenantHistory(dice, lenient=True, limit=dice.choice((30, 300)))
    elif kind == "sources":
        features = [name for name in SourceHistory.features if name != "paths" and dice.random() < 0.4]
        history = SourceHistory(dice, *features)
        settings = {"source": {"ignore": "[docs, '*-old.yaml']"}} if "settings ignore" in features else {}
    elif kind == "apis":
        history, settings = PlainHistory(dice, lenient=True, apis=("krake", "knative")), knative
    else:
        history = PlainHistory(dice, lenient=True, lacking=kind == "lacking", rebalances=True)
    return Part(dict(history.files), lambda _: history.go_on(), settings)


def start_facts(dice: Random) -> Part:
    """Return plain manifests of teams whose clusters have facts on branches."""
    history = FactsHistory(dice, apis=dice.choice(((), (), ("ocm",))))
    stale = dice.choice(("keep", "noNewPlacements", "evict"))
    settings: Settings = {
        "source": {"facts": f'{{branch: facts, clusterBranches: "facts-{{cluster}}", staleAfter: 2h, stale: {stale}}}'}
    }
    part = Part(dict(history.files), lambda _: history.go_on(), settings)

    def move(hour: float) -> Branches:
        if not history.branches:
            history.observe(hour)
            return dict(history.branches)
        return history.move_facts(hour)

    part.move = move
    return part


BUNDLE = """\
apiVersion: gitsched.io/v1alpha1
kind: Bundle
metadata: {name: shop, namespace: default}
spec:
%s
"""
BUNDLES = (
    "  path: parts/%s",
    "  path: parts/%s\n  values: {region: cluster.labels.region}",
    "  variants: [{path: parts/%s, clusters: {names: [first]}}, {path: parts/base, clusters: {names: [second, third, ams]}}]",
    "  variants: [{path: parts/%s, clusters: {matchLabels: {zone: east}}}]",
    "  path: parts/chart\n  helm: {namespace: default, values: {tag: %r}}",
)
CHART: Files = {
    "parts/chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    "parts/chart/values.yaml": "tag: one\n",
    "parts/chart/templates/map.yaml": settings_of("charted", 1).replace("'1'", "{{ .Values.tag | quote }}"),
}


def start_builds(dice: Random) -> Part:
    """Return Bundles, charts and kustomizations that are built."""
    selecting = policy("", name="bundles", kind="Bundle").replace("apps/v1", "gitsched.io/v1alpha1")

    def list_built(*names: str) -> str:
        more = dice.choice(("", "namePrefix: x-\n", "images: [{name: i, newTag: v2}]\n", "commonAnnotations: {a: b}\n"))
        return f"namespace: built\n{more}resources:\n" + "".join(f"- {name}.yaml\n" for name in names)

    def write(name: str) -> str:
        text = deployment(name, dice.randrange(1, 9), dice.choice(("built", "default")))
        return dice.choice((text, text, text, f"{text}  [\n"))

    def bundle() -> str:
        text = dice.choice(BUNDLES)
        return BUNDLE % (text % dice.choice(("base", "over", "none")))

    files: Files = {
        "parts/base/kustomization.yaml": "namespace: default\nresources: [web.yaml]\n",
        "parts/base/web.yaml": deployment("part"),
        "parts/over/kustomization.yaml": "resources: [../base]\nnamePrefix: over-\n",
        "built/app/kustomization.yaml": list_built("one"),
        "built/app/one.yaml": deployment("one", 2, "built"),
        "bundle.yaml": BUNDLE % (BUNDLES[0] % "base"),
        "policies/bundles.yaml": selecting,
        "policies/built.yaml": policy("", name="built").replace("namespace: default", "namespace: built"),
    } | (CHART if dice.random() < 0.3 else {})

    def go_on(_hour: float) -> Files:
        chosen = policy(dice.choice(("", "first", "first,second", "ams")), name="bundles", kind="Bundle")
        changes: tuple[Files, ...] = (
            {"bundle.yaml": dice.choice((None, bundle(), bundle(), bundle()))},
            {"bundle.yaml": dice.choice((None, bundle(), bundle(), bundle()))},
            {"parts/base/web.yaml": dice.choice((deployment("part", dice.randrange(1, 9)), deployment("other"), "a: [\n"))},
            {"parts/over/kustomization.yaml": f"resources: [../base]\nnamePrefix: {dice.choice(('a-', 'over-'))}\n"},
            {"policies/bundles.yaml": dice.choice((None, *[chosen.replace("apps/v1", "gitsched.io/v1alpha1")] * 3))},
            {"built/app/one.yaml": write("one")},
            {"built/app/two.yaml": write("two"), "built/app/kustomization.yaml": list_built("one", "two")},
            {"built/app/kustomization.yaml": list_built(*dice.choice((("one",), ("one", "two"), ("missing",))))},
            {"built/more/kustomization.yaml": dice.choice((None, "namespace: more\nresources: [../app]\n"))},
            dict(CHART),
        )
        return dice.choice(changes)

    return Part(files, go_on, {"source": {"kustomize": "{build: [built/*]}"}})


REPORT = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterReport
metadata: {name: %s}
spec: {appliedCommit: "%s", health: %s, since: "%s"}
"""
STRATEGIES = (
    "{type: All}",
    "{type: Progressive, progressive: {maxConcurrency: 1}}",
    "{type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 10m}}",
    "{type: ProgressivePerGroup, progressivePerGroup: {progressDeadline: 2h}}",
    "{type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: canary}], progressDeadline: 1h}}",
)
SELECTED = (
    "[{apiVersion: apps/v1, kind: Deployment}]",
    "[{apiVersion: apps/v1, kind: Deployment, namespace: default}]",
    "[{apiVersion: apps/v1, kind: Deployment, name: web}]",
    "[{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, name: all}]",
    "[{apiVersion: v1, kind: ConfigMap}]",
    "[{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}]",
)
REPORTING = ("first", "second", "third", "ams", "ber", "cloud", "more", "prem", "ash")


def start_rollouts(dice: Random) -> Part:
    """Return a Rollout, and reports of clusters."""

    def write(name: str) -> str:
        text = rollout(dice.choice(STRATEGIES), dice.choice(SELECTED)).replace("name: waves", f"name: {name}")
        return text.replace(
            "matchLabels: {stage: canary}", dice.choice(("matchLabels: {stage: canary}", "matchLabels: {zone: east}"))
        )

    def go_on(hour: float) -> Files:
        name = dice.choice(("waves", "waves", "other"))
        reports = {
            f"reports/{one}.yaml": REPORT
            % (one, dice.choice((HEAD, HEAD, "a" * 40)), dice.choice(("Healthy", "Healthy", "Degraded")), format_hour(hour))
            for one in dice.sample(REPORTING, dice.choice((1, 3, 9)))
        }
        return dice.choice(
            (reports, reports, {f"rollouts/{name}.yaml": dice.choice((None, write(name), write(name), "kind: Rollout\n"))})
        )

    return Part({"rollouts/waves.yaml": write("waves")} if dice.random() < 0.6 else {}, go_on)


RENAMED = "  namespace: default\n  annotations: {{gitsched.io/renamed-from: {}}}\n"
HEALTH = """\
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: %s-deployment, namespace: default}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: %s}
status:
  aggregatedStatus: [{clusterName: %s, health: %s, status: {position: at-17}}]
"""


def start_moves(dice: Random) -> Part:
    """Return what moves workloads otherwise: new names, health reports, failover, policies of the cluster scope, whole directories."""

    def go_on(_hour: float) -> Files:
        name, number = dice.choice(WORKLOADS), dice.randrange(1, 5)
        former = dice.choice((f"default/{name}", f"Deployment/default/{name}", "default/absent"))
        renamed = deployment(f"new{number}").replace("  namespace: default\n", RENAMED.format(former))
        cluster = dice.choice(("first", "second", "third"))
        groups = dice.choice((("first", "second"), ("third", "first"), ("second,third", "first")))
        failing = policy(*groups, more=FAILOVER % dice.choice(("Gracefully", "Immediately", "Never")))
        health = HEALTH % (name, name, cluster, dice.choice(("Healthy", "Unhealthy", "Unknown")))
        whole = failing.replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy").replace("  namespace: default\n", "")
        changes: tuple[Files, ...] = (
            {f"apps/{name}.yaml": None, f"apps/new{number}.yaml": renamed},
            {f"apps/new{number}.yaml": renamed},
            {f"apps/new{number}.yaml": None},
            {f"health/{name}.yaml": dice.choice((None, health, health, health))},
            {f"health/{name}.yaml": health, "policies/all.yaml": failing},
            {"policies/whole.yaml": dice.choice((None, whole.replace("name: all", "name: whole")))},
            {f"apps/{one}.yaml": None for one in dice.sample(WORKLOADS, 3)},
            {f"clusters/{one}.yaml": None for one in dice.sample(("first", "second", "third"), dice.choice((1, 2, 3)))},
        )
        return dice.choice(changes)

    return Part({}, go_on)


FLEETS = (start_karmada, start_coupled, start_teams, start_scarce)
MORE = {start_builds: 0.12, start_rollouts: 0.3, start_moves: 0.5}
"""What may be added to fleets, with its chance."""


def draw_history(seed: int, length: int) -> list[Step]:
    """Return the steps of a history. The files of all parts are in one repository."""
    dice = Random(seed)
    fleets = dice.choices(FLEETS, weights=(5, 2, 4, 2), k=dice.choice((1, 1, 1, 2)))
    more = [start for start, chance in MORE.items() if dice.random() < chance]
    parts = [start(dice) for start in dict.fromkeys((*fleets, *more))]
    needed: Settings = {}
    for part in parts:
        for section, values in part.settings.items():
            needed.setdefault(section, {}).update(values)
    settings = SettingsPart(dice, needed)
    files: Files = {}
    for one in (*parts, settings):
        files |= one.files
    files |= settings.files
    files = {path: text for path, text in files.items() if text is not None}
    known, hour, small, approves = dict(files), 0.0, dice.choice((0.3, 0.6, 0.9)), dice.choice((0.6, 0.6, 0.1))
    moving = [part.move for part in parts if part.move is not None]
    steps = [
        Step(0, 0, dict(files), {name: texts for move in moving for name, texts in move(0).items()}, "Start", False, dice.random())
    ]
    while len(steps) < length:
        hour += dice.choice((0, 0.1, 0.1, 0.6, 2, 30) if dice.random() < 0.3 else (0, 0.1, 0.1, 0.6))
        changes: Files = {}
        for _ in range(dice.choice((1, 1, 1, 2, 3)) if dice.random() > small / 2 else 1):
            part = settings if dice.random() < 0.06 else dice.choice(parts)
            changes |= {path: text for path, text in part.go_on(hour).items() if path != "gitsched.yaml" or part is settings}
        if dice.random() < 0.08:
            changes = {}
        changes = {path: text for path, text in changes.items() if text is not None or known.get(path) is not None}
        known |= changes
        branches = {name: texts for move in moving if dice.random() < 0.4 for name, texts in move(hour).items()}
        message = "Change" if dice.random() > 0.05 else "Change\n\nGitsched-Release: default/store"
        now = hour + dice.choice((0, 0, 0, 0.3, 0.7))
        steps.append(
            Step(hour + dice.choice((0, 0, 0, -1, 3)), now, changes, branches, message, dice.random() < approves, dice.random())
        )
        hour = now
    return steps
