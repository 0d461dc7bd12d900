"""Event sources on several StatefulSets and clusters, the consumers that KEDA wants, and incomplete settings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.knative import adapter, node, pod, pods, settings, source

from .conftest import Fleet

REDIS_SET = "status/apps/statefulset/knative-eventing/redisstreamsource-mt-adapter.yaml"


def rename(text: str, name: str) -> str:
    """Return the documents of the Kafka adapter for another one."""
    return text.replace("kafkasource-mt-adapter", name)


def redis(name: str, consumers: int) -> str:
    return source(name, consumers).replace("v1beta1", "v1alpha1").replace("KafkaSource", "RedisStreamSource")


def placements(fleet: Fleet, kind: str, name: str) -> dict[str, int]:
    body = fleet.load(f"status/sources.knative.dev/{kind}/shop/{name}.yaml")
    return {entry["podName"]: entry["vreplicas"] for entry in body["status"]["placements"]}


def findings(fleet: Fleet, code: str) -> list[str]:
    return [entry["message"] for entry in fleet.load("gitsched.json")["findings"] if entry["code"] == code]


def commit(fleet: Fleet, files: dict[str, str | None], hour: float = 0) -> None:
    fleet.commit(files, hour=hour)
    fleet.reconcile(hour)


TWO_ADAPTERS: dict[str, str | None] = {
    "gitsched.yaml": settings(cluster="events"),
    "nodes.yaml": node("n0", "east"),
    "adapter.yaml": adapter(1),
    "pods.yaml": pods({0: "n0"}),
    "redis-adapter.yaml": rename(adapter(1), "redisstreamsource-mt-adapter"),
    "redis-pods.yaml": rename(pods({0: "n0"}), "redisstreamsource-mt-adapter"),
    "orders.yaml": source("orders", 3),
    "clicks.yaml": redis("clicks", 6),
}


def test_a_statefulset_named_after_a_kind_runs_the_sources_of_that_kind(fleet: Fleet) -> None:
    commit(fleet, TWO_ADAPTERS)
    assert placements(fleet, "kafkasource", "orders") == {"kafkasource-mt-adapter-0": 3}
    assert placements(fleet, "redisstreamsource", "clicks") == {"redisstreamsource-mt-adapter-0": 4}
    assert fleet.load(REDIS_SET)["spec"]["replicas"] == 2, "each StatefulSet has an autoscaler of its own"
    assert fleet.load("clusters/events/knative-eventing/statefulset-kafkasource-mt-adapter.yaml")["spec"]["replicas"] == 1
    assert fleet.load("clusters/events/knative-eventing/statefulset-redisstreamsource-mt-adapter.yaml")["spec"]["replicas"] == 2


def test_declared_adapters_have_settings_and_clusters_of_their_own(fleet: Fleet) -> None:
    declared = "[{statefulSet: knative-eventing/streams, kinds: [RedisStreamSource], capacity: 6, cluster: streams}]"
    files = {name: text and rename(text, "streams") if name.startswith("redis") else text for name, text in TWO_ADAPTERS.items()}
    files = {name: text and text.replace("redisstreamsource-mt-adapter", "streams") for name, text in files.items()}
    commit(fleet, files | {"gitsched.yaml": settings(cluster="events", adapters=declared)})
    assert placements(fleet, "redisstreamsource", "clicks") == {"streams-0": 6}
    assert fleet.load("clusters/streams/knative-eventing/statefulset-streams.yaml")["spec"]["replicas"] == 1
    assert fleet.load("status/sources.knative.dev/redisstreamsource/shop/clicks.yaml")["metadata"]["annotations"] == {
        "config.kubernetes.io/local-config": "true",
        "gitsched.io/cluster": "streams",
    }


def test_a_statefulset_in_two_entries_is_an_error(fleet: Fleet) -> None:
    entry = "{statefulSet: kafkasource-mt-adapter, kinds: [%s]}"
    declared = f"[{entry % 'KafkaSource'}, {entry % 'RedisStreamSource'}]"
    commit(fleet, TWO_ADAPTERS | {"gitsched.yaml": settings(cluster="events", adapters=declared)})
    (message,) = findings(fleet, "knative-adapter")
    assert message.startswith("StatefulSet kafkasource-mt-adapter is in two entries of knative.adapters")
    assert placements(fleet, "kafkasource", "orders") == {"kafkasource-mt-adapter-0": 3}


def test_an_error_of_one_adapter_does_not_stop_the_others(fleet: Fleet) -> None:
    commit(fleet, TWO_ADAPTERS)
    commit(
        fleet, {"redis-adapter.yaml": "apiVersion: apps/v1\nkind: StatefulSet\nspec: [\n", "orders.yaml": source("orders", 2)}, 1
    )
    assert placements(fleet, "kafkasource", "orders") == {"kafkasource-mt-adapter-0": 2}
    assert placements(fleet, "redisstreamsource", "clicks") == {"redisstreamsource-mt-adapter-0": 4}


def two_clusters() -> dict[str, str | None]:
    """The clusters eu and us have a Node of the same name, in different zones, and an adapter of their own."""
    entries = [f"{{statefulSet: knative-eventing/kafka-{name}, path: {name}, cluster: {name}}}" for name in ("eu", "us")]
    files: dict[str, str | None] = {"gitsched.yaml": settings(adapters=f"[{', '.join(entries)}]")}
    for name, nodes in (("eu", ("n0",)), ("us", ("n0", "n1"))):
        files[f"{name}/nodes.yaml"] = "---\n".join(node(entry, f"{name}-{entry}") for entry in nodes)
        files[f"{name}/adapter.yaml"] = rename(adapter(len(nodes)), f"kafka-{name}")
        files[f"{name}/pods.yaml"] = rename(pods(dict(enumerate(nodes))), f"kafka-{name}")
        files[f"{name}/orders.yaml"] = source(f"orders-{name}", 4)
    return files


def test_each_cluster_has_its_own_nodes_pods_and_sources(fleet: Fleet) -> None:
    commit(fleet, two_clusters())
    assert placements(fleet, "kafkasource", "orders-eu") == {"kafka-eu-0": 4}
    assert placements(fleet, "kafkasource", "orders-us") == {"kafka-us-0": 2, "kafka-us-1": 2}
    assert findings(fleet, "duplicate-identity") == []
    assert {path.split("/")[1] for path in fleet.files() if path.startswith("clusters/")} == {"eu", "us"}
    head = fleet.head
    commit(fleet, {"notes.txt": "nothing"}, 1)
    assert fleet.head == head


def test_clusters_with_the_same_names_use_an_output_branch_each(fleet: Fleet) -> None:
    entries = [f"{{statefulSet: knative-eventing/kafkasource-mt-adapter, path: {name}, cluster: {name}}}" for name in ("eu", "us")]
    files: dict[str, str | None] = {"gitsched.yaml": settings(adapters=f"[{', '.join(entries)}]")}
    for name in ("eu", "us"):
        body = (node("n0", name), adapter(1), pods({0: "n0"}), source("orders", 3))
        files[f"{name}/all.yaml"] = "---\n".join(body)
    fleet.commit(files)
    for name in ("eu", "us"):
        run = fleet.reconcile(0, paths=(name,), output_branch=f"placements-{name}")
        assert [finding for finding in run.plan.findings if finding.severity == "error"] == []
        tree = fleet.git("ls-tree", "-r", "--name-only", f"placements-{name}")
        assert f"clusters/{name}/knative-eventing/statefulset-kafkasource-mt-adapter.yaml" in tree.splitlines()


def test_a_cordoned_node_of_one_cluster_does_not_concern_the_other(fleet: Fleet) -> None:
    commit(fleet, two_clusters())
    commit(fleet, {"us/nodes.yaml": node("n0", "us-n0", cordoned=True), "eu/orders.yaml": source("orders-eu", 3)}, 1)
    assert placements(fleet, "kafkasource", "orders-eu") == {"kafka-eu-0": 3}


def test_an_undeclared_kind_of_source_is_a_finding(fleet: Fleet) -> None:
    kinds = {"other.yaml": source("other", 2).replace("KafkaSource", "PulsarSource")}
    ping = "apiVersion: sources.knative.dev/v1\nkind: PingSource\nmetadata: {name: ping, namespace: shop}\nspec: {schedule: '* * * * *'}\n"
    commit(fleet, {**TWO_ADAPTERS, **kinds, "ping.yaml": ping})
    (message,) = findings(fleet, "knative-undeclared-kind")
    assert "PulsarSource.sources.knative.dev/shop/other is not scheduled" in message


HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: keda-hpa-orders, namespace: shop}}
spec:
  scaleTargetRef: {{apiVersion: sources.knative.dev/v1beta1, kind: KafkaSource, name: orders}}
  maxReplicas: 10
status: {status}
"""
SCALED_OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{name: orders, namespace: shop, annotations: {annotations}}}
spec:
  scaleTargetRef: {{apiVersion: sources.knative.dev/v1beta1, kind: KafkaSource, name: orders}}
"""


@pytest.mark.parametrize(
    ("files", "placed", "unknown"),
    [
        ({"hpa.yaml": HPA.format(status="{desiredReplicas: 4}")}, 4, 0),
        ({"hpa.yaml": HPA.format(status="{desiredReplicas: 0}")}, 0, 0),
        ({"hpa.yaml": HPA.format(status="{}")}, 3, 1),
        ({"so.yaml": SCALED_OBJECT.format(annotations="{}")}, 3, 1),
        ({"so.yaml": SCALED_OBJECT.format(annotations="{}"), "hpa.yaml": HPA.format(status="{desiredReplicas: 2}")}, 2, 0),
        (
            {
                "so.yaml": SCALED_OBJECT.format(annotations="{autoscaling.keda.sh/paused-replicas: '1'}"),
                "hpa.yaml": HPA.format(status="{desiredReplicas: 2}"),
            },
            1,
            0,
        ),
    ],
)
def test_the_consumers_that_keda_wants_are_placed(fleet: Fleet, files: dict[str, str], placed: int, unknown: int) -> None:
    commit(fleet, {**TWO_ADAPTERS, **files})
    assert sum(placements(fleet, "kafkasource", "orders").values()) == placed
    assert len(findings(fleet, "knative-consumers-unknown")) == unknown


def test_a_new_wish_of_keda_is_followed(fleet: Fleet) -> None:
    commit(fleet, {**TWO_ADAPTERS, "hpa.yaml": HPA.format(status="{desiredReplicas: 1}")})
    commit(fleet, {"hpa.yaml": HPA.format(status="{desiredReplicas: 4}")}, 1)
    assert sum(placements(fleet, "kafkasource", "orders").values()) == 4


def test_without_sources_the_message_says_which_pods_are_unused(fleet: Fleet) -> None:
    period = "{refreshPeriodSeconds: 3600}"
    files = {name: text for name, text in TWO_ADAPTERS.items() if not name.startswith(("redis", "clicks"))}
    files |= {"gitsched.yaml": settings(cluster="events", autoscaler=period), "adapter.yaml": adapter(3)}
    commit(fleet, {**files, "pods.yaml": pods({0: "n0", 1: "n0", 2: "n0"})})
    fleet.commit({"orders.yaml": None}, hour=0.5)
    run: Any = fleet.reconcile(0.5)
    messages = [finding.message for finding in run.plan.findings if finding.code == "knative-unused-pods"]
    assert len(messages) == 1
    assert (
        "kafkasource-mt-adapter-0, kafkasource-mt-adapter-1, kafkasource-mt-adapter-2 are unused, because no event source"
        in messages[0]
    )
    assert "on, the StatefulSet has 1 replica" in messages[0]
    run = fleet.reconcile(9)
    (message,) = [finding.message for finding in run.plan.findings if finding.code == "knative-unused-pods"]
    assert message.endswith("1 pod remains for new sources, one for each zone or node; delete the StatefulSet to remove them")


def test_a_repository_without_settings_gets_a_finding_that_lists_what_is_missing(fleet: Fleet) -> None:
    fleet.commit({name: text for name, text in TWO_ADAPTERS.items() if name != "gitsched.yaml"})
    run = fleet.reconcile()
    (finding,) = [finding for finding in run.plan.findings if finding.code == "knative-settings"]
    assert finding.message.startswith("found 2 event sources, StatefulSet knative-eventing/")
    assert "set spec.knative.capacity (vreplicas per pod) and spec.knative.cluster in gitsched.yaml" in finding.message
    assert not any(path.startswith("status/") for path in fleet.files())


def test_sources_alone_need_no_settings(fleet: Fleet) -> None:
    fleet.commit({"orders.yaml": source("orders", 3), "pod.yaml": pod(0, "n0")})
    assert [finding.code for finding in fleet.reconcile().plan.findings if finding.code.startswith("knative")] == []


def test_the_data_of_a_policy_without_its_configmap_is_an_error(fleet: Fleet) -> None:
    commit(fleet, {**TWO_ADAPTERS, "policy.yaml": "data:\n  predicates: |+\n    []\n  priorities: |+\n    []\n"})
    (entry,) = [entry for entry in fleet.load("gitsched.json")["findings"] if entry["code"] == "missing-kind"]
    assert "the data of ConfigMap config-scheduler without the ConfigMap" in entry["message"]
    assert "policy.yaml" in str(entry)
