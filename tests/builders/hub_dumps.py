"""Pairs of dumps of a hub, made from recorded cases: the first before the real scheduler ran, the second after it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Body = dict[str, Any]
OCM_GROUP = "cluster.open-cluster-management.io"
MAX_DECISIONS = 100
"""Clusters of one PlacementDecision."""


class DumpPair(NamedTuple):
    """The objects of both dumps, and the spec of a gitsched.yaml with what the hub ran with."""

    first: list[Body]
    second: list[Body]
    settings: Body


def write_dump(path: Path, objects: Iterable[Body], form: str = "json") -> Path:
    """Write objects as `kubectl get -o yaml` or `-o json` prints them."""
    value = {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}}
    text = json.dumps(value, indent=4)
    path.write_text(
        text if form == "json" else yaml.safe_dump(json.loads(text)), encoding="utf-8"
    )  # no aliases, as in what kubectl prints
    return path


def make_pair(case: Mapping[str, Any]) -> DumpPair:
    """Return the dumps of a hub before and after a recorded case."""
    return _make_karmada_pair(case) if "bindings" in case["expect"] else _make_ocm_pair(case)


def _make_karmada_pair(case: Mapping[str, Any]) -> DumpPair:
    options = case.get("options") or {}
    settings = {"missingFacts": "strict", "taintEviction": options.get("noExecuteTaintEviction", False)}
    settings |= {name: options[name] for name in ("evictionPurgeMode", "enableEmptyWorkloadPropagation") if name in options}
    first = [*case["resources"], *(case.get("previous") or [])]
    rebalancers = {want["name"]: want for want in case["expect"].get("rebalancers") or []}
    second = [
        _finish(body, rebalancers[body["metadata"]["name"]], case["now"])
        if body.get("kind") == "WorkloadRebalancer" and body["metadata"]["name"] in rebalancers
        else body
        for body in case["resources"]
    ]
    second += [_bind(case, want) for want in case["expect"]["bindings"]]
    return DumpPair(first, second, {"karmada": settings})


def _finish(rebalancer: Body, want: Mapping[str, Any], now: str) -> Body:
    members = ("apiVersion", "kind", "namespace", "name")
    observed = [
        {
            "workload": {name: one[name] for name in members if one.get(name)},
            **{name: one[name] for name in ("result", "reason") if name in one},
        }
        for one in want["observedWorkloads"]
    ]
    return {**rebalancer, "status": {"observedWorkloads": observed, **({"finishTime": now} if want.get("finished") else {})}}


def _bind(case: Mapping[str, Any], want: Mapping[str, Any]) -> Body:
    """Return a binding as the hub has it after a case."""
    namespace, now = want.get("namespace") or "", case["now"]
    known = (body for body in case.get("previous") or [] if body["metadata"]["name"] == want["name"])
    body: Body = copy.deepcopy(next((one for one in known if (one["metadata"].get("namespace") or "") == namespace), {}))
    metadata = body.setdefault("metadata", {"name": want["name"], **({"namespace": namespace} if namespace else {})})
    body |= {"apiVersion": "work.karmada.io/v1alpha2", "kind": want["kind"]}
    spec, status = body.setdefault("spec", {}), body.setdefault("status", {})
    if "resource" not in spec:
        spec["resource"] = _find_template(case["resources"], want["name"], namespace)
    kind, *owner = (want.get("policy") or "").split("/")
    policy = _find_policy(case["resources"], kind, owner)
    annotations = metadata.setdefault("annotations", {})
    if policy is not None:
        for name in [name for name in annotations if name.endswith("propagationpolicy.karmada.io/name")]:
            del annotations[name]
        annotations[f"{kind.lower()}.karmada.io/name"] = owner[-1]
        if kind == "PropagationPolicy":
            annotations["propagationpolicy.karmada.io/namespace"] = owner[0]
        spec["placement"] = copy.deepcopy(policy["spec"].get("placement") or {})
        spec["schedulerName"] = policy["spec"].get("schedulerName") or "default-scheduler"
    spec["clusters"] = want.get("clusters") or []
    if "specReplicas" in want:
        spec["replicas"] = want["specReplicas"]
    else:
        spec.pop("replicas", None)
    spec["gracefulEvictionTasks"] = [{"fromCluster": name, "creationTimestamp": now} for name in want.get("evicting") or []]
    if want.get("rescheduleTriggeredAt"):
        spec["rescheduleTriggeredAt"] = want["rescheduleTriggeredAt"]
    if want.get("observedAffinity"):
        status["schedulerObservingAffinityName"] = want["observedAffinity"]
    if want.get("scheduled"):
        scheduled = {name: want["scheduled"].get(name, "") for name in ("status", "reason", "message")}
        status["conditions"] = [{"type": "Scheduled", **scheduled, "lastTransitionTime": now}]
        if scheduled["status"] == "True":
            annotations["policy.karmada.io/applied-placement"] = json.dumps(spec.get("placement") or {})
            status["lastScheduledTime"] = now
    return body


def _find_template(resources: Iterable[Body], binding: str, namespace: str) -> Body:
    for body in resources:
        metadata = body.get("metadata") or {}
        name = f"{str(metadata.get('name')).replace(':', '.')}-{body['kind']}".lower()
        if name == binding and (not namespace or (metadata.get("namespace") or "default") == namespace):
            found = {"apiVersion": body["apiVersion"], "kind": body["kind"], "name": metadata["name"]}
            return {**found, "namespace": namespace} if namespace else found
    raise AssertionError(f"no template of {binding}")


def _find_policy(resources: Iterable[Body], kind: str, owner: list[str]) -> Body | None:
    for body in resources:
        metadata = body.get("metadata") or {}
        known = [metadata["name"]] if len(owner) == 1 else [metadata.get("namespace") or "default", metadata["name"]]
        if body["kind"] == kind and owner == known:
            return body
    return None


def _make_ocm_pair(case: Mapping[str, Any]) -> DumpPair:
    expect = case["expect"]
    refused = {(one["kind"], one.get("namespace") or "", one["name"]) for one in expect.get("rejected", [])}
    stored = [body for body in case["resources"] if _identify(body) not in refused]
    wanted = {(want["namespace"], want["name"]): want for want in expect["placements"]}
    first, previous = list(stored), list(case.get("previous") or [])
    second: list[Body] = []
    for body in stored:
        want = wanted.get(_identify(body)[1:]) if body["kind"] == "Placement" else None
        second.append({**body, "status": _make_status(want)} if want is not None and not want.get("skipped") else body)
    for (namespace, name), want in wanted.items():
        second += _make_decisions(namespace, name, want) if not want.get("skipped") else _list_decisions(previous, namespace, name)
    return DumpPair([*first, *previous], second, {})


def _identify(body: Body) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace") or "", body["metadata"]["name"]


def _make_status(want: Mapping[str, Any]) -> Body:
    conditions = [{"type": kind, **condition} for kind, condition in (want.get("conditions") or {}).items()]
    return {"numberOfSelectedClusters": want.get("numberOfSelectedClusters") or 0, "conditions": conditions}


def _make_decisions(namespace: str, name: str, want: Mapping[str, Any]) -> list[Body]:
    found = []
    for group in want.get("groups") or []:
        for index, decision in enumerate(group.get("objects") or []):
            labels = {
                f"{OCM_GROUP}/placement": name,
                f"{OCM_GROUP}/decision-group-name": group["name"],
                f"{OCM_GROUP}/decision-group-index": str(group["index"]),
            }
            clusters = group["clusters"][index * MAX_DECISIONS : (index + 1) * MAX_DECISIONS]
            found.append(
                {
                    "apiVersion": f"{OCM_GROUP}/v1beta1",
                    "kind": "PlacementDecision",
                    "metadata": {"name": decision, "namespace": namespace, "labels": labels},
                    "status": {"decisions": [{"clusterName": cluster, "reason": ""} for cluster in clusters]},
                }
            )
    return found


def _list_decisions(previous: Iterable[Body], namespace: str, name: str) -> list[Body]:
    label = f"{OCM_GROUP}/placement"
    return [
        body
        for body in previous
        if body["metadata"].get("namespace") == namespace and (body["metadata"].get("labels") or {}).get(label) == name
    ]
