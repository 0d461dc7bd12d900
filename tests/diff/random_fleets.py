"""Random fleets of all policy APIs, random changes of them, and a way to take back what a report names, independent of the product."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

import yaml
from hypothesis import strategies as st

from gitsched.apis.gitsched.config import parse_config
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.validation import validate_document
from gitsched.model.changes import Cause
from gitsched.model.document import Key, Origin
from gitsched.model.finding import Pointer
from gitsched.model.scheduling import Outcome
from tests.builders import knative, krake, ocm
from tests.scenarios.conftest import deployment, policy

Body = dict[str, Any]
Fleet = Mapping[str, Body]
"""Documents by a path."""
NOW = datetime(2026, 3, 2, tzinfo=UTC)
CLUSTERS, APPS, TEAMS = ("c0", "c1", "c2", "c3", "c4"), ("a", "b", "c", "d"), ("blue", "red")


def parse(text: str) -> Body:
    body: Body = yaml.safe_load(text)
    return body


Choices = Mapping[str, tuple[Any, ...]]
KARMADA_CLUSTER = {
    "there": (True, True, True, False),
    "region": ("north", "south"),
    "tier": ("gold", "tin"),
    "taint": ("", "", "", "NoExecute", "NoSchedule"),
    "pods": (2, 5, 100),
}
KARMADA_POLICY = {
    "there": (True, True, True, False),
    "team": TEAMS,
    "names": (["c0", "c1"], ["c1", "c2"], ["c3", "c4"], ["c0", "c4"]),
    "tier": ("", "gold", "tin"),
    "tolerates": (False, True),
    "scheduling": ("Duplicated", "Divided"),
    "groups": (1, 1, 2),
    "priority": (0, 1),
    "most": (1, 2, 5),
    "dependencies": (False, True),
}
APP = {"there": (True, True, True, False), "team": TEAMS, "replicas": (1, 2, 5), "image": ("one", "two")}
MANAGED = {"disk": ("ssd", "hdd"), "taint": ("", "", "NoSelect"), "score": (10, 20, 90)}
PLACEMENT = {"number": (1, 2, None), "disk": ("ssd", "hdd", ""), "name": ("fast", "fast", "other")}
KRAKE_CLUSTER = {"zone": ("a", "b"), "state": ("ONLINE", "ONLINE", "OFFLINE")}
KRAKE_APP = {"zone": ("zone is a", "zone is b", "")}
KNATIVE = {"consumers": (1, 3, 5), "other": (1, 4), "replicas": (2, 3), "cordoned": (False, True), "zone": ("x", "y")}
PARAMETERS = {
    **{f"cluster/{name}": KARMADA_CLUSTER for name in CLUSTERS},
    **{f"policy/{name}": KARMADA_POLICY for name in ("p", "q", "r")},
    **{f"app/{name}": APP for name in APPS},
    **{f"managed/{name}": MANAGED for name in ("m0", "m1", "m2")},
    "placement/fast": PLACEMENT,
    **{f"krake-cluster/{name}": KRAKE_CLUSTER for name in ("k0", "k1")},
    "krake-app/echo": KRAKE_APP,
    "knative/k": KNATIVE,
}


def make_cluster(name: str, value: Body) -> Body:
    taints = [{"key": "power", "effect": value["taint"]}] if value["taint"] else []
    free = {"allocatable": {"cpu": "100", "memory": "100Gi", "pods": str(value["pods"])}, "allocated": {"pods": "0"}}
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": {"tier": value["tier"]}},
        "spec": {"syncMode": "Push", "region": value["region"], "taints": taints},
        "status": {"resourceSummary": free},
    }


def make_policy(name: str, value: Body) -> Body:
    names = [",".join(value["names"]), ""][: value["groups"]]
    body = parse(policy(*names, name=name, scheduling=value["scheduling"]))
    spec, placement = body["spec"], body["spec"]["placement"]
    spec["resourceSelectors"][0]["labelSelector"] = {"matchLabels": {"team": value["team"]}}
    spec |= {"priority": value["priority"], "propagateDeps": value["dependencies"]}
    if value["tier"]:
        placement["clusterAffinities"][0]["labelSelector"] = {"matchLabels": {"tier": value["tier"]}}
    if value["tolerates"]:
        placement["clusterTolerations"] = [{"key": "power", "operator": "Exists"}]
    placement["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": value["most"]}]
    return body


def make_app(name: str, value: Body) -> Body:
    body = parse(deployment(name, value["replicas"]))
    body["metadata"]["labels"] = {"team": value["team"]}
    container = {"name": "main", "image": value["image"], "envFrom": [{"configMapRef": {"name": "shared"}}]}
    body["spec"]["template"] = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return body


def build(parameters: Mapping[str, Body]) -> Fleet:
    """Return the documents of a fleet with workloads of all four policy APIs."""
    bodies: list[Body] = [*ocm.bound_global_set("shop"), ocm.placed_config_map("cache", "shop", "fast")]
    bodies.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared", "namespace": "default"}})
    for path, value in parameters.items():
        kind, _, name = path.partition("/")
        if not value.get("there", True):
            continue
        match kind:
            case "cluster":
                bodies.append(make_cluster(name, value))
            case "policy":
                bodies.append(make_policy(name, value))
            case "app":
                bodies.append(make_app(name, value))
            case "managed":
                taints = [ocm.taint("power")] if value["taint"] else []
                found = ocm.managed_cluster(name, labels={"disk": value["disk"]})
                bodies += [{**found, "spec": {**found["spec"], "taints": taints}}, ocm.addon_scores(name, {"cpu": value["score"]})]
            case "placement":
                wanted = {"predicates": [ocm.label_predicate(disk=value["disk"])]} if value["disk"] else {}
                bodies.append(ocm.placement(value["name"], "shop", value["number"], [ocm.add_on("cpu")], **wanted))
            case "krake-cluster":
                bodies.append(krake.cluster(name, value["state"], labels={"zone": value["zone"]}))
            case "krake-app":
                constraints = {"labels": [value["zone"]]} if value["zone"] else {}
                bodies.append(krake.application(name, constraints=constraints))
            case _:
                bodies += knative.parse(
                    knative.node("n0", value["zone"], cordoned=value["cordoned"]),
                    knative.node("n1", "y"),
                    knative.pods({0: "n0", 1: "n1", 2: "n1"}),
                    knative.adapter(value["replicas"]),
                    knative.source("one", value["consumers"]),
                    knative.source("two", value["other"]),
                    knative.settings(),
                )
    return {identify(body): body for body in bodies}


def identify(body: Body) -> str:
    metadata = body["metadata"]
    return f"{body.get('apiVersion') or body.get('api')}/{body['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"


def decide_all(fleet: Fleet, previous: Mapping[Key, Body]) -> DecisionSet:
    raw = []
    for path, body in fleet.items():
        result = validate_document(body)
        broken = any(issue.severity == "error" for issue in result.issues)
        assert not broken, result.issues
        raw.append(make_raw_document(result.body, Origin(path, path, 0, -1, 1, 1)))
    spec = next(body["spec"] for body in fleet.values() if body["kind"] == "Config")
    return decide(raw, previous, parse_config(spec), NOW, NOW)


def list_records(decided: DecisionSet) -> dict[Key, Body]:
    records = {key: body for engine in decided.engines for key, body in engine.records()}
    return {**records, **{key: body for outcome in decided.outcomes.values() for key, body in outcome.records}}


def place(outcome: Outcome | None) -> dict[str, int | None]:
    return outcome.replicas_by_cluster if outcome is not None else {}


MISSING = object()


def look_up(body: Any, pointer: Pointer) -> Any:
    for part in pointer:
        try:
            body = body[part]
        except (KeyError, IndexError):
            return MISSING
    return body


def revert(base: Fleet, head: Fleet, causes: Iterable[Cause]) -> Fleet:
    """Take back changes as a person would, by the place that the report names."""
    found = {path: copy.deepcopy(body) for path, body in head.items()}
    order = sorted(causes, key=lambda cause: repr(cause.field and cause.field.pointer), reverse=True)
    for cause in order:
        assert cause.location is not None, cause
        path = cause.location.path
        if cause.field is None:
            found.pop(path, None)
            found |= {path: base[path]} if path in base else {}
            continue
        *parents, name = cause.field.pointer
        target, value = look_up(found[path], tuple(parents)), look_up(validate_document(base[path]).body, cause.field.pointer)
        if value is MISSING:
            del target[name]
        elif isinstance(target, list) and name == len(target):
            target.append(value)
        else:
            target[name] = value
    return found


def group(causes: Iterable[Cause]) -> list[list[Cause]]:
    sets: dict[object, list[Cause]] = {}
    for cause in causes:
        sets.setdefault(cause.together or cause, []).append(cause)
    return list(sets.values())


def draw(random: Random) -> dict[str, Body]:
    return {path: {name: random.choice(values) for name, values in choices.items()} for path, choices in PARAMETERS.items()}


def make_pair(seed: int, changes: int) -> tuple[Fleet, Fleet]:
    """Return a fleet, and the same fleet with other values in some places."""
    random = Random(seed)
    before, other = draw(random), draw(random)
    places = [(path, name) for path in before for name in before[path]]
    after = {path: dict(value) for path, value in before.items()}
    for path, name in random.sample(places, changes):
        after[path][name] = other[path][name]
    return build(before), build(after)


def pairs() -> st.SearchStrategy[tuple[Fleet, Fleet]]:
    """Return pairs of fleets with up to 50 changed values."""
    return st.builds(make_pair, st.integers(0, 2**32), st.sampled_from((1, 2, 4, 10, 25, 50)))


def filled(fleet: Fleet) -> Fleet:
    """Return the documents as an API server stores them."""
    return {path: validate_document(body).body for path, body in fleet.items()}
