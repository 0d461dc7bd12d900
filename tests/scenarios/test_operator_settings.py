"""The operator's settings file: what it decides, and which files are refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gitsched.model.allow_list import parse_host_rule
from gitsched.model.errors import Permanent
from gitsched.reconcile import Reconciler
from gitsched.reconcile.run import open_context
from tests.scenarios.conftest import Fleet, at_hour, deployment, execute
from tests.scenarios.test_hostile_settings import HEAD, NOTHING
from tests.scenarios.test_repository_locations import bare

OPERATOR = "apiVersion: gitsched.io/v1alpha1\nkind: OperatorConfig\nspec:\n"


def write(path: Path, spec: str) -> Path:
    path.write_text(OPERATOR + spec)
    return path


def test_the_file_says_where_decisions_go(pair: Fleet, tmp_path: Path) -> None:
    other = bare(tmp_path / "other.git")
    pair.commit({"gitsched.yaml": f"{HEAD}  output: {{repository: /srv/stranger.git, branch: stolen}}\n"})
    text = f"  output: {{repository: '{other}', branch: fleet, path: north, author: {{name: Ops, email: ops@example.com}}}}\n"
    run = pair.reconcile(operator_file=write(tmp_path / "operator.yaml", text), **NOTHING)
    assert run.branch == "fleet"
    assert execute("log", "-1", "--format=%an <%ae>", "fleet", at=other) == "Ops <ops@example.com>"
    assert execute("ls-tree", "--name-only", "fleet", at=other) == "north"
    assert [finding.message.partition(" is ")[0] for finding in run.plan.findings if finding.code == "setting-ignored"] == [
        "output.repository"
    ]
    assert pair.head is None


def test_options_take_precedence_over_the_file(pair: Fleet, tmp_path: Path) -> None:
    spec = """\
  output: {branch: fleet}
  allow: {hosts: {metrics: [a.example.com], statuses: [b.example.com]}, tokens: [{env: TOKEN}]}
  guard: {fleet: {removed: 5, moved: 6}}
"""
    option = parse_host_rule("c.example.com")
    given: dict[str, Any] = {**NOTHING, "hosts": ((option,),), "output_branch": "other"}
    settings = open_context(pair.settings(operator_file=write(tmp_path / "operator.yaml", spec), **given)).settings
    assert settings.output_branch == "other"
    assert settings.allow.metrics == (option,)
    assert [rule.host for rule in settings.allow.statuses] == ["b.example.com"]
    assert [rule.name for rule in settings.allow.tokens] == ["TOKEN"]
    assert [(limit.effect, limit.percent) for limit in settings.choices.guard_limits] == [("removed", 5), ("moved", 6)]


REFUSED = {
    "unknown field": ("  allow: {host: {}}\n", "host"),
    "malformed host": ("  allow: {hosts: {metrics: ['https://a/b']}}\n", "spec.allow.hosts.metrics.0"),
    "relative file": ("  allow: {tokens: [{file: token}]}\n", "not an absolute path"),
    "two sources of a token": ("  allow: {tokens: [{file: /token, env: TOKEN}]}\n", "but not both"),
    "two documents": (f"  {{}}\nmetadata: {{name: o}}\n---\n{HEAD}  {{}}\n", "must be one document"),
    "no YAML": ("  [\n", "not valid"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_with_a_mistake_is_refused(pair: Fleet, tmp_path: Path, case: str) -> None:
    text, expected = REFUSED[case]
    with pytest.raises(Permanent, match=expected):
        pair.preview(operator_file=write(tmp_path / "operator.yaml", text))


@pytest.mark.parametrize("place", ["operator.yaml", ".git/operator.yaml"])
def test_a_file_in_the_source_repository_is_refused(pair: Fleet, tmp_path: Path, place: str) -> None:
    inside = write(pair.path / place, "  {}\n")
    link = tmp_path / "link.yaml"
    link.symlink_to(inside)
    for path in (inside, link):
        with pytest.raises(Permanent, match="in the source repository"):
            pair.preview(operator_file=path)


def test_a_file_beside_the_source_repository_is_read(pair: Fleet) -> None:
    write(pair.path.parent / "beside.yaml", "  {}\n")
    pair.preview(operator_file=pair.path / ".." / "beside.yaml")


def test_a_missing_file_is_refused(pair: Fleet, tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="cannot be read"):
        pair.preview(operator_file=tmp_path / "missing.yaml")


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """Public SSH keys by name; the private ones are beside this test's repository."""
    made = {}
    for name in ("ann", "eve"):
        path = str(tmp_path / name)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True)
        made[name] = (tmp_path / f"{name}.pub").read_text().strip()
    return made


def sign(fleet: Fleet, tmp_path: Path, name: str) -> None:
    """Sign the newest source commit."""
    options = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={tmp_path / name}")
    fleet.git(*options, "commit", "--amend", "-q", "--no-edit", "-S")


def require(*keys: str) -> str:
    return f"{HEAD}  source:\n    verify:\n      keys: [{', '.join(keys)}]\n"


@pytest.mark.needs("ssh-keygen")
def test_a_required_signature_takes_effect_with_the_commit_that_requires_it(
    pair: Fleet, tmp_path: Path, keys: dict[str, str]
) -> None:
    pair.reconcile()
    head = pair.head
    pair.commit({"gitsched.yaml": require(keys["ann"])}, hour=1)
    with pytest.raises(Permanent, match="it has no signature; one of the listed keys must sign it"):
        pair.reconcile(1)
    assert "source-unsigned" in {finding.code for finding in pair.preview(1).plan.findings}
    sign(pair, tmp_path, "ann")
    pair.reconcile(1)
    note = json.loads(pair.git("log", "-1", "--format=%N", "--notes=hydrator.metadata", "placements"))
    assert note["drySha"] == note["reconciled"]["placements"]["source"] == pair.git("rev-parse", "HEAD")
    pair.commit({"apps/web.yaml": None}, hour=2)
    with pytest.raises(Permanent, match="it has no signature"):
        pair.reconcile(2)
    assert head is not None


@pytest.mark.needs("ssh-keygen")
def test_a_commit_cannot_add_the_key_that_accepts_it_or_drop_the_requirement(
    pair: Fleet, tmp_path: Path, keys: dict[str, str]
) -> None:
    pair.commit({"gitsched.yaml": require(keys["ann"])})
    sign(pair, tmp_path, "ann")
    pair.reconcile()
    for text in (require(keys["ann"], keys["eve"]), HEAD.replace("spec:\n", "spec: {}\n")):
        pair.commit({"gitsched.yaml": text}, hour=1)
        sign(pair, tmp_path, "eve")
        with pytest.raises(Permanent, match="none of the listed keys"):
            pair.reconcile(1)


@pytest.mark.needs("ssh-keygen")
def test_the_keys_of_the_operator_take_precedence(pair: Fleet, tmp_path: Path, keys: dict[str, str]) -> None:
    pair.commit({"gitsched.yaml": require(keys["eve"])})
    sign(pair, tmp_path, "eve")
    file = write(tmp_path / "operator.yaml", f"  verify: {{keys: [{keys['ann']}]}}\n")
    with pytest.raises(Permanent, match="none of the listed keys"):
        pair.reconcile(operator_file=file)
    sign(pair, tmp_path, "ann")
    assert pair.reconcile(operator_file=file).changed
    nothing = write(tmp_path / "operator.yaml", "  verify: {keys: []}\n")
    pair.commit({"apps/new.yaml": None} if (pair.path / "apps/new.yaml").exists() else {"note.txt": "x"}, hour=1)
    pair.reconcile(1, operator_file=nothing)


def test_a_resident_process_uses_the_settings_that_the_file_has_now(pair: Fleet, tmp_path: Path) -> None:
    """While the file is broken nothing is written."""
    file = write(tmp_path / "operator.yaml", "  output: {branch: one}\n")
    session = Reconciler(pair.settings(operator_file=file))
    assert session.run(at_hour(0)).branch == "one"
    pair.commit({"apps/more.yaml": deployment("more")}, hour=1)
    file.write_text("kind: Nothing\n")
    before = pair.git("for-each-ref")
    with pytest.raises(Permanent, match="operator"):
        session.run(at_hour(1))
    assert pair.git("for-each-ref") == before
    write(tmp_path / "operator.yaml", "  output: {author: {name: Ann, email: ann@example.com}, branch: one}\n")
    assert session.run(at_hour(2)).changed
    assert pair.git("log", "-1", "--format=%an", "one") == "Ann"


def test_settings_of_the_operator_in_the_source_are_not_read(pair: Fleet) -> None:
    pair.commit({"operator.yaml": f"metadata: {{name: operator}}\n{OPERATOR}  output: {{branch: stolen}}\n"})
    run = pair.reconcile()
    assert run.branch == "placements"
    (finding,) = (finding for finding in run.plan.findings if finding.code == "stray-config")
    assert "outside of the source" in finding.message
