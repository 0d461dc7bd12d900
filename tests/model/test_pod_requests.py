"""Requests of pods are those that the scheduler of Kubernetes reserves."""

from __future__ import annotations

import pytest

from gitsched.model.document import Body
from gitsched.model.pod_requests import sum_pod_requests


def container(cpu: int, **members: str) -> Body:
    return {"cpu": cpu, **members}


SIDECAR = {"restartPolicy": "Always"}
CASES = {
    "containers run together": ({"containers": [container(2), container(3)]}, 5),
    "init containers run before them": ({"containers": [container(2)], "initContainers": [container(4), container(3)]}, 4),
    "sidecars run beside them": ({"containers": [container(2)], "initContainers": [container(1, **SIDECAR)]}, 3),
    "an init container runs beside the sidecars before it": (
        {"containers": [container(2)], "initContainers": [container(1, **SIDECAR), container(5)]},
        6,
    ),
    "an init container does not run beside later sidecars": (
        {"containers": [container(2)], "initContainers": [container(5), container(1, **SIDECAR)]},
        5,
    ),
    "a pod may request more as a whole": ({"containers": [container(2)], "cpu": 7}, 7),
}


@pytest.mark.parametrize(("spec", "expected"), CASES.values(), ids=CASES.keys())
def test_the_requests_of_a_pod(spec: Body, expected: int) -> None:
    def read(body: Body) -> dict[str, int]:
        return {"cpu": body["cpu"]} if "cpu" in body else {}

    assert sum_pod_requests(spec, read, {}) == {"cpu": expected}
    assert sum_pod_requests(spec, read, {"cpu": 1, "memory": 4}) == {"cpu": expected + 1, "memory": 4}
