"""What the scheduler of Kubernetes reserves for a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gitsched.model.document import Body, list_objects

Amounts = Mapping[str, int]
"""Amounts by resource, all in the same unit."""


def sum_pod_requests(spec: Body, read_requests: Callable[[Body], Amounts], overhead: Amounts) -> dict[str, int]:
    """Return the requests of a pod spec: its containers and sidecars together, or its largest init container with the sidecars that start
    before it, if that is more; what the pod requests as a whole, if that is more; and the overhead.

    `read_requests` returns the requests of a container, or of a spec with resources of its own. Source: k8s.io/component-helpers/resource,
    PodRequests.
    """
    sidecars: dict[str, int] = {}
    largest: dict[str, int] = {}
    for container in list_objects(spec.get("initContainers")):
        requests = read_requests(container)
        peak = _add((sidecars, requests))
        if container.get("restartPolicy") == "Always":
            sidecars = peak
        largest = _take_largest(largest, peak)
    total = _add((sidecars, *map(read_requests, list_objects(spec.get("containers")))))
    return _add((_take_largest(_take_largest(total, largest), read_requests(spec)), overhead))


def _add(parts: Iterable[Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _take_largest(one: Amounts, other: Amounts) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *other)}
