"""Beyond the limits on what is read of the output branch and of its history, a note or finding says what was not read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from gitsched.apis.gitsched.tenancy import PLATFORM
from gitsched.git.facts import FactsBranch
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.history import HistoryFilter
from gitsched.reconcile import RunResult
from gitsched.reconcile.adoption.running_objects import _list_files
from gitsched.reconcile.facts.cluster_statuses import list_recent_commits
from gitsched.reconcile.facts.facts_branches import Facts, read_facts_documents
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.output.live_apply import read_live_records
from gitsched.reconcile.output.output_history import MAX_TRAILERS, open_history
from gitsched.reconcile.output.recorded_names import RecordedNames
from gitsched.reconcile.output.recorded_output import _find_directories, _list_first_parents
from gitsched.reconcile.review.allowances import list_allowed_changes
from gitsched.reconcile.rollout_input import list_output_commits
from gitsched.reconcile.run import open_context
from gitsched.reconcile.source.source_commits import MAX_TEXT
from gitsched.reconcile.source.source_notes import list_earlier_sources, read_output_note
from gitsched.reconcile.source.source_tree import read_source_tree
from gitsched.reconcile.tenants.former_owners import make_owner_finder
from gitsched.report.history import write_entry

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy
from .test_damaged_state import replace

Patch = Callable[[str, int], None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Patch:
    return lambda name, value: monkeypatch.setattr(f"gitsched.reconcile.{name}", value)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Three workloads that were placed, and then moved together; `one` and `two` are the clusters."""
    base = tmp_path_factory.mktemp("template")
    fleet = Fleet(base / "fleet", base / "cache")
    files = {f"{name}.yaml": deployment(name) for name in "abc"}
    fleet.commit(
        {**files, "gitsched.yaml": UNGUARDED, "one.yaml": cluster("one"), "two.yaml": cluster("two"), "all.yaml": policy("one")}
    )
    fleet.reconcile()
    for hour in (1, 2):
        fleet.commit({"notes.txt": str(hour)}, hour=hour)
    fleet.commit({"all.yaml": policy("two")}, hour=3)
    fleet.reconcile(3)
    return fleet


@pytest.fixture
def moved(template: Fleet, tmp_path: Path) -> Fleet:
    """Return a copy of the template."""
    shutil.copytree(template.path, tmp_path / "fleet")
    copied = copy(template)
    copied.path, copied.cache = tmp_path / "fleet", tmp_path / "cache"
    return copied


def describe(fleet: Fleet, **chosen: Any) -> str:
    history = open_history(fleet.settings(5), HistoryFilter(**chosen))
    text = "".join(map(write_entry, history.read_entries(9)))
    return "\n".join((*history.list_notes(), text, history.end))


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("output.output_history.MAX_COMMITS", 1, "1 commits have been read"),
        ("output.history_records.MAX_MOVES", 1, "and 2 more"),
        ("output.history_records.MAX_MOVES", 1, "2 more recorded decisions changed, which are not read"),
        ("output.history_records.MAX_RECORD", 10, "it has more than 10 bytes"),
        ("output.history_records.MAX_RECORD", 10, "3 more recorded decisions changed, which are not read"),
        (
            "output.output_history._MAX_SOURCES_COUNTED",
            1,
            "only 1 of the commits of the source since the commit before are counted",
        ),
    ],
)
def test_history_says_what_it_has_not_read(
    moved: Fleet, name: str, value: int, told: str, limit: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gitsched.reconcile.output.history_records.select_described", list)
    assert told not in describe(moved)
    limit(name, value)
    assert told in describe(moved)


def test_history_counts_the_clusters_that_it_does_not_name(moved: Fleet, limit: Patch) -> None:
    limit("output.output_history.MAX_FILES", 1)
    moved.commit({"three.yaml": cluster("three"), "four.yaml": cluster("four")}, hour=4)
    moved.reconcile(4)
    assert "cluster four is new\n  as are 1 more" in describe(moved)


def test_history_names_some_rewinds_and_says_that_there_are_more(moved: Fleet, limit: Patch) -> None:
    head = moved.head or ""
    for _ in range(2):
        moved.git("update-ref", "-m", "back", "refs/heads/placements", "placements^")
        moved.git("update-ref", "-m", "again", "refs/heads/placements", head)
    assert describe(moved).count("the branch was moved from") == 2
    limit("output.output_history._MAX_REWINDS", 1)
    assert "the branch was moved back more than 1 times: `git reflog` lists all moves" in describe(moved)


def test_completion_looks_at_a_part_of_a_large_repository(moved: Fleet, limit: Patch) -> None:
    moved.commit({"x.yaml": deployment("x", namespace="zoo"), "p.yaml": policy("two").replace("default", "zoo")}, hour=4)
    moved.reconcile(4)

    def count() -> tuple[int, int]:
        names = RecordedNames(str(moved.path), moved.cache)
        return len(names.list_branches()), len(list(names.read_workloads()))

    assert count() == (2, 4)
    limit("output.recorded_names.MAX_BRANCHES", 1)
    limit("output.recorded_names.MAX_NAMESPACES", 1)
    assert count() == (1, 3)


def list_edits(run: RunResult) -> list[str]:
    return [finding.message for finding in run.plan.findings if finding.code == "output-edited"]


def test_more_edits_than_the_limit_are_counted_as_one(moved: Fleet, limit: Patch) -> None:
    for number in range(3):
        replace(moved, f"clusters/two/default/{number}.yaml", "100644", "kind: Added\n")
    assert len(list_edits(moved.preview(4))) == 3
    limit("output.output_edits.MAX_EDITS", 2)
    assert [text[:42] for text in list_edits(moved.preview(4))][2:] == ["people made more than 2 commits on the out"]


def test_the_original_of_an_amended_commit_is_searched_among_some(moved: Fleet, limit: Patch) -> None:
    worktree = moved.checkout(moved.path.parent / "out")
    (worktree / "clusters/two/default/added.yaml").write_text("kind: Added\n")
    moved.git("-C", str(worktree), "add", "-A")
    moved.git("-C", str(worktree), "commit", "-q", "--amend", "--no-edit")
    moved.git("update-ref", "refs/heads/placements", moved.git("-C", str(worktree), "rev-parse", "HEAD"))
    assert len(list_edits(moved.preview(4))) == 1
    limit("output.output_edits.MAX_NOTED_COMMITS", 0)
    run = moved.reconcile(4)
    assert list_edits(run) == []
    assert "clusters/two/default/added.yaml" not in moved.files(), "it is taken back nevertheless"


def test_trailers_beyond_the_limit_do_not_count(moved: Fleet, limit: Patch) -> None:
    moved.commit({"notes.txt": "a"}, hour=4, message="Allow\n\nGitsched-Allow: 0123456789ab\n")
    moved.commit({"notes.txt": "b"}, hour=4)

    def read() -> frozenset[str]:
        context = open_context(moved.settings(5))
        return list_allowed_changes(context, fetch(context))

    assert read() == {"0123456789ab"}
    limit("review.allowances.MAX_COMMITS", 1)
    assert read() == set()


def test_a_file_freeze_that_is_too_large_freezes_without_its_text(moved: Fleet, limit: Patch) -> None:
    replace(moved, "FREEZE", "100644", "maintenance\n")
    assert fetch(open_context(moved.settings(5))).frozen == "maintenance"
    limit("fetch.MAX_FREEZE_SIZE", 5)
    assert fetch(open_context(moved.settings(5))).frozen == "the output branch has the file FREEZE"


def test_only_the_latest_output_commits_are_read(moved: Fleet, limit: Patch) -> None:
    repository, head = open_context(moved.settings(5)).source.repository, moved.head
    source = moved.git("rev-parse", "main")
    assert (len(list_output_commits(repository, head)), len(list(list_recent_commits(repository, head)))) == (2, 2)
    assert len(list(_list_first_parents(repository, repository.commit(source)))) == 4
    for name in ("rollout_input.MAX_COMMITS", "facts.cluster_statuses.MAX_RECENT_COMMITS", "output.recorded_output.MAX_PARENTS"):
        limit(name, 1)
    assert (len(list_output_commits(repository, head)), len(list(list_recent_commits(repository, head)))) == (1, 1)
    assert list(_list_first_parents(repository, repository.commit(source))) == [source]


def test_the_search_for_the_directory_of_the_output_is_bounded(moved: Fleet, limit: Patch) -> None:
    moved.commit({"a/b/gitsched.json": "{}", "c/gitsched.json": "{}"}, hour=4)
    repository = open_context(moved.settings(5)).source.repository
    tree = repository.commit(moved.git("rev-parse", "main")).tree
    assert list(_find_directories(repository, tree)) == ["c", "a/b"]
    limit("output.recorded_output.MAX_DIRECTORIES", 3)
    assert list(_find_directories(repository, tree)) == ["c"]


def test_a_dump_with_too_many_files_is_an_error(fleet: Fleet, limit: Patch) -> None:
    fleet.write({f"{number}.yaml": "" for number in range(3)})
    assert [file.name for file in _list_files(fleet.path)] == ["0.yaml", "1.yaml", "2.yaml"]
    limit("adoption.running_objects.MAX_FILES", 2)
    with pytest.raises(Permanent, match="has more than 2 files"):
        list(_list_files(fleet.path))


def test_records_that_apply_reads_are_bounded(moved: Fleet, limit: Patch) -> None:
    source = open_context(moved.settings(5)).source

    def read() -> tuple[int, list[str]]:
        found = read_live_records(source, "placements", "", frozenset(("work.karmada.io",)))
        return len(found.records), [record.reason for record in found.refused]

    assert read() == (3, [])
    limit("output.live_apply.MAX_RECORD_SIZE", 10)
    count, refused = read()
    assert (count, len(refused), "is no file of at most 10 bytes" in refused[0]) == (0, 3, True)
    limit("output.live_apply.MAX_RECORDS", 2)
    with pytest.raises(Permanent, match="has more than 2 records: use one output branch for each cluster"):
        read()


def test_earlier_sources_are_searched_in_some_output_commits(moved: Fleet, limit: Patch) -> None:
    context = open_context(moved.settings(5))
    fetched = fetch(context)
    first = moved.git("rev-parse", "main~3")
    assert list(list_earlier_sources(fetched))[1:] == [first]
    limit("source.source_notes.MAX_OUTPUT_COMMITS", 0)
    assert list(list_earlier_sources(fetched))[1:] == []


@pytest.mark.parametrize("count", [0, -1, 11, 10**400, True, "3", None])
def test_a_note_with_a_count_that_cannot_be_is_read_without_it(moved: Fleet, count: Any, limit: Patch) -> None:
    limit("source.source_notes.MAX_MOVES", 10)
    text = json.dumps({"drySha": "a" * 40, "outputMoves": {"placements": count, "other": 10}})
    moved.git("notes", "--ref=hydrator.metadata", "add", "-f", "-F", "-", "placements", data=text.encode())
    found = read_output_note(open_context(moved.settings(5)).source.repository, moved.head or "")
    assert (found.source, found.moves) == ("a" * 40, {"other": 10})
    moved.reconcile(5)


@pytest.mark.parametrize(("cluster_name", "name"), [("ash", "MAX_CLUSTER_FILES"), ("", "MAX_FILES")])
def test_files_of_a_facts_branch_beyond_the_limit_are_named(fleet: Fleet, cluster_name: str, name: str, limit: Patch) -> None:
    fleet.commit({f"{number}.yaml": "" for number in range(3)})
    context = open_context(fleet.settings())
    commit = context.source.repository.commit(fleet.git("rev-parse", "HEAD"))
    facts = Facts((FactsBranch("facts", commit, cluster_name),))
    source = read_source_tree(context.source.repository, commit.tree, context.caches.files, None).source_tree
    assert [finding.message for finding in read_facts_documents(context, facts, source).findings] == []
    limit(f"facts.facts_branches.{name}", 2)
    (found,) = read_facts_documents(context, facts, source).findings
    assert (found.code, found.message) == (
        "facts-ignored",
        "the facts branch facts has more than 2 files: the others are not read, first 2.yaml",
    )


def test_the_former_owner_of_a_workload_is_searched_in_some_commits(moved: Fleet, limit: Patch) -> None:
    moved.commit({"a.yaml": None}, hour=4)
    moved.reconcile(4)
    moved.commit({"notes.txt": "later"}, hour=5)
    context = open_context(moved.settings(5))
    key = Key("apps", "Deployment", "default", "a")
    assert make_owner_finder(context, fetch(context))(key) == PLATFORM
    limit("tenants.former_owners.MAX_COMMITS", 1)
    assert make_owner_finder(context, fetch(context))(key) is None


def test_texts_of_commits_are_shown_to_a_limit(moved: Fleet) -> None:
    """The page of the history stays small, whatever people write into commits of the output branch and of the source."""
    trailers = "".join(f"\nNote-{number}: {'t' * 5_000}" for number in range(MAX_TRAILERS + 9))
    moved.commit({"a.yaml": deployment("a", 3)}, hour=4, message="s" * 5_000)
    moved.reconcile(4)
    message = f"{'p' * 5_000}\n{trailers}\n".encode()
    commit = moved.git("commit-tree", "-p", "placements", "-F", "-", "placements^{tree}", data=message)
    moved.git("update-ref", "refs/heads/placements", commit)
    first, second, *_ = open_history(moved.settings(5), HistoryFilter()).read_entries(9)
    assert first.subject == first.summary == "p" * MAX_TEXT + "... (5,000 characters)"
    assert (len(first.trailers), {len(text) for _, text in first.trailers}) == (
        MAX_TRAILERS,
        {MAX_TEXT + len("... (5,000 characters)")},
    )
    assert first.notes == ("its message has 109 trailers, of which the first 100 are listed",)
    assert second.source is not None
    assert len(second.source.subject) < 2 * MAX_TEXT
