"""Each command with a real repository."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import yaml

from gitsched.cli.scenario_values import parse_scaling
from gitsched.cli.workload_names import parse_clusters, parse_kind, parse_pattern, parse_words, parse_workloads
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.reconcile.review.resource_names import complete_name, describe_missing
from tests.cli.conftest import CLUSTER, POLICY, WORKLOAD

TAINT = "  taints:\n    - {key: power, effect: NoExecute}\n"
BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n"
Run = Callable[..., subprocess.CompletedProcess[str]]


def places(text: str) -> dict[str, dict[str, int]]:
    found = json.loads(text)["placements"]
    return {entry["workload"]["name"]: {share["cluster"]: share["replicas"] for share in entry["clusters"]} for entry in found}


def test_a_plan_writes_nothing_and_reconcile_makes_the_planned_moves(gitsched: Run, fleet: Path, git: Callable[..., str]) -> None:
    before = git("for-each-ref", at=fleet)
    planned = gitsched("plan", "-o", "json")
    assert git("for-each-ref", at=fleet) == before
    done = gitsched("reconcile", "-o", "json")
    assert planned.returncode == done.returncode == 0
    assert places(planned.stdout) == places(done.stdout) == {"web": {"one": 2}}
    assert json.loads(planned.stdout)["output"]["after"] is None
    assert json.loads(done.stdout)["output"]["after"] == git("rev-parse", "placements", at=fleet)


def test_detailed_exit_code_reports_changes(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    assert gitsched("plan", "--detailed-exitcode").returncode == 2
    assert gitsched("reconcile").returncode == 0
    same = gitsched("plan", "--detailed-exitcode")
    assert (same.returncode, "No changes" in same.stdout) == (0, True)
    (fleet / "one.yaml").write_text((fleet / "one.yaml").read_text() + TAINT)
    assert gitsched("plan", "--detailed-exitcode").returncode == 0
    moved = gitsched("plan", "--worktree", "--detailed-exitcode", "-o", "json")
    assert (moved.returncode, places(moved.stdout)) == (2, {"web": {"two": 2}})
    commit(fleet, bad=BROKEN)
    assert gitsched("plan", "--detailed-exitcode").returncode == 1


def test_an_invalid_file_fails_the_run_but_valid_changes_are_committed(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    commit(fleet, bad=BROKEN)
    done = gitsched("reconcile")
    assert done.returncode == 1
    assert "bad.yaml:5:3: error:" in done.stdout
    assert "Committed" in done.stdout
    assert gitsched("validate", "--fail-on", "none").returncode == 0


def test_an_unplaced_workload_fails_a_run_only_on_request(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, one=None, two=None)
    assert gitsched("plan").returncode == 0
    assert gitsched("plan", "--fail-on", "unschedulable").returncode == 1


def test_the_last_line_says_which_warnings_fail_a_plan_or_a_run(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    gitsched("reconcile")
    commit(fleet, one=CLUSTER.format(name="one", owner="privte"))
    for arguments, reason in (("plan HEAD~1 HEAD", "1 new warning"), ("plan", "1 warning"), ("reconcile", "1 warning")):
        done = gitsched(*arguments.split(), "--fail-on", "warning")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (1, f"exit 1: {reason}")


def test_a_workload_that_becomes_unplaced_fails_its_review_and_a_deleted_one_does_not(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    commit(fleet, one=None)
    assert gitsched("reconcile").returncode == 0
    commit(fleet, policy=None)
    gone = gitsched("plan", "HEAD~1", "HEAD")
    assert gone.returncode == 1
    assert "Deployment shop/web becomes unplaced and stops: it leaves all of its clusters (1 cluster, 2 replicas)" in gone.stdout
    assert "PropagationPolicy/shop/web removed" in gone.stdout
    assert gitsched("plan", "HEAD~1", "HEAD", "--fail-on", "none").returncode == 0
    assert gitsched("plan").returncode == 0, "only a comparison with a commit says what this change does"
    commit(fleet, other=WORKLOAD.replace("name: web", "name: other"))
    assert gitsched("plan", "HEAD~1", "HEAD").returncode == 0, "what was unplaced before fails no review"
    commit(fleet, policy=POLICY, web=WORKLOAD.replace("replicas: 2", "replicas: 0"))
    assert gitsched("plan", "HEAD~3", "HEAD").returncode == 1
    commit(fleet, web=None)
    deleted = gitsched("plan", "HEAD~4", "HEAD")
    assert (deleted.returncode, "Deployment shop/web is removed: it leaves all of its clusters" in deleted.stdout) == (0, True)


def test_a_plan_accepts_a_range_of_commits_as_git_does(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    wanted = gitsched("plan", "HEAD~1", "HEAD").stdout
    assert "0 -> 2" not in wanted
    for given in ("HEAD~1..HEAD", "HEAD~1..", "HEAD~1...HEAD"):
        assert gitsched("plan", given).stdout == wanted
    reverse = " ".join(gitsched("plan", "HEAD..HEAD~1").stdout.split())
    assert "HEAD contains HEAD~1, so the merge changes nothing. What HEAD changes: gitsched plan HEAD~1 HEAD" in reverse
    assert gitsched("plan", "HEAD~1..HEAD", "HEAD").returncode == 1


def test_validate_reads_the_worktree_a_path_or_a_revision(gitsched: Run, fleet: Path) -> None:
    (fleet / "bad.yaml").write_text(BROKEN)
    (fleet / "apps").mkdir()
    found = gitsched("validate", "-o", "json")
    assert found.returncode == 1
    assert json.loads(found.stdout)["counts"]["error"] == 1
    assert gitsched("validate", "bad.yaml").returncode == 1
    assert gitsched("validate", "apps").returncode == 0
    for name in ("apps/other.yaml", "other.yaml"):
        (fleet / name).write_text(WORKLOAD.replace("namespace: shop", "namespace: other"))
    found = gitsched("validate", "apps").stdout
    assert "this one is in other (apps/other.yaml:" in found
    assert "(other.yaml:" not in found
    assert gitsched("validate", "HEAD").returncode == 0
    assert gitsched("validate", "no-such-revision").returncode == 1


def test_explain_shows_selected_and_rejected_clusters(gitsched: Run) -> None:
    for words in (("-n", "shop", "deploy/web"), ("DEPLOYMENTS/shop/web",)):
        found = gitsched("explain", *words)
        assert found.returncode == 0, found.stderr
        assert "PropagationPolicy/shop/web" in found.stdout
        assert "policy.yaml:" in found.stdout
    data = yaml.safe_load(gitsched("explain", "deploy/shop/web", "-o", "yaml").stdout)
    assert data["result"] == [{"cluster": "one", "replicas": 2}]
    assert gitsched("explain", "-n", "shop", "deploy/missing").returncode == 1


def test_schedule_needs_no_repository_and_gives_the_same_bytes(gitsched: Run, fleet: Path, tmp_path: Path) -> None:
    text = "---\n".join(path.read_text() for path in sorted(fleet.glob("*.yaml")))
    first = gitsched("schedule", "-f", "-", data=text, at=tmp_path)
    files = [word for path in sorted(fleet.glob("*.yaml")) for word in ("-f", str(path))]
    second = gitsched("schedule", *files, at=tmp_path)
    assert (first.returncode, first.stdout) == (0, second.stdout)
    binding = next(iter(yaml.safe_load_all(first.stdout)))
    assert binding["spec"]["clusters"] == [{"name": "one", "replicas": 2}]
    (tmp_path / "before.yaml").write_text(first.stdout)
    again = gitsched("schedule", "-f", "-", "--previous", "before.yaml", "-o", "json", data=text, at=tmp_path)
    assert json.loads(again.stdout)["items"] == [binding]
    assert gitsched("schedule", at=tmp_path).returncode == 2


def test_init_writes_valid_files_and_never_overwrites(gitsched: Run, fleet: Path) -> None:
    assert gitsched("init").returncode == 0
    assert gitsched("validate").returncode == 0
    (fleet / "gitsched.yaml").write_text("mine\n")
    assert "kept  gitsched.yaml" in gitsched("init").stdout
    assert (fleet / "gitsched.yaml").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("api", "placed"),
    [("karmada", "private-1"), ("ocm", "private-1"), ("krake", "shop.dresden-1"), ("knative", "events")],
)
def test_the_files_of_init_are_a_fleet_that_places_a_workload(
    gitsched: Run, tmp_path: Path, git: Callable[..., str], api: str, placed: str
) -> None:
    place = tmp_path / "start"
    place.mkdir()
    done = gitsched("init", "--api", api, at=place)
    assert (done.returncode, "git init" in done.stdout) == (0, True)
    git("init", "-q", ".", at=place)
    assert "git init" not in gitsched("init", at=place).stdout, "the API of the documents is recognized"
    planned = json.loads(gitsched("plan", "--worktree", "-o", "json", at=place).stdout)
    assert [after["cluster"] for move in planned["moves"] for after in move["after"]] == [placed]
    assert all(finding["severity"] == "info" for finding in planned["findings"]), planned["findings"]


def test_init_commits_its_own_files(gitsched: Run, tmp_path: Path, git: Callable[..., str]) -> None:
    (tmp_path / "start").mkdir()
    done = gitsched("init", "--commit", at=tmp_path / "start")
    assert (done.returncode, "wrote gitsched.yaml" in done.stdout, "committed these files" in done.stdout) == (0, True, True)
    (tmp_path / "start/mine").write_text("not added\n")
    assert git("status", "--porcelain", at=tmp_path / "start") == "?? mine"
    assert "committed" not in gitsched("init", "--commit", at=tmp_path / "start").stdout, "there is nothing new"


def test_commands_that_read_a_commit_note_uncommitted_files(gitsched: Run, fleet: Path) -> None:
    assert "note:" not in gitsched("plan").stderr
    (fleet / "report.txt").write_text("no manifest")
    assert "note:" not in gitsched("plan").stderr
    (fleet / "more.yaml").write_text("kind: [")
    for words in (["plan"], ["explain", "-n", "shop", "deploy/web"], ["simulate", "--lose", "one"]):
        assert gitsched(*words).stderr == "note: 1 uncommitted file is not in this plan; --worktree includes it\n"
    assert gitsched("reconcile").stderr == "note: 1 uncommitted file is not reconciled: commit it first\n"
    assert gitsched("validate").stderr == "note: 1 uncommitted file is validated, too; plan and reconcile read commits\n"
    assert "note:" not in gitsched("plan", "--worktree").stderr


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("plan", "--nonsense"),
        ("plan", "--now", "yesterday"),
        ("plan", "--worktree", "main", "HEAD"),
        ("reconcile", "--author", "Ada"),
        ("reconcile", "--sign", "pen:ink"),
        ("explain", "a", "b", "c", "d"),
        ("schedule", "-f", "missing.yaml"),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2_and_no_traceback(gitsched: Run, words: tuple[str, ...]) -> None:
    done = gitsched(*words)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)


def test_exit_code_is_1_for_a_missing_repository_and_4_for_an_unreachable_one(gitsched: Run, tmp_path: Path) -> None:
    assert gitsched("plan", "-C", str(tmp_path / "nowhere")).returncode == 1
    done = gitsched("plan", "-C", "http://127.0.0.1:9/fleet.git")
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)


def test_logs_can_be_written_as_json(gitsched: Run) -> None:
    done = gitsched("watch", "--once", "--log-format", "json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, done.stdout) == (0, "")
    assert any(line.get("event") == "run" and line["commit"] for line in lines)


HELP = """\
import sys
from gitsched.cli import COMMANDS, main
for words in ["--help"], ["version"], *([verb, "--help"] for verb in COMMANDS):
    if code := main(words):
        sys.exit(f"{words}: exit code {code}")
    if found := {"pygit2", "rich", "jsonschema", "jsonschema_rs", "yaml", "watchfiles", "jinja2"} & set(sys.modules):
        sys.exit(f"{words}: imported {sorted(found)}")
"""


def test_help_and_version_import_no_heavy_modules(environment: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", HELP], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("deploy", "Deployment"),
        ("ConfigMaps", "ConfigMap"),
        ("ingresses", "Ingress"),
        ("networkpolicies", "NetworkPolicy"),
        ("sts", "StatefulSet"),
        ("magnumclusters", "MagnumCluster"),
        ("app", "Application"),
        ("PostgresCluster", "PostgresCluster"),
    ],
)
def test_kinds_can_be_abbreviated_as_in_kubectl(text: str, kind: str) -> None:
    assert parse_kind(text) == kind
    assert parse_words((f"{text}/a/b",), None) == (kind, "a", "b")


WORDS: list[tuple[tuple[str, ...], str | None, tuple[str, str | None, str]]] = [
    (("cluster", "eu-1"), None, ("Cluster", None, "eu-1")),
    (("deploy", "api"), "x", ("Deployment", "x", "api")),
    (("deploy/api",), None, ("Deployment", None, "api")),
    (("deploy/x/api",), None, ("Deployment", "x", "api")),
    (("deploy", "x/api"), "x", ("Deployment", "x", "api")),
    (("api",), "x", ("", "x", "api")),
    (("shop/api",), None, ("shop", None, "api")),
]


def test_names_are_read_as_people_type_them() -> None:
    for words, namespace, expected in WORDS:
        assert parse_words(words, namespace) == expected
    for words in (("a", "b", "c", "d"), ("a//b",), ("",)):
        with pytest.raises(click.UsageError):
            parse_words(words, None)
    assert parse_workloads(("deploy", "api", "web"), "x") == [("Deployment", "x", "api"), ("Deployment", "x", "web")]
    assert parse_workloads(("api", "sts/db"), None) == [("", None, "api"), ("StatefulSet", None, "db")]
    assert parse_pattern(("deploy", "ap*")) == parse_pattern(("deployments/ap*",)) == "Deployment/ap*"
    assert [parse_pattern(("shop/api",)), parse_pattern(())] == ["shop/api", ""]
    assert (
        parse_clusters(("cluster", "eu-1", "eu-2")) == parse_clusters(("cluster/eu-1", "managedcluster/eu-2")) == ("eu-1", "eu-2")
    )
    assert [parse_clusters(("cluster",)), parse_clusters(())] == [("cluster",), ()]
    assert parse_scaling("sts/db=2")[3:6] == ("StatefulSet", "*", "db")
    assert parse_scaling("shop/db=2")[3:6] == ("*", "shop", "db")


WEB, SERVICE, JOB = (
    Key(*parts) for parts in (("apps", "Deployment", "shop", "web"), ("", "Service", "shop", "web"), ("batch", "Job", "job", "web"))
)
POLICY_KEY, CLUSTER_KEY = (
    Key("policy.karmada.io", "PropagationPolicy", "shop", "all"),
    Key("cluster.karmada.io", "Cluster", "", "one"),
)


def test_a_name_alone_is_the_workload_the_only_object_or_the_cluster() -> None:
    known = (WEB, SERVICE, JOB, POLICY_KEY, CLUSTER_KEY)
    assert (
        complete_name(known, "", "shop", "web") == complete_name(known, "shop", None, "web") == ("Deployment.apps", "shop", "web")
    )
    assert complete_name(known, "", None, "all") == ("PropagationPolicy.policy.karmada.io", "shop", "all")
    assert complete_name(known, "", None, "one") == ("Cluster.cluster.karmada.io", "", "one")
    assert complete_name(known, "Service", "shop", "web") == ("Service", "shop", "web")
    assert complete_name(known, "deployment", None, "web") == ("Deployment.apps", "shop", "web")
    assert complete_name(known, "Deployment", None, "other") == ("Deployment", "", "other")
    with pytest.raises(Permanent, match="'web' stands for deployment/shop/web, job/job/web, service/shop/web: give the kind"):
        complete_name(known, "", None, "web")
    assert describe_missing(known, "", "", "wbe") == "there is no workload and no cluster 'wbe'; did you mean web?"
    assert describe_missing(known, "", "x", "web").endswith("; there is one of that name in: job, shop")


def test_help_has_the_own_options_first_and_the_exit_codes(gitsched: Run) -> None:
    text = gitsched("history", "--help").stdout
    titles = re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE)
    assert titles == ["Options", "Source and output", "Reports and logs", "Exit codes"]
    assert text.index("--since") < text.index("Source and output:") < text.index("--repo") < text.index("--color")
    assert "2  wrong usage; with --detailed-exitcode also: something is wrong" in gitsched("status", "--help", COLUMNS="200").stdout


def test_a_label_that_no_cluster_has_is_named_where_nothing_is_placed(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    commit(fleet, **{name: CLUSTER.format(name=name, owner="x").replace("ownership", "owner") for name in ("one", "two")})
    done = gitsched("plan")
    assert done.returncode == 0
    assert (
        " and place 0 of 1 workload. PropagationPolicy/shop/web: no cluster has the label ownership; did you mean owner? (policy.yaml:12)."
        in done.stdout
    )


def test_a_cluster_that_does_not_exist_is_named_where_nothing_is_placed(
    gitsched: Run, fleet: Path, commit: Callable[..., None]
) -> None:
    policy = (fleet / "policy.yaml").read_text()
    commit(fleet, policy=re.sub(r"( +)labelSelector: .*", r"\1clusterNames: [oen]", policy))
    unknown = "PropagationPolicy/shop/web names clusters without a Cluster document: oen"
    assert f" and place 0 of 1 workload. {unknown}" in gitsched("plan").stdout.splitlines()[0]


def test_the_guard_withholds_many_removals_until_they_are_allowed(
    gitsched: Run, fleet: Path, git: Callable[..., str], commit: Callable[..., None]
) -> None:
    text, policy = (fleet / "web.yaml").read_text(), (fleet / "policy.yaml").read_text()
    many = {f"web-{n}": text.replace("name: web", f"name: web-{n}") for n in range(11)}
    commit(fleet, policy=policy.replace(", name: web}", "}"), **many)
    assert gitsched("reconcile").returncode == 0
    before = git("rev-parse", "placements:clusters/one/shop", at=fleet)
    commit(fleet, policy=policy.replace("name: web}", "name: wbe}"))
    planned = gitsched("plan")
    assert (planned.returncode, "a run leaves out 12 changes" in planned.stdout) == (1, True), planned.stdout
    withheld = gitsched("reconcile", "--fail-on", "none")
    assert (withheld.returncode, "Withheld by the guard: 12 changes." in withheld.stdout) == (1, True), withheld.stdout
    assert "12 of 12 workloads would be removed from the fleet (limit: 20 %)" in withheld.stdout
    assert git("rev-parse", "placements:clusters/one/shop", at=fleet) == before
    digest = json.loads(gitsched("plan", "-o", "json").stdout)["withheld"]["digest"]
    assert f"--allow {digest}" in withheld.stdout
    assert gitsched("reconcile", "--allow", digest).returncode == 0
    assert "clusters/one/shop/" not in git("ls-tree", "-r", "--name-only", "placements", at=fleet)
