"""Findings contain the location of an invalid value, but no value that may be secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gitsched
from gitsched.cli import main
from gitsched.manifests.parser import parse_file

from .conftest import Fleet, cluster, policy

SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: shop}
stringData:
  number: !!int CANARY
  fraction: !!float CANARY
  flag: !!bool CANARY
"""


def test_a_wrong_value_in_a_secret_is_not_repeated() -> None:
    problems = parse_file(SECRET.encode(), path="secret.yaml", validate=None).issues
    assert [problem.code for problem in problems] == ["wrong-tag"] * 3
    assert not any("CANARY" in problem.message for problem in problems)


@pytest.mark.parametrize("address", ["http://ada:CANARY@[::1", "https://ada:CANARY@host:port"])
def test_an_address_with_a_password_in_it_is_not_repeated(address: str) -> None:
    cluster = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "one"},
        "spec": {"syncMode": "Push", "apiEndpoint": address},
    }
    findings = [finding for finding in gitsched.validate([cluster]) if finding.severity == "error"]
    assert findings
    assert not any("CANARY" in finding.message for finding in findings)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"kubeconfig": "CANARY"}, id="kubeconfig"),
        pytest.param({"kubeconfig": {"contexts": [{}], "clusters": [{}], "users": "CANARY"}}, id="users of a kubeconfig"),
    ],
)
def test_a_wrong_kubeconfig_is_not_repeated(spec: dict[str, object]) -> None:
    findings = gitsched.validate(
        [{"api": "kubernetes", "kind": "Cluster", "metadata": {"name": "k", "namespace": "n"}, "spec": spec}]
    )
    assert [finding for finding in findings if finding.severity == "error"]
    assert "CANARY" not in str(findings)


def test_a_token_that_yaml_reads_as_a_number_is_not_repeated() -> None:
    spec = {"type": "influx", "influx": {"url": "u", "org": "o", "bucket": "b", "token": 99887766}}
    (finding,) = gitsched.validate([{"api": "core", "kind": "GlobalMetricsProvider", "metadata": {"name": "i"}, "spec": spec}])
    assert "'token' must be a string, not a value that is not shown; quote it" in finding.message


PLACED = "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: default}}\n{more}\n"
WRONG = {
    "text": "stringData: |\n  password: CANARY",
    "encoded": "data: CANARY",
    "number": "data: 8675309",
    "list": "data: [CANARY, {a: CANARY}]\nstringData: [[CANARY]]",
    "base64": 'data: {password: "CANARY!"}',
    "types": "stringData: {a: 8675309, b: [CANARY], c: {d: CANARY}, e: !CANARY x, f: !!CANARY x, g: !!int CANARY}",
    "alias": "stringData: {a: *CANARY}",
    "anchor": "stringData: {a: &CANARY}}",
    "indentation": "stringData:\n  a: CANARY\n CANARY",
    "quote": "stringData:\n  a: 'CANARY",
    "kind": "kind: secret\nstringData: CANARY",
    "members": "type: [a]\nstringData: CANARY\nstringdata: {a: CANARY}",
}
VALUES = "CANARY|8675309"
"""Members of Secrets that API servers refuse."""
COMMANDS = (
    *(("validate", "-o", form) for form in ("text", "json", "yaml")),
    ("validate", "--report", "sarif={tmp}/a.sarif", "--report", "junit={tmp}/a.xml", "--report", "github"),
    *(("plan", "main~1", "main", "-o", form) for form in ("text", "markdown", "json", "yaml", "html")),
    ("plan", "--resilience", "clusters", "--report", "sarif={tmp}/b.sarif", "--report", "junit={tmp}/b.xml"),
    ("plan", "main~1", "main", "--report", "markdown={tmp}/c.md", "--report", "env={tmp}/c.env", "--out", "{tmp}/saved"),
    ("reconcile", "-o", "json", "--report", "sarif={tmp}/d.sarif"),
    *(("explain", name, "-o", form) for name in ("Secret/text", "Secret/good") for form in ("text", "markdown", "json")),
    *(("status", "-o", form) for form in ("text", "json")),
    *(("simulate", "--lose", "cluster/ash", "-o", form) for form in ("text", "markdown", "json", "html")),
    *(("tree", "ash", "-o", form) for form in ("text", "json")),
    *(("history", "-o", form) for form in ("text", "json", "html")),
    ("export", "flux", "--cluster", "ash"),
)
WORK = """\
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {{name: work, namespace: default}}
spec: {{workload: {{manifests: [{{apiVersion: v1, kind: Secret, metadata: {{name: in}}, stringData: {{a: {value}}}}}]}}}}
"""


def test_no_command_shows_a_value_of_a_secret(fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    works = policy("", name="works", kind="ManifestWork").replace("apps/v1", "work.open-cluster-management.io/v1")
    fixed = {"ash.yaml": cluster("ash"), "policy.yaml": policy("", kind="Secret") + "---\n" + works}
    valid = {f"{name}.yaml": PLACED.format(name=name, more="stringData: {a: CANARY}") for name in WRONG}
    good = PLACED.format(name="good", more="stringData: {a: CANARY-1}")
    fleet.commit({**fixed, **valid, "good.yaml": good, "work.yaml": WORK.format(value="CANARY-1")})
    fleet.reconcile()
    wrong = {f"{name}.yaml": PLACED.format(name=name, more=more) for name, more in WRONG.items()}
    wrong["kind.yaml"] = wrong["kind.yaml"].replace("kind: Secret\n", "")
    fleet.commit({**wrong, "good.yaml": good.replace("-1", "-2"), "work.yaml": WORK.format(value="CANARY-2")}, hour=1)
    for command in COMMANDS:
        code = main([*(part.format(tmp=tmp_path) for part in command), "-C", str(fleet.path), "--cache-dir", str(fleet.cache)])
        printed = "".join(capsys.readouterr())
        assert code in (0, 1, 2), (command, printed)
        assert not re.search(f".*(?:{VALUES}).*", printed), command
    written = {str(path): path.read_text() for path in tmp_path.glob("*.*") if path.is_file()}
    assert len(written) >= 7
    written |= {path: fleet.read(path) for path in fleet.files() if path.partition("/")[0] not in ("clusters", "kept")}
    written["messages"] = fleet.git("log", "--format=%B%N", "placements")
    assert not [name for name, text in written.items() if re.search(VALUES, text)]
    found = {finding["path"] for finding in fleet.load("gitsched.json")["findings"] if finding["severity"] == "error"}
    assert found == set(wrong)


KUSTOMIZATIONS = {
    "patch": 'patches: [{target: {kind: Secret}, patch: "kind: Secret\\nstringData: {a: CANARY}\\n- x"}]',
    "value": "replacements: [{source: {kind: Secret, fieldPath: stringData.a.b}, targets: [{select: {kind: Secret}, fieldPaths: [type]}]}]",
    "literal": "secretGenerator: [{name: made, literals: [CANARY]}]",
    "alias": "resources: [alias.yaml]",
}


def test_no_error_of_kustomize_shows_a_value_of_a_secret(fleet: Fleet) -> None:
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: g}\nspec: {source: {kustomize: {build: [k/*]}}}\n"
    files = {"ash.yaml": cluster("ash"), "gitsched.yaml": settings, "policy.yaml": policy("", kind="Secret")}
    for name, text in KUSTOMIZATIONS.items():
        files[f"k/{name}/kustomization.yaml"] = text if name == "alias" else f"resources: [secret.yaml]\n{text}\n"
        files[f"k/{name}/secret.yaml"] = PLACED.format(name=name, more="stringData: {a: CANARY}")
    files["k/alias/alias.yaml"] = PLACED.format(name="alias", more="stringData: {a: *CANARY}")
    fleet.commit(files)
    found = [finding for finding in fleet.reconcile().plan.findings if finding.code == "kustomize-build"]
    assert {finding.location.path.split("/")[1] for finding in found if finding.location} == set(KUSTOMIZATIONS)
    assert not [finding.message for finding in found if "CANARY" in finding.message]
