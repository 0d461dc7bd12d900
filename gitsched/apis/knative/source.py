"""Event sources as vpods: how many vreplicas they want, and where they have some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.apis.gitsched.config import Config
from gitsched.apis.knative import names
from gitsched.model.document import Body, Key, group_of, member
from gitsched.model.issue import Issue
from gitsched.schedule.vreplicas.adapter import Shares

CONSUMERS = ("spec", "consumers")
INT32 = 2**31

Paths = Mapping[tuple[str, str], tuple[str, ...]]
"""Where a kind of source, by (group, kind), says how many vreplicas it wants."""


def find_kinds(config: Config) -> Paths:
    """The kinds that are event sources: Kafka's, those that `knative.sources` declares, and Knative's own that `workloads` does."""
    paths: dict[tuple[str, str], tuple[str, ...]] = {(names.GROUP, names.KAFKA): CONSUMERS}
    for kind in config.workloads:
        group = group_of(kind.api_version)
        if kind.replicas_path and (group == names.DOMAIN or group.endswith(f".{names.DOMAIN}")):
            paths[group, kind.kind] = _split(kind.replicas_path)
    for source in config.knative.sources:
        paths[group_of(source.api_version), source.kind] = _split(source.replicas_path)
    return paths


def check_kafka(body: Body) -> Iterator[Issue]:
    """What is wrong with a KafkaSource."""
    return check_source(body, CONSUMERS)


def check_source(body: Body, path: tuple[str, ...]) -> Iterator[Issue]:
    """What is wrong with a source that says at a path how many vreplicas it wants."""
    wanted = member(body, *path)
    if wanted is not None and (type(wanted) is not int or not 0 <= wanted <= names.MOST_VREPLICAS):
        yield Issue("error", "knative-vreplicas", f"{'.'.join(path)} must be a whole number from 0 to {names.MOST_VREPLICAS}", path)
    placements = member(body, "status", "placements")
    if placements is None:
        return
    if not isinstance(placements, list):
        yield Issue("error", "knative-placements", "status.placements must be a list", ("status", "placements"))
        return
    for index, entry in enumerate(placements):
        wrong = _find_mistake(entry)
        if wrong:
            yield Issue("error", "knative-placements", f"status.placements[{index}] {wrong}", ("status", "placements", index))
            return


def read_wanted(body: Body, path: tuple[str, ...]) -> int:
    """How many vreplicas a sound source wants: 1 where it does not say."""
    wanted = member(body, *path)
    return 1 if wanted is None else int(wanted)


def read_placements(body: Body, adapter: Key) -> Shares:
    """What a status holds on the pods of a StatefulSet, in its order; entries that cannot be read hold nothing."""
    shares: Shares = {}
    placements = member(body, "status", "placements")
    for entry in placements if isinstance(placements, list) else ():
        if not _find_mistake(entry):
            ordinal = names.read_ordinal(entry["podName"], adapter.name)
            number = entry.get("vreplicas") or 0
            if ordinal is not None and number > 0:
                shares[ordinal] = shares.get(ordinal, 0) + number
    return shares


def write_placements(shares: Shares, adapter: Key) -> list[Body]:
    """Placements as a status holds them."""
    return [{"podName": f"{adapter.name}-{ordinal}", "vreplicas": number} for ordinal, number in shares.items()]


def _find_mistake(entry: Any) -> str:
    if not isinstance(entry, dict) or not isinstance(entry.get("podName"), str):
        return "must have a podName"
    if names.read_ordinal(entry["podName"]) is None:
        return f"has a podName without an ordinal from 0 to {names.GREATEST_ORDINAL}: {entry['podName'][:100]!r}"
    number = entry.get("vreplicas")
    if number is not None and (type(number) is not int or not 0 <= number < INT32):
        return "must have vreplicas, a whole number"
    return ""


def _split(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split(".") if part)
