"""What a later version of gitsched has written: an earlier one changes none of it, and says in one line what to install."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from gitsched import __version__
from gitsched.cli import main
from gitsched.git.notes import NOTES_REF
from gitsched.model.errors import Permanent
from gitsched.model.history import HistoryFilter
from gitsched.reconcile import Reconciler
from gitsched.reconcile.output.output_history import open_history
from gitsched.render.format_versions import FORMAT_VERSION
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.upgrades.older_form import replace_head

REFUSAL = (
    "gitsched: gitsched.json of the output branch has format version 99, written by gitsched 99.1.0; "
    f"this gitsched {__version__} reads versions up to {FORMAT_VERSION}: install gitsched 99.1.0 or later\n"
)
COMMANDS = (
    ["reconcile"],
    ["reconcile", "--push"],
    ["plan"],
    ["plan", "HEAD~1"],
    ["status"],
    ["explain", "deployment/web"],
    ["simulate", "--lose", "first"],
    ["tree", "first"],
    ["freeze", "audit"],
    ["freeze", "--lift"],
    ["tidy"],
    ["rebalance", "--all-displaced"],
    ["validate"],
    ["adopt", "dump.json"],
    ["export", "krake"],
)
BINDING = "status/work.karmada.io/resourcebinding/default/web-deployment.yaml"


@pytest.fixture
def placed(fleet: Fleet) -> Fleet:
    """A Deployment on two clusters, reconciled; a commit since then adds another one."""
    files = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    fleet.commit({**files, "web.yaml": deployment("web"), "policy.yaml": policy("first,second", scheduling="Divided")})
    fleet.reconcile()
    fleet.commit({"more.yaml": deployment("more")}, hour=1)
    return fleet


@pytest.fixture
def newer(placed: Fleet) -> Fleet:
    """The output branch was written by a later version."""
    replace(placed, formatVersion=99, version="99.1.0")
    return placed


def replace(fleet: Fleet, **members: object) -> None:
    text = json.dumps({name: value for name, value in (fleet.load("gitsched.json") | members).items() if value is not None})
    replace_head(fleet, {"gitsched.json": text.encode()})


def test_each_command_refuses_the_branch_in_one_line_and_moves_nothing(
    newer: Fleet, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    newer.git("remote", "add", "origin", str(newer.path))
    monkeypatch.chdir(newer.path)
    refs = newer.git("for-each-ref", "refs/heads", "refs/notes")
    for arguments in COMMANDS:
        code = main(arguments)
        assert (arguments, code, *capfd.readouterr()) == (arguments, 1, "", REFUSAL)
    assert newer.git("for-each-ref", "refs/heads", "refs/notes") == refs
    assert newer.git("status", "--short") == ""


def test_the_history_lists_the_commit_with_the_reason_that_its_records_are_not_read(newer: Fleet) -> None:
    (entry,) = open_history(newer.settings(), HistoryFilter()).read_entries(10)
    assert [note.partition(";")[0] for note in entry.notes] == [
        "gitsched.json cannot be read: gitsched.json of the output branch has format version 99, written by gitsched 99.1.0"
    ]


def test_a_resident_process_goes_on_once_the_branch_is_one_that_it_reads(placed: Fleet) -> None:
    resident, readable = Reconciler(placed.settings(1)), placed.head
    resident.run(placed.settings(1).now)
    assert placed.head != readable
    replace(placed, formatVersion=99)
    newer = placed.head
    placed.commit({"more.yaml": deployment("more", 4)}, hour=2)
    for _ in range(2):
        with pytest.raises(Permanent, match=r"install a newer gitsched$"):
            resident.run(placed.settings(2).now)
    assert placed.head == newer
    replace(placed, formatVersion=FORMAT_VERSION)
    assert resident.run(placed.settings(2).now).after == placed.head
    assert placed.load("clusters/first/default/deployment-more.yaml")["spec"]["replicas"] == 2


BROKEN = [
    pytest.param(b"{", "is not JSON: Expecting property name", id="no JSON"),
    pytest.param(b"", "is not JSON: Expecting value", id="an empty file"),
    pytest.param(b"[1]", "has no formatVersion: revert", id="no object"),
    pytest.param(b"{}", "has no formatVersion: revert", id="no version"),
    pytest.param(b'{"formatVersion": true}', "has formatVersion true: revert", id="a boolean"),
    pytest.param(b'{"formatVersion": "1"}', 'has formatVersion "1": revert', id="a text"),
    pytest.param(b'{"formatVersion": 1.0}', "has formatVersion 1.0: revert", id="a fraction"),
    pytest.param(b'{"formatVersion": 0}', "has formatVersion 0: revert", id="none that ever was"),
    pytest.param(b'{"formatVersion": 99}', "written by a newer gitsched", id="a newer one without a name"),
    pytest.param(b'{"formatVersion": 99, "version": "1\\n2"}', "written by a newer gitsched", id="a name of two lines"),
    pytest.param(
        f'{{"formatVersion": 99, "version": "{__version__}"}}'.encode(), "written by a newer gitsched", id="the name of this one"
    ),
    pytest.param(None, "the output branch has records, but no gitsched.json: revert", id="no file"),
]


@pytest.mark.parametrize(("data", "message"), BROKEN)
def test_a_branch_whose_metadata_is_broken_is_not_overwritten(placed: Fleet, data: bytes | None, message: str) -> None:
    """A run that began anew would lose holds, overlaps, rollouts and the settings of the guard."""
    head = replace_head(placed, {"gitsched.json": data})
    with pytest.raises(Permanent) as raised:
        placed.reconcile(1)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert placed.head == head


def test_what_is_no_file_is_not_overwritten(placed: Fleet) -> None:
    placed.git("worktree", "add", "-q", "--detach", "../edited", "placements")
    edited = placed.path.parent / "edited"
    (edited / "gitsched.json").unlink()
    (edited / "gitsched.json").symlink_to("README.md")
    placed.git("-C", "../edited", "commit", "-q", "-a", "-m", "Link")
    placed.git("update-ref", "refs/heads/placements", placed.git("-C", "../edited", "rev-parse", "HEAD"))
    with pytest.raises(Permanent, match=r"gitsched\.json of the output branch is no file: revert"):
        placed.reconcile(1)


FUTURE: Sequence[tuple[str, bytes]] = (
    (BINDING, b"gitsched.io/future: '[later]'"),
    (BINDING, b"gitsched.io/seen: '{\"version\": 9}'"),
)


@pytest.mark.parametrize(("path", "annotation"), FUTURE, ids=["unknown", "another form"])
def test_unknown_annotations_of_records_are_ignored_and_removed(placed: Fleet, path: str, annotation: bytes) -> None:
    text = placed.read(path).encode().replace(b"  annotations:\n", b"  annotations:\n    " + annotation + b"\n", 1)
    assert annotation in text
    replace_head(placed, {path: text})
    run = placed.reconcile(1)
    assert [str(move.key) for move in run.plan.moves] == ["Deployment.apps/default/more"]
    assert annotation.decode() not in placed.read(path)


@pytest.mark.parametrize("note", ['{"version": 9, "drySha": {"later": true}}', "v2 deadbeef", "[]"])
def test_a_note_of_another_form_counts_as_none(placed: Fleet, note: str) -> None:
    placed.git("notes", f"--ref={NOTES_REF}", "add", "-f", "-m", note, "placements")
    assert [str(move.key) for move in placed.reconcile(1).plan.moves] == ["Deployment.apps/default/more"]


def test_settings_of_the_operator_for_a_later_version_are_refused(placed: Fleet) -> None:
    file = placed.path.parent / "operator.yaml"
    file.write_text("apiVersion: gitsched.io/v2\nkind: OperatorConfig\nspec: {}\n")
    with pytest.raises(Permanent, match=r"operator\.yaml.*gitsched\.io/v1alpha1"):
        placed.reconcile(1, operator_file=file)
