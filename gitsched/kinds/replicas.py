"""Read the replicas of a manifest by the table of kinds: their number, the pod specs that say what one needs, and the fields to change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.kinds.kind import Component, Replicas, find_values
from gitsched.model.document import Body, get_field
from gitsched.named_tuples import NamedTuple

MAX_REPLICAS = 2**31 - 1


class ReplicaCount(NamedTuple):
    """The replicas of a manifest.

    `pods` are the pod specs that count, one for each component, and `resources` the cpu and memory of each component that has no pod
    template. `path` is the field that a division changes, or "".
    """

    replicas: int
    path: str
    pods: tuple[Any, ...]
    resources: tuple[Body, ...] = ()


def read_replicas(body: Body, rule: Replicas) -> ReplicaCount | None:
    """Return the replicas of a manifest; None if a field that should be a number is something else."""
    pods = _read_pods(body, rule)
    if rule.fixed is not None:
        return ReplicaCount(rule.fixed, "", pods)
    if not rule.components:
        value = get_field(body, *rule.path.split("."))
        count = 1 if value is None else parse_count(value)
        return None if count is None else ReplicaCount(count, rule.path, pods)
    found = [(component, entry) for component in rule.components for entry in _find_entries(body, component)]
    counts = [read_component(component, entry, body) for component, entry in found]
    if any(count is None for count in counts):
        return None
    total = min(sum(count or 0 for count in counts), MAX_REPLICAS)
    own = tuple(
        get_field(entry, *component.pod_template.split("."), "spec") for component, entry in found if component.pod_template
    )
    values = (get_field(entry, *component.resources.split(".")) for component, entry in found if component.resources)
    return ReplicaCount(total, "", (*pods, *own), tuple(value for value in values if isinstance(value, dict)))


def divide_component(body: Body, rule: Replicas, replicas: int) -> tuple[tuple[str, int], ...]:
    """Return the numbers that give a copy of the manifest this many replicas, by path; () if a division changes none.

    The entries of the revised component get what the others leave, in proportion to their numbers and rounded half up; the last one gets
    the remainder. Without numbers they get equal parts. No entry gets less than none, as it may upstream.

    Source: karmada/pkg/resourceinterpreter/default/thirdparty/resourcecustomizations/ray.io/v1/RayService.
    """
    if rule.revised is None:
        return ()
    component = rule.components[rule.revised]
    entries = list(_find_entries(body, component))
    others = [entry for other in rule.components if other is not component for entry in _find_entries(body, other)]
    rest = max(0, replicas - len(others))
    counts = [read_component(component, entry, body) or 0 for entry in entries]
    path = component.path.removesuffix("[]")
    return tuple((f"{path}.{index}.{component.replicas}", share) for index, share in enumerate(_split(rest, counts)))


def parse_count(value: object) -> int | None:
    """Return a number of replicas; None for anything else than a whole number from 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_REPLICAS else None


def _split(total: int, counts: list[int]) -> Iterator[int]:
    weight, given = sum(counts), 0
    for index, count in enumerate(counts):
        if index == len(counts) - 1:
            share = total - given
        elif weight:
            share = (2 * total * count + weight) // (2 * weight)
        else:
            share = total // len(counts) + (index < total % len(counts))
        share = min(share, total - given)
        given += share
        yield share


def _find_entries(body: Body, component: Component) -> Iterator[Body]:
    return (value for value in find_values(body, component.path) if isinstance(value, dict))


def read_component(component: Component, entry: Body, body: Body) -> int | None:
    """Return the number of pods of one object of a component; None if that is no number."""
    value = get_field(entry, *component.replicas.split(".")) if component.replicas else None
    if value is None:
        numbers = [_parse_number(get_field(body, *path)) for path in component.quotient if path]
        if len(numbers) == 2 and numbers[0] is not None and numbers[1]:
            return -(-numbers[0] // numbers[1])
        return component.default
    return _parse_number(value) if component.quotient[0] else parse_count(value)


def _parse_number(value: object) -> int | None:
    """Return a whole number that may be written as text, as Flink's configuration has it."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return parse_count(value)


def _read_pods(body: Body, rule: Replicas) -> tuple[Any, ...]:
    paths = [f"{rule.pod_template}.spec"] * bool(rule.pod_template) + [rule.pod_spec] * bool(rule.pod_spec)
    pods = [pod for path in paths for pod in find_values(body, path)]
    if rule.pod_fields:
        pods = [{name: pod[name] for name in rule.pod_fields if name in pod} for pod in pods if isinstance(pod, dict)]
    return tuple(pods)
