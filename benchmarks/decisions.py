"""Measure decisions of Karmada as queries on a generated repository, and compare them with those of a complete plan.

`python -m benchmarks.decisions --manifests 10000 --clusters 1000`; times are CPU seconds.
"""

from __future__ import annotations

import argparse
import copy
from collections import Counter
from collections.abc import Callable
from time import process_time
from typing import Any

import yaml

from benchmarks.decision_queries import MOMENT, SCHEMA, summarize
from benchmarks.generator import Size, generate
from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.garbage_collection import gc_paused
from gitsched.model.document import Body, Key
from gitsched.query import Database, MemoryStore, digest_value
from gitsched.query import Key as QueryKey

_INPUTS = {"Cluster": "cluster", "PropagationPolicy": "policy", "ClusterPropagationPolicy": "policy"}
Input = tuple[str, QueryKey]


class Fixture:
    """The documents of a repository, as inputs of queries and of a complete plan."""

    def __init__(self, size: Size) -> None:
        texts = generate(size, 1).values()
        self._documents = [make_raw_document(body) for text in texts for body in yaml.load_all(text, yaml.CSafeLoader)]
        self.outcomes = self.plan({}).outcomes
        self.values: dict[Input, Any] = {("config", ()): Config()}
        catalog = self._first.catalog
        for kind, listed in catalog.api_documents.items():
            name = _INPUTS[kind[1]]
            self.values |= {(name, (one.key.name,) if name == "cluster" else tuple(one.key)): one for one in listed}
        self.values |= {("template", tuple(key)): template for key, template in catalog.templates.items()}

    def plan(self, previous: dict[Key, Body]) -> DecisionSet:
        """Decide everything with the engine."""
        self._first = decide(self._documents, previous, Config(), MOMENT, MOMENT)
        return self._first

    def open(self, store: MemoryStore | None = None) -> Database:
        return Database(SCHEMA, lambda name, key: self.values[name, key], store)

    def assign_all(self, db: Database) -> None:
        for (name, key), value in self.values.items():
            body = {} if name == "config" else value if name == "record" else value.body
            db.assign(name, key, digest_value(body))


def compare(db: Database, decisions: DecisionSet) -> int:
    """Return how many workloads are decided otherwise than in a complete plan."""
    different = 0
    for key in decisions.catalog.templates:
        outcome, found = decisions.outcomes.get(key), db.read("decision", tuple(key))
        wanted = None if outcome is None else summarize(outcome, digest_value(outcome.records[0][1]))
        different += found != wanted
    return different


def _label(body: Body) -> None:
    body["metadata"].setdefault("labels", {})["unread"] = "new"


def _move_pool(body: Body) -> None:
    body["metadata"]["labels"]["pool"] = "pool-9999"


def _taint(body: Body) -> None:
    body.setdefault("spec", {}).setdefault("taints", []).append({"key": "example.com/new", "effect": "NoSchedule"})


def _shrink(body: Body) -> None:
    body["status"]["resourceSummary"]["allocatable"]["cpu"] = "7"


def _set_replicas(body: Body) -> None:
    body["spec"]["replicas"] = 17


def _tolerate(body: Body) -> None:
    body["spec"]["placement"]["clusterTolerations"] = [{"key": "new", "operator": "Exists"}]


def _select(body: Body) -> None:
    body["spec"]["resourceSelectors"][0]["labelSelector"] = {"matchLabels": {"lane": "none"}}


def _annotate(body: Body) -> None:
    body["metadata"].setdefault("annotations", {})["unread"] = "new"


def measure_edit(title: str, fixture: Fixture, store: MemoryStore, key: Input, change: Callable[[Body], None]) -> None:
    before = fixture.values[key]
    body = copy.deepcopy(before.body)
    change(body)
    fixture.values[key] = before._replace(body=body)
    start, db = process_time(), fixture.open(MemoryStore(store.rows))
    db.assign(*key, digest_value(body))
    db.update()
    updated, changed = process_time(), len(db.take_changes().get("decision", ()))
    db.save()
    print(f"{title:<24}{db.computed:>8}{changed:>10}{updated - start:>10.3f}{process_time() - updated:>8.3f}")
    fixture.values[key] = before


@gc_paused()
def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    sizes = Size()
    parser.add_argument("--manifests", type=int, default=sizes.manifests, metavar="N")
    parser.add_argument("--clusters", type=int, default=sizes.clusters, metavar="N")
    arguments = parser.parse_args()
    fixture = Fixture(Size(arguments.manifests, arguments.clusters))
    start = process_time()
    first = fixture.plan({})
    store, assigned = MemoryStore(), process_time()
    db = fixture.open(store)
    fixture.assign_all(db)
    db.update()
    updated = process_time()
    db.save()
    saved, size = process_time(), sum(map(len, store.rows.values()))
    print(f"complete plan {assigned - start:.2f}, queries {updated - assigned:.2f}, save {saved - updated:.2f}")
    print(f"{len(store.rows)} rows, {size / 1e6:.2f} MB; {compare(db, first)} of {len(first.outcomes)} decisions differ")
    records = {key: body for outcome in first.outcomes.values() for key, body in outcome.records}
    fixture.values |= {("record", tuple(key)): body for key, body in records.items()}
    start, before = process_time(), db.computed
    fixture.assign_all(db)
    db.save()
    print(f"records: {db.computed - before} computed, {process_time() - start:.2f}")
    print(f"{compare(db, fixture.plan(records))} decisions with records differ")
    used = Counter(cluster for outcome in first.outcomes.values() for cluster in outcome.replicas_by_cluster)
    titles = Counter(outcome.policy for outcome in first.outcomes.values())
    cluster: Input = "cluster", (used.most_common(1)[0][0],)
    policy = next(one for one in fixture.values if one[0] == "policy" and Key(*one[1]).title == titles.most_common(1)[0][0])
    template = next(one for one in fixture.values if one[0] == "template" and one[1][1] == "Deployment")
    print(f"{'edit':<24}{'computed':>8}{'changed':>10}{'update':>10}{'save':>8}")
    edits: list[tuple[str, Input, Callable[[Body], None]]] = [
        ("replicas of a manifest", template, _set_replicas),
        ("unread label", cluster, _label),
        ("pool of a cluster", cluster, _move_pool),
        ("taint NoSchedule", cluster, _taint),
        ("capacity", cluster, _shrink),
        ("placement of a policy", policy, _tolerate),
        ("selector of a policy", policy, _select),
        ("annotation of a policy", policy, _annotate),
    ]
    for title, key, change in edits:
        measure_edit(title, fixture, store, key, change)


if __name__ == "__main__":
    main()
