"""Replicas are those of the delivered manifests, in every format: a program that knows only the output branch adds them up and compares."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

import pytest
import yaml

from gitsched.cli.html_reports import write_plan_page
from gitsched.model.history import HistoryFilter
from gitsched.reconcile import RunResult
from gitsched.reconcile.output.output_history import open_history
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import make_review
from gitsched.report.fleet_status import serialize_fleet_status, write_fleet_status
from gitsched.report.history import serialize_history
from gitsched.report.lines import format_key, list_cluster_changes
from gitsched.report.markdown import write_markdown
from gitsched.report.page import FleetView, write_page
from gitsched.report.page.live import LiveView
from gitsched.report.review import Review
from gitsched.report.serialization import serialize_review
from gitsched.report.summary import format_subject, list_summary_rows
from gitsched.report.text import write_plan
from tests.builders.knative import ADAPTER
from tests.scenarios.conftest import Fleet
from tests.scenarios.pull_requests import CLUSTERS, MORE, WORKLOADS, PullRequests
from tests.search_depth import count_examples

Replicas = Mapping[str, Any]
"""Replicas as `-o json` writes them."""


class Output(NamedTuple):
    """What the manifests of an output commit say: the replicas of each workload by its name and cluster, and the names and clusters of
    copies that stay for an overlap. These are counted apart, and may be larger than what is decided for their cluster."""

    counts: Mapping[str, Mapping[str, Replicas]]
    kept: frozenset[tuple[str, str]]

    def select(self, name: str, clusters: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is said of clusters without a copy of a workload."""
        return {cluster: value for cluster, value in clusters.items() if (name, cluster) not in self.kept}

    def list_replicas(self, name: str) -> dict[str, Replicas]:
        return dict(self.counts.get(name, {}))


PODS = ("Deployment", "StatefulSet")
NOT_COUNTED = ("ConfigMap", "HorizontalPodAutoscaler", "KafkaSource")


def add_up(fleet: Fleet, commit: str) -> Output:
    """Add up the replicas of the delivered manifests."""
    record = json.loads(fleet.read("gitsched.json", commit))
    kept = frozenset((entry["workload"]["name"], entry["cluster"]) for entry in record.get("retainedCopies", []))
    bodies: dict[str, list[Any]] = {}
    for path in fleet.files(commit):
        if re.fullmatch(r"clusters/[^/]+/[^/]+/[^/]+\.yaml", path):
            bodies.setdefault(path.split("/")[1], []).append(yaml.safe_load(fleet.read(path, commit)))
    found: dict[str, dict[str, Replicas]] = {}
    for name, objects in bodies.items():
        minima = {
            body["spec"]["scaleTargetRef"]["name"]: body["spec"].get("minReplicas", 1)
            for body in objects
            if body["kind"] == "HorizontalPodAutoscaler" and (body["metadata"]["name"], name) not in kept
        }
        for body in objects:
            own = body["metadata"]["name"]
            workload = own.removesuffix(MORE)
            if (workload, name) in kept:
                continue
            if body["kind"] == "HelmRelease":
                found.setdefault(workload, {})[name] = {"replicas": None, "unknown": True}
            elif body["kind"] in PODS:
                count = (
                    {"replicas": minima[own], "atLeast": True} if own in minima else {"replicas": body["spec"].get("replicas", 1)}
                )
                other = found.setdefault(workload, {}).get(name, {"replicas": 0})
                found[workload][name] = {**other, **count, "replicas": other["replicas"] + count["replicas"]}
    return Output(found, kept)


def list_json(placements: list[Any], title: str = "cluster") -> dict[str, Any]:
    return {entry[title]: {name: value for name, value in entry.items() if name != title} for entry in placements}


def mark(count: Mapping[str, Any]) -> str:
    """Return replicas as texts show them."""
    return "?" if "unknown" in count else f"{count['replicas']}{'+' if 'atLeast' in count else ''}"


def total(counts: Iterable[Mapping[str, Any]]) -> str:
    """Return the sum of replicas as texts show it."""
    found = list(counts)
    if found and all("unknown" in count for count in found):
        return "?"
    return f"{sum(count['replicas'] or 0 for count in found)}{'+' if any(len(count) > 1 for count in found) else ''}"


def check_output(fleet: Fleet) -> Output:
    """Compare what the output branch says of its clusters with its manifests."""
    output = add_up(fleet, "placements")
    readme = fleet.read("README.md")
    for name in (*CLUSTERS, "tenant-a.one"):
        if any(cluster_name == name for _, cluster_name in output.kept):
            continue  # a smaller copy that waits behind a larger one counts, and is in no file
        wanted = total(found[name] for found in output.counts.values() if name in found).replace("?", "0+")
        facts = fleet.load(f"clusters/{name}/cluster.json")
        assert f"{facts['replicas']}{'+' if facts.get('atLeast') else ''}" == wanted, name
        assert re.search(rf"^\| `{name}` \|.*\| {re.escape(wanted)} \|$", readme, re.MULTILINE), name
    return output


def check_plan(data: Mapping[str, Any], before: Output, after: Output) -> None:
    """Compare the JSON of a plan with what the output branch delivers before and after it."""
    placed = {
        entry["workload"]["name"]: list_json(entry["clusters"])
        for entry in data["placements"]
        if entry["workload"]["kind"] not in NOT_COUNTED
    }
    for name in WORKLOADS:
        assert after.select(name, placed.get(name, {})) == after.list_replicas(name), name
    check_moves(data["moves"], before, after)


def check_moves(moves: list[Any], before: Output, after: Output) -> None:
    """Compare the moves of a plan or a run with what the output branch delivers before and after it."""
    found = {entry["workload"]["name"]: entry for entry in moves if entry["workload"]["kind"] not in NOT_COUNTED}
    for name in WORKLOADS:
        if name in found:
            check_move(found[name], before, after)
        else:
            assert after.select(name, before.list_replicas(name)) == before.select(name, after.list_replicas(name)), name


def check_move(move: Any, before: Output, after: Output) -> None:
    name = move["workload"]["name"]
    assert before.select(name, list_json(move["before"])) == before.list_replicas(name), name
    assert after.select(name, list_json(move["after"])) == after.list_replicas(name), name


def check_status(fleet: Fleet, hour: float, output: Output) -> None:
    """Compare `gitsched status` with what the output branch delivers."""
    status = read_fleet_status(fleet.settings(hour))
    data = serialize_fleet_status(status)
    entries = {one["name"]: list_json(one["clusters"], "name") for one in data["workloads"] if one["kind"] not in NOT_COUNTED}
    for name in WORKLOADS:
        assert output.select(name, entries.get(name, {})) == output.list_replicas(name), name
    text = write_fleet_status(status, workloads=True)
    shown = [count for found in entries.values() for count in found.values()]
    if total(shown) != "?":
        assert f" placed ({total(shown)} replica" in write_fleet_status(status)
    for name in WORKLOADS:
        for cluster_name, count in entries.get(name, {}).items():
            assert re.search(rf"/{name} .*\b{cluster_name} {re.escape(mark(count))}(,|\s)", text), name


def check_history(fleet: Fleet, before: Output, after: Output) -> None:
    """Compare what `gitsched history` says about the newest commit with what the output branch delivers before and after it."""
    history = open_history(fleet.settings(), HistoryFilter())
    entries = list(history.read_entries(1))
    (entry,) = serialize_history("placements", history.head, entries, (), "", "")["entries"]
    kinds = {name.lower() for name in NOT_COUNTED}
    for move in entry["moves"]:
        if move["workload"]["name"] in WORKLOADS and move["workload"]["kind"].lower() not in kinds:
            check_move(move, before, after)


def list_cells(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the workloads of the matrix of a page, with what their clusters have."""
    found = re.search(r'<script type="application/json" id="fleet-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    for row in data["workloads"]:
        if row["kind"] not in NOT_COUNTED:
            yield row["name"], {data["clusters"][index]["name"]: str(count) for index, count in row["after"]}


def check_html(text: str, output: Output) -> None:
    cells = dict(list_cells(text))
    for name in WORKLOADS:
        wanted = {cluster: mark(count) for cluster, count in output.list_replicas(name).items()}
        assert output.select(name, cells.get(name, {})) == wanted, name


def check_facts(review: Review, text: str, markdown: str, page_html: str) -> None:
    """Compare the facts that the formats have: what JSON says is in the others, or counted there."""
    plain = html.unescape(re.sub(r"</?code>|`|\*\*", "", markdown))
    shown = html.unescape(re.sub(r"</?span[^>]*>", "", page_html))
    formats = ((text, "-", "->"), (plain, "−", "→"), (shown, "−", "→"))
    for move in review.moves:
        for found, minus, arrow in formats:
            assert format_key(move.key) in found, move.key
            for change in list_cluster_changes(move)[0]:
                assert change.format(minus, arrow) in found, (move.key, change, minus)
    for subject in (*map(format_subject, review.record_changes), *(one.name for one in review.rollouts)):
        assert all(subject in found for found, *_ in formats), subject
    for copy in review.retained_copies:
        assert all(format_key(copy.workload) in found and copy.cluster in found for found, *_ in formats), copy
    for finding in review.new_findings:
        assert all(finding.code in found for found, *_ in formats), finding
        assert finding.severity == "info" or (finding.text in text and finding.text in shown), finding
    for row in list_summary_rows(review):
        assert all(row.name in found and row.after in found for found, *_ in formats), row


def write_live_html(run: RunResult) -> str:
    """Return the page that the watch process serves after a run."""
    return write_page(make_review(run), FleetView({}, {}), LiveView("1", "fleet"))


@pytest.mark.search
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_every_format_has_the_replicas_of_the_delivered_manifests(fleet: Fleet, seed: int) -> None:
    requests = PullRequests(Random(seed))
    fleet.commit(requests.files)
    fleet.reconcile()
    before = check_output(fleet)
    for step in range(1, 6):
        hour = step * 3.0
        fleet.commit(requests.go_on(), hour=hour)
        compared = compare_plans(fleet.settings(hour, trusted=False), None)
        review, head = compared.review, fleet.head
        run = fleet.reconcile(hour)
        after = check_output(fleet)
        check_plan(serialize_review(review), before, after)
        plan_html = write_plan_page(compared, review)
        check_html(plan_html, after)
        check_html(write_live_html(run), after)
        check_facts(review, write_plan(review, width=10_000), write_markdown(review), plan_html)
        assert {move.key: (move.before, move.after) for move in run.plan.moves} == {
            move.key: (move.before, move.after) for move in review.moves
        }
        if head != fleet.head:
            check_history(fleet, before, after)
        # Clusters report, and overlaps end.
        fleet.commit(requests.report(fleet.head or "", hour + 0.5), hour=hour + 1.5)
        run, earlier = fleet.reconcile(hour + 1.5), after
        before = check_output(fleet)
        check_moves(serialize_review(make_review(run))["moves"], earlier, before)
        check_status(fleet, hour + 1.5, before)


def test_the_program_adds_up_all_kinds_of_workloads(fleet: Fleet) -> None:
    """Each kind has a manifest with replicas in some pull request, so that the comparison compares something."""
    found: set[str] = set()
    for seed in range(3):
        requests = PullRequests(Random(seed))
        fleet.commit(requests.files, hour=seed * 100)
        fleet.reconcile(seed * 100)
        found |= add_up(fleet, "placements").counts.keys()
    assert found == {*WORKLOADS}
    assert ADAPTER in found
