"""`gitsched history`: what the commits of the output branch tell, also where the branch is damaged, shallow or was moved back."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.model.document import Key
from gitsched.model.history import HistoryFilter
from gitsched.model.time import EPOCH
from gitsched.reconcile import RunSettings, reconcile
from gitsched.reconcile.output.output_history import OutputHistory, open_history, open_run_history
from gitsched.render.output_files import placement_path
from gitsched.render.placement_records import read_placement_key
from gitsched.report.history import write_entry
from tests.cli.conftest import CLUSTER, POLICY, TAINT, WORKLOAD, Run
from tests.search_depth import count_examples

Git, Commit = Callable[..., str], Callable[..., None]


@pytest.fixture
def moved(fleet: Path, commit: Commit, gitsched: Run) -> Path:
    """A fleet whose workload moved once, and was frozen afterwards."""
    gitsched("reconcile", "--now", "2026-03-02T09:00:10Z")
    commit(fleet, one=CLUSTER.format(name="one", owner="private") + TAINT)
    gitsched("reconcile", "--now", "2026-03-02T09:00:20Z")
    gitsched("freeze", "maintenance", "--now", "2026-03-03T08:00:00Z")
    return fleet


def read(fleet: Path, limit: int = 20, **chosen: Any) -> tuple[str, OutputHistory]:
    """Return the history as text, and how it ended."""
    history = open_history(RunSettings(now=EPOCH, location=str(fleet), cache=fleet.parent / "cache"), HistoryFilter(**chosen))
    return "".join(map(write_entry, history.read_entries(limit))), history


def test_the_history_has_which_workload_moved_when_and_why(moved: Path, git: Git, gitsched: Run) -> None:
    head, place, first = git("log", "--format=%h", "--abbrev=10", "placements", at=moved).splitlines()
    source, base = git("log", "--format=%h", "--abbrev=10", "main", at=moved).splitlines()
    now = ("--now", "2026-03-03T09:00:20Z")
    assert (
        gitsched("history", *now).stdout
        == f"""\
2026-03-03T08:00:00Z (1h ago)  {head}  freeze: maintenance: by hand: Ada
2026-03-02T09:00:20Z (1d ago)  {place}  1 workload moved: {source} Change (Ada)
2026-03-02T09:00:10Z (1d ago)  {first}  1 workload placed: {base} Change (Ada)

One commit with its workloads: gitsched history --from COMMIT -m 1; one workload: gitsched history NAME
"""
    )
    assert (
        gitsched("history", "-m", "1", *now).stdout
        == f"""\
2026-03-03T08:00:00Z (1h ago)  {head}  freeze: maintenance
  by hand: Ada
  placements are frozen: maintenance

Older commits: --from {place}
"""
    )
    assert (
        gitsched("history", "web", *now).stdout
        == f"""\
2026-03-02T09:00:20Z (1d ago)  {place}  1 workload moved
  cause: a commit of the source: a drain of one
  source: {source} Change (Ada)
  drain: one is drained by the taint power:NoExecute (one.yaml:9)
  files: one.yaml
  ~ Deployment shop/web: one 2 -> two 2
      PropagationPolicy/shop/web in group cloud (before: PropagationPolicy/shop/web in group private); it leaves one, which is drained
  Deployment shop/web stays in one with 2 replicas until 2026-03-02T09:10:20Z

2026-03-02T09:00:10Z (1d ago)  {first}  1 workload placed
  cause: a commit of the source
  source: {base} Change (Ada)
  + Deployment shop/web: one 2
      PropagationPolicy/shop/web in group private

"""
    )
    found = json.loads(gitsched("history", "web", "-m", "1", "-o", "json").stdout)
    (entry,) = found["entries"]
    assert (found["kind"], entry["commit"][:10], found["next"][:10]) == ("History", place, first)
    assert (entry["moves"][0]["before"], entry["moves"][0]["after"]) == (
        [{"cluster": "one", "replicas": 2}],
        [{"cluster": "two", "replicas": 2}],
    )


FILTERS: list[tuple[dict[str, Any], int]] = [
    ({"workload": "shop/web"}, 2),
    ({"workload": "deployment.apps/shop/w*"}, 2),
    ({"workload": "deployment/web"}, 2),
    ({"workload": "Service/shop/web"}, 0),
    ({"workload": "service/web"}, 0),
    ({"namespace": "other"}, 0),
    ({"cluster": "two"}, 1),
    ({"since": datetime(2026, 3, 2, 9, 0, 15, tzinfo=UTC)}, 2),
    ({"until": datetime(2026, 3, 2, 9, 0, 15, tzinfo=UTC)}, 1),
    ({}, 3),
]


def test_filters_choose_commits_by_workload_cluster_and_time(moved: Path) -> None:
    assert [read(moved, **chosen)[0].count("\n\n") for chosen, _ in FILTERS] == [number for _, number in FILTERS]


def test_what_since_and_until_leave_out_is_reported(moved: Path, gitsched: Run) -> None:
    older = "older commits are left out: before 2026-03-02T09:00:15Z"
    newer = "1 newer commit is left out: after 2026-03-02T12:00:00Z"
    period = ("--since", "2026-03-02T09:00:15Z", "--until", "2026-03-02T12:00:00Z")
    assert gitsched("history", *period).stdout.endswith(f"\nnote: {newer}\nnote: {older}\n")
    assert json.loads(gitsched("history", *period, "-o", "json").stdout)["leftOut"] == [newer, older]
    page = gitsched("history", *period, "--cluster", "two", "-o", "html").stdout
    assert all(text in page for text in (newer, older, "Only changes of: cluster two."))
    assert "left out" not in gitsched("history", "--since", "2026-03-01", "--until", "2026-03-04").stdout


def test_a_name_that_the_output_does_not_have_gets_a_suggestion(moved: Path, gitsched: Run) -> None:
    for words, answer in (
        (("wbe",), "; there is no workload 'wbe' now; did you mean web?"),
        (("shop/wbe",), "; there is no workload 'shop/wbe' now; did you mean shop/web?"),
        (("--cluster", "twoo"), "; there is no cluster 'twoo'; did you mean two?"),
        (("--cluster", "mars"), "; there is no cluster 'mars'; there are: one, two."),
        (
            ("deploy", "web", "-n", "shop", "--until", "2020-01-01"),
            ".\nnote: 3 newer commits are left out: after 2020-01-01T00:00:00Z",
        ),
    ):
        assert gitsched("history", *words).stdout == f"No commit matches{answer}\n"


def test_the_history_of_a_remote_is_fetched_as_far_as_it_is_shown(
    moved: Path, git: Git, commit: Commit, gitsched: Run, tmp_path: Path
) -> None:
    """Runs fetch the newest commits alone, of the output and of the source."""
    url = moved.as_uri()
    settings = RunSettings(now=EPOCH, location=url, cache=tmp_path / "own")
    reconcile(settings)
    commit(moved, two=CLUSTER.format(name="two", owner="private") + "  zones: [a]\n")
    reconcile(settings)
    local = json.loads(gitsched("history", "-o", "json").stdout)["entries"]
    assert len(local) > 3
    chosen = ("history", "-o", "json", "-C", url, "--cache-dir")
    for cache in (str(tmp_path / "own"), str(tmp_path / "new")):
        assert json.loads(gitsched(*chosen, cache).stdout)["entries"] == local
    history = open_run_history(settings, "placements", git("rev-parse", "placements", at=moved), "")
    assert [entry.commit for entry in history.read_entries(50)] == [entry["commit"] for entry in local]
    assert history.end == ""


def test_what_is_missing_or_damaged_is_named_and_the_rest_is_shown(
    moved: Path, git: Git, commit: Commit, gitsched: Run, tmp_path: Path
) -> None:
    git("clone", "-q", "--depth", "1", "--no-single-branch", moved.as_uri(), "shallow", at=tmp_path)
    git("branch", "placements", "origin/placements", at=tmp_path / "shallow")
    text, history = read(tmp_path / "shallow")
    assert "what it changed is not known" in text
    assert "the clone is shallow" in history.end

    git("checkout", "-q", "placements", at=moved)
    (moved / "placements/shop/deployment-web.yaml").write_text("{{{")
    (moved / "gitsched.json").write_text("{{{")
    commit(moved)
    damaged = git("rev-parse", "placements", at=moved)
    git("checkout", "-q", "main", at=moved)
    text, _ = read(moved)
    assert "? Deployment shop/web: two 2 -> unknown\n      the record after cannot be read" in text
    assert "gitsched.json cannot be read" in text
    assert text.count("\n\n") == 4

    git("branch", "-qf", "placements", "placements~2", at=moved)
    text, history = read(moved)
    assert damaged[:10] not in text
    assert any(f"from {damaged[:10]} to" in note for note in history.list_notes())
    assert damaged[:10] in read(moved, start=damaged)[0]

    git("reset", "-q", "--hard", "HEAD~", at=moved)
    gitsched("reconcile", "--allow-older")
    assert "the source went back from" in read(moved)[0]


FACTS = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterFacts
metadata: {{name: {name}}}
status:
  observedAt: "{time}"
  ready: {{status: "{ready}"}}
"""
SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: fleet}
spec:
  karmada: {failover: cluster}
  source: {facts: {branch: facts, staleAfter: 1h, stale: evict}}
"""


def test_failover_by_a_condition_in_facts_has_the_taint_and_the_line_of_the_condition(
    fleet: Path, git: Git, commit: Commit, gitsched: Run
) -> None:
    commit(fleet, gitsched=SETTINGS)
    git("checkout", "-q", "--orphan", "facts", at=fleet)
    git("rm", "-rqf", ".", at=fleet)
    for second, ready in ((30, "True"), (40, "False"), (50, "True")):
        time = f"2026-03-02T09:00:{second}Z"
        if second > 30:
            git("checkout", "-q", "facts", at=fleet)
        one, two = (FACTS.format(name=name, time=time, ready=value) for name, value in (("one", ready), ("two", "True")))
        commit(fleet, one=one, two=two)
        git("checkout", "-q", "main", at=fleet)
        assert gitsched("reconcile", "--now", time).returncode == 0
    assert gitsched("reconcile", "--now", "2026-03-02T10:30:00Z").returncode == 0
    lines = read(fleet)[0].splitlines()
    assert [line for line in lines if line.startswith(("  cause:", "  failover:"))] == [
        "  cause: a deadline",
        "  cause: facts about clusters",
        "  failover: one evicts nothing any more; removed: the taint cluster.karmada.io/not-ready:NoExecute (facts:one.yaml:6)",
        "  cause: facts about clusters: failover from one",
        "  failover: one evicts workloads by the taint cluster.karmada.io/not-ready:NoExecute: its condition Ready is False "
        "(facts:one.yaml:6)",
        "  cause: facts about clusters",
    ]
    assert next(line for line in lines if "staleAfter" in line).startswith("  the facts about 2 clusters are older than")
    entries = json.loads(gitsched("history", "-o", "json").stdout)["entries"]
    assert {each["addedBy"] for each in entries[2]["taints"]} == {"its condition Ready is False"}
    names = {"cluster", "taint", "added", "evicts", "location", "addedBy", "fromFacts"}
    assert {name for each in entries[2]["taints"] for name in each} == names


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.:-]{0,30}[a-z0-9])?", fullmatch=True)
GROUPS = st.sampled_from(("", "apps", "batch", "example.com", "cert-manager.io", "a.b-c.io", "no-domain", "x"))


@settings(max_examples=count_examples(20))
@given(GROUPS, st.sampled_from(("Deployment", "Job", "ConfigMap")), st.one_of(st.just(""), NAMES), NAMES)
def test_the_path_of_a_record_leads_back_to_its_workload(group: str, kind: str, namespace: str, name: str) -> None:
    path = placement_path(Key(group, kind, namespace, name)).removeprefix("placements/")
    found = read_placement_key(path)
    assert found is not None
    assert (found.kind, found.namespace, found.name) == (kind.lower(), namespace, name)
    assert found.group == group or kind == "Deployment"


def test_long_lines_are_wrapped_at_the_width_of_the_terminal(moved: Path, gitsched: Run) -> None:
    """Continuations are indented further, and no word is lost."""
    wide, narrow = (gitsched("history", "web", COLUMNS=width).stdout for width in ("500", "40"))
    texts = [gitsched("history", COLUMNS=width).stdout for width in ("500", "80")]
    assert all(one.split() == other.split() for one, other in ((narrow, wide), texts))
    assert max(map(len, narrow.splitlines()[1:3])) <= 40
    assert "\n    Change (Ada)\n" in texts[1]
    assert "\n  drain: one is drained by the taint\n      power:NoExecute (one.yaml:9)\n" in narrow


@pytest.mark.parametrize(
    ("removed", "file", "reason"),
    [
        ({"policy": None}, "policy.yaml", "no policy selects it any more: PropagationPolicy/shop/web is gone (policy.yaml)"),
        ({"web": None}, "web.yaml", "its document is gone: web.yaml had it"),
        (
            {"policy": POLICY.replace("kind: Deployment, name: web", "kind: Deployment, name: api")},
            "policy.yaml",
            "no policy selects it any more: PropagationPolicy/shop/web has changed (policy.yaml)",
        ),
        (
            {"web": WORKLOAD.replace("namespace: shop", "namespace: other")},
            "web.yaml",
            "its document is gone: web.yaml had it",
        ),
    ],
)
def test_the_file_that_decides_comes_first_and_why_a_workload_is_nowhere_is_known(
    fleet: Path, commit: Commit, gitsched: Run, removed: dict[str, str | None], file: str, reason: str
) -> None:
    others = {f"a{number}": f"# {{}}\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{number}}}\n" for number in range(8)}
    commit(fleet, **others, zapi=WORKLOAD.replace("name: web", "name: api"))
    gitsched("reconcile", "--now", "2026-03-02T09:00:40Z")
    commit(fleet, **{name: text + "data: {a: b}\n" for name, text in others.items()}, **removed)
    gitsched("reconcile", "--now", "2026-03-02T09:01:00Z")
    text, _ = read(fleet, 1)
    assert f"\n  files: {file}, a0.yaml, a1.yaml, a2.yaml, a3.yaml and 4 more\n" in text
    assert f"\n  - Deployment shop/web: one 2 -> removed\n      {reason}\n" in text
