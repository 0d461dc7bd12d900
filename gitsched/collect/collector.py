"""Observe many clusters at once: a failure of one does not affect the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from gitsched.collect.observation import observe_cluster
from gitsched.collect.quantization import quantize_amounts, quantize_grades, quantize_nodes, settle_readiness
from gitsched.collect.source_list import ReadSource
from gitsched.collect.sources import ClusterTarget, FoundClusters
from gitsched.kubectl.client import KubectlClient, KubectlOptions
from gitsched.kubectl.proxy import ClusterReader
from gitsched.model.cluster_facts import ClusterFacts, CollectedCluster
from gitsched.model.errors import GitschedError, Permanent, Temporary
from gitsched.model.fault import describe_fault
from gitsched.model.quantity import parse_quantity
from gitsched.named_tuples import NamedTuple
from gitsched.temporary_directory import TemporaryDirectory

WORKERS: Final = 8
"""Clusters that are observed at the same time."""

FindFacts = Callable[[str], ClusterFacts | None]
"""Return the last facts about a cluster."""


class ClusterResult(NamedTuple):
    """The result of one cluster: what was collected, or why nothing was; `temporary` says that another attempt may succeed."""

    cluster: str
    origin: str
    collected: CollectedCluster | None = None
    failure: str = ""
    temporary: bool = False
    notes: tuple[str, ...] = ()


class Collection(NamedTuple):
    """The results of all clusters by name, and notes about sources. `failures` are sources that could not be read."""

    results: tuple[ClusterResult, ...]
    notes: tuple[str, ...] = ()
    failures: tuple[tuple[str, bool], ...] = ()


class Source(NamedTuple):
    """A source that is read from one cluster: its name, the function, and how kubectl reaches the cluster."""

    name: str
    read: ReadSource
    options: KubectlOptions


def collect(
    found: FoundClusters, sources: Sequence[Source], find_facts: FindFacts, observed: datetime, seconds: float
) -> Collection:
    """Observe the clusters that are found already, and those that the sources name."""
    notes, failures = list(found.notes), [(text, False) for text in found.failures]
    targets, ready = list(found.targets), list(found.clusters)
    for source in sources:
        origin = f"{source.name}{f' in {source.options.context}' if source.options.context else ''}"
        try:
            with ClusterReader(source.options, seconds) as reader:
                one = source.read(reader, origin, observed)
        except GitschedError as error:
            failures.append((f"{origin}: {error}", isinstance(error, Temporary)))
            continue
        except Exception as error:  # noqa: BLE001 - a bug about one source must not stop the others
            failures.append((f"{origin}: {describe_fault(error)}; report this bug with the id", False))
            continue
        notes += one.notes
        targets += one.targets
        ready += one.clusters
    results: dict[str, ClusterResult] = {}
    for origin, cluster in ready:
        name = cluster.facts.cluster
        if name in results:
            notes.append(f"{name} of {origin} is left out: {results[name].origin} has the same name")
        else:
            results[name] = settle_hub_cluster(origin, cluster, find_facts(name))
    chosen: dict[str, ClusterTarget] = {}
    for target in targets:
        if target.cluster in results or target.cluster in chosen:
            first = results[target.cluster].origin if target.cluster in results else chosen[target.cluster].origin
            notes.append(f"{target.cluster} of {target.origin} is left out: {first} has the same name")
        else:
            chosen[target.cluster] = target
    results |= {result.cluster: result for result in _observe_all(chosen.values(), find_facts, observed, seconds)}
    return Collection(tuple(results[name] for name in sorted(results)), tuple(notes), tuple(failures))


def _observe_all(
    targets: Iterable[ClusterTarget], find_facts: FindFacts, observed: datetime, seconds: float
) -> Iterator[ClusterResult]:
    jobs = [(target, find_facts(target.cluster)) for target in targets]
    with ThreadPoolExecutor(min(WORKERS, len(jobs) or 1)) as executor:
        yield from executor.map(lambda job: _observe(job[0], job[1], observed, seconds), jobs)


def _observe(target: ClusterTarget, before: ClusterFacts | None, observed: datetime, seconds: float) -> ClusterResult:
    try:
        with _write_kubeconfig(target) as options, ClusterReader(options, seconds) as reader:
            made = observe_cluster(reader, target.cluster, before, observed, own=target.own)
    except GitschedError as error:
        return ClusterResult(target.cluster, target.origin, failure=str(error), temporary=isinstance(error, Temporary))
    except Exception as error:  # noqa: BLE001 - a bug about one cluster must not stop the others
        return ClusterResult(target.cluster, target.origin, failure=f"{describe_fault(error)}; report this bug with the id")
    return ClusterResult(target.cluster, target.origin, made.cluster, notes=made.notes)


@contextmanager
def _write_kubeconfig(target: ClusterTarget) -> Iterator[KubectlOptions]:
    """Write the kubeconfig of a target to a file that only this user can read, and remove it."""
    if not target.kubeconfig:
        yield target.options
        return
    with TemporaryDirectory("kubeconfig") as directory:
        path = directory / "kubeconfig"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(target.kubeconfig)
        yield target.options._replace(kubeconfig=str(path), context="")


def settle_hub_cluster(origin: str, cluster: CollectedCluster, before: ClusterFacts | None) -> ClusterResult:
    """Quantize the facts of a hub. Amounts that are no quantities stay, so that the validation of the document names them."""
    facts = cluster.facts
    amounts = [
        _quantize(now, last, up=up)
        for now, last, up in (
            (facts.capacity, before.capacity if before else None, False),
            (facts.allocatable, before.allocatable if before else None, False),
            (facts.allocated, before.allocated if before else None, True),
        )
    ]
    readiness = facts.readiness
    settled = facts._replace(
        readiness=settle_readiness(readiness, before.readiness if before else None, facts.observed) if readiness else None,
        capacity=amounts[0] or {},
        allocatable=amounts[1] or {},
        allocated=amounts[2],
    )
    if facts.nodes is not None and all(type(count) is int and count >= 0 for count in facts.nodes):
        settled = settled._replace(nodes=quantize_nodes(facts.nodes, before.nodes if before else None))
    if all(type(number) is int and number >= 0 for entry in facts.grades.items() for number in entry):
        settled = settled._replace(grades=quantize_grades(facts.grades, before.grades if before else None))
    return ClusterResult(facts.cluster, origin, cluster._replace(facts=settled))


def _quantize(amounts: object, before: object, *, up: bool) -> dict[str, str] | None:
    if not isinstance(amounts, dict):
        return None
    parsed = {name: parse_quantity(text) for name, text in amounts.items()}
    valid = {name: quantity.nano for name, quantity in parsed.items() if quantity is not None and quantity.nano >= 0}
    known = before if isinstance(before, dict) else None
    return dict(sorted(({**amounts, **quantize_amounts(valid, known, up=up)}).items()))


def list_all_contexts(options: KubectlOptions) -> list[str]:
    """Return the contexts of the kubeconfig. Raises Permanent if there are none."""
    contexts = KubectlClient(options).list_contexts()
    if not contexts:
        raise Permanent("the kubeconfig has no contexts: name it with --kubeconfig or KUBECONFIG")
    return contexts
