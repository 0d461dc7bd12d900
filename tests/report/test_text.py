"""Text for the terminal: summary first, wrapped at the width, without control characters."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.changes import Cause, Move, UnplacedObject, WithheldChanges
from gitsched.model.document import Key
from gitsched.model.explanation import ExplainedCandidate, Explanation, GroupAttempt, RejectedPolicy, ReplicaShare
from gitsched.model.finding import Finding, Location, Severity
from gitsched.model.scheduling import CandidateResult, Outcome, TargetCluster
from gitsched.report.explanation import serialize_explanation, write_explanation
from gitsched.report.lines import escape_ci_commands, escape_unprintable, format_clusters, wrap
from gitsched.report.markdown import write_markdown
from gitsched.report.review import ComparisonBase, OutputComparison, Review
from gitsched.report.serialization import serialize_review
from gitsched.report.text import write_findings, write_plan, write_run
from tests.tables import each_row

KEY = Key("apps", "Deployment", "shop", "cart")
THEN = datetime(2026, 1, 12, 9, tzinfo=UTC)
OUTCOME = Outcome(
    KEY,
    "karmada",
    "placed",
    "PropagationPolicy/shop/web",
    "cloud",
    (TargetCluster("b", 3), TargetCluster("a", 2, True)),
    3,
    (),
    "",
    THEN,
)
MOVED = Move(
    KEY, {"a": 2}, {"b": 3}, "a has the untolerated taint power:NoExecute, and group cloud is the next one in the policy's order"
)
FIRST, LOST = Move(KEY, {}, {"a": None}, ""), Move(KEY, {"a": None}, {}, "")
BROKEN = Finding("error", "yaml-syntax", "no YAML", Location("a.yaml", 2, 3), None)
STATES = {"placed": 1, "pending": 0, "stale": 0}
REVIEW = Review("c" * 40, "placements", "/fleet", "b" * 40, None, True, "", [OUTCOME], [MOVED], [BROKEN], 4, THEN, THEN, STATES)
WHY = Explanation(
    workload="Deployment.apps/shop/cart",
    location="apps/cart.yaml:1",
    policy="PropagationPolicy/shop/web",
    policy_reason="it selects the workload by name",
    rejected_policies=(RejectedPolicy("ClusterPropagationPolicy/all", "a policy of the namespace goes before"),),
    claim="claimed it in an earlier run",
    attempts=(GroupAttempt("private", "no-fit", "0/2 clusters are available"), GroupAttempt("cloud", "scheduled")),
    candidates=(
        ExplainedCandidate(CandidateResult("a", False, "untolerated taint power:NoExecute", {}, None), "clusters/a.yaml:7"),
        ExplainedCandidate(CandidateResult("b", True, "", {"ClusterLocality": 100}, 100)),
    ),
    division=(ReplicaShare("b", 1, 3),),
    division_rule=("By static weight.",),
    trigger="The placement changed.",
    result=(ReplicaShare("b", None, 3),),
)


@pytest.mark.parametrize(
    ("review", "verdict"),
    [
        (REVIEW, "1 of 1 workload moves, 0 become unplaced: commit cccccccccc against branch placements at bbbbbbbbbb of /fleet."),
        (REVIEW._replace(moves=[FIRST, LOST]), "1 of 1 workload is newly placed, 1 becomes unplaced:"),
        (REVIEW._replace(moves=[Move(KEY, {"a": 2}, {"a": 3}, "")]), "1 of 1 workload scales, 0 become unplaced: "),
        (REVIEW._replace(moves=[]), "No workload moves, but files"),
        (REVIEW._replace(moves=[], changed=False), "No changes: branch placements at bbbbbbbbbb"),
        (
            REVIEW._replace(before=None),
            "First placement: commit cccccccccc would create branch placements of /fleet and place 1 workload.",
        ),
        (REVIEW._replace(source=""), "1 of 1 workload moves, 0 become unplaced: the worktree against"),
    ],
)
def test_a_plan_starts_with_a_summary(review: Review, verdict: str) -> None:
    assert write_plan(review, 400).startswith(verdict)


@pytest.mark.parametrize(
    ("review", "verdict"),
    [
        (REVIEW._replace(after="a" * 40), "Committed aaaaaaaaaa to branch placements of /fleet: 1 workload moves"),
        (
            REVIEW._replace(after="a" * 40, before=None),
            "Committed aaaaaaaaaa to branch placements of /fleet (first commit): 1 workload placed",
        ),
        (REVIEW._replace(changed=False), "No changes: branch placements at bbbbbbbbbb"),
        (
            REVIEW._replace(changed=False, moves=[], withheld=WithheldChanges((MOVED,))),
            "1 change is withheld: branch placements at bbbbbbbbbb of /fleet is otherwise up to date with commit cccccccccc.",
        ),
        (
            REVIEW._replace(refused="12 of 20 workloads"),
            "Nothing committed. Planned: 1 workload moves, 0 become unplaced.",
        ),
    ],
)
def test_a_run_starts_with_its_result(review: Review, verdict: str) -> None:
    assert write_run(review, 400).startswith(verdict)


TOLD: tuple[tuple[Severity, str, str], ...] = (
    ("info", "symlink", "a note"),
    ("warning", "unschedulable", "not scheduled"),
    ("info", "secret-in-plain-text", "a plain Secret"),
    ("warning", "selector-unmatched", "a misspelled label"),
    ("error", "yaml-syntax", "no YAML"),
    ("warning", "allowance-unused", "0123 allows nothing"),
)


@pytest.mark.parametrize(
    ("review", "above"),
    [
        (REVIEW, ["no YAML", "a misspelled label", "a plain Secret", "0123 allows nothing"]),
        (REVIEW._replace(before=None), ["no YAML", "a misspelled label", "a plain Secret", "not scheduled", "0123 allows nothing"]),
    ],
)
def test_what_needs_attention_comes_before_what_moves(review: Review, above: list[str]) -> None:
    found = [Finding(severity, code, message) for severity, code, message in TOLD]
    for text in (write_plan(review._replace(findings=found), 400), write_run(review._replace(findings=found, after="a" * 40), 400)):
        first, _, rest = text.partition("Deployment shop/cart")
        assert [line.partition(": ")[2].partition(" [")[0] for line in first.splitlines() if "]" in line] == above
        assert all(message in rest for *_, message in TOLD if message not in above), "all others"


def test_a_narrow_terminal_gets_the_same_content_without_a_table() -> None:
    wide, narrow = write_plan(REVIEW, 200), write_plan(REVIEW, 80)
    assert "WORKLOAD" in wide
    assert "WORKLOAD" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    for text in (wide, narrow):
        flat = " ".join(text.split())
        assert MOVED.reason in flat
        assert "a.yaml:2:3: error: no YAML [yaml-syntax]" in flat
        assert "1 workload: 1 placed; 4 objects not selected by any policy (gitsched status --unclaimed). 1 error." in flat
        assert "Next change without a commit: 2026-01-12T09:00:00Z." in flat


def test_long_lists_of_clusters_and_notes_are_abbreviated_with_a_count() -> None:
    assert format_clusters({f"c{n}": n for n in range(9)}) == "c0 0, c1 1, c2 2, c3 3, c4 4, c5 5 and 3 more"
    notes = [Finding("info", "symlink", f"link {n}") for n in range(9)]
    assert "and 4 more (4 symlink); use -o json for all" in write_findings([BROKEN, *notes], 80)
    assert write_findings([], 80) == "No findings\n"


def test_an_explanation_contains_every_step_at_every_width() -> None:
    for width in (40, 80, 200):
        flat = " ".join(write_explanation(WHY, width).split())
        for step in (
            "by name",
            "not ClusterPropagationPolicy/all",
            "earlier run",
            "private: no-fit: 0/2",
            "cloud: scheduled",
            "clusters/a.yaml:7",
            "100",
            "By static weight.",
            "b: 3, weight 1",
            "placement changed",
        ):
            assert step in flat, (width, step)
    assert "no policy selects it" in write_explanation(Explanation("x"), 80)


@pytest.mark.parametrize("width", [40, 200])
def test_colours_of_an_explanation_repeat_what_its_text_says(width: int) -> None:
    painted: set[tuple[str, str]] = set()

    def paint(text: str, role: str) -> str:
        painted.add((role, text))
        return f"\x1b[1m{text}\x1b[0m"

    why = WHY._replace(findings=(BROKEN,))
    assert re.sub(r"\x1b\[\dm", "", write_explanation(why, width, paint)) == write_explanation(why, width)
    table = {("added", "yes"), ("removed", "no")} if width == 200 else set()
    assert painted >= {("heading", "Policy"), ("heading", "Result"), ("error", "error"), *table}


@given(st.text())
def test_control_characters_in_a_manifest_are_escaped(text: str) -> None:
    assert escape_unprintable(text).isprintable()
    finding = Finding("error", "x", text, Location(text, 1, 1))
    assert all(line.isprintable() for line in write_findings([finding], 80).split("\n"))


@given(st.lists(st.text("ab", min_size=1, max_size=12)), st.integers(20, 90))
def test_wrapping_keeps_all_words_and_respects_the_width(words: list[str], width: int) -> None:
    lines = wrap(" ".join(words), width)
    assert " ".join(lines).split() == words
    assert all(len(line) <= width for line in lines)


def test_serialized_data_is_complete_json() -> None:
    data = serialize_review(REVIEW)
    assert json.loads(json.dumps(data)) == data
    assert data["moves"][0]["after"] == [{"cluster": "b", "replicas": 3}]
    assert data["placements"][0]["clusters"] == [{"cluster": "b", "replicas": 3}]
    assert data["placements"][0]["leaving"] == ["a"]
    assert data["workloads"] == {"total": 1, "placed": 1, "pending": 0, "stale": 0, "unclaimed": 4}
    why = serialize_explanation(WHY)
    assert json.loads(json.dumps(why)) == why
    assert why["clusters"][0]["location"] == "clusters/a.yaml:7"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x\n", "\\::error::x\n"),
        ("a\n \t::set-output name=x::y", "a\n \t\\::set-output name=x::y"),
        ("see ##[add-mask]e and ##VSO[task.setvariable]", "see ##\\[add-mask]e and ##\\VSO[task.setvariable]"),
        ("##teamcity[buildStatus]", "##\\teamcity[buildStatus]"),
        ("+  a::b ## [x]\n- [x]", "+  a::b ## [x]\n- [x]"),
    ],
)
def test_only_commands_of_ci_runners_are_escaped(text: str, shown: str) -> None:
    assert escape_ci_commands(text) == shown


def test_a_frequent_finding_does_not_hide_others() -> None:
    many = [Finding("error", "duplicate-identity", f"copy {n}") for n in range(90)]
    few = [Finding("warning", "unknown-field", f"field {n}") for n in range(4)]
    lines = write_findings([*many, *few], 200).splitlines()
    assert [line for line in lines if "field" in line] == [f"warning: field {n} [unknown-field]" for n in range(4)]
    assert lines[0].startswith("error: copy 0 ")
    assert sum("copy" in line for line in lines) == 46
    assert "and 44 more (44 duplicate-identity); use -o json for all" in lines


def test_many_clusters_with_the_same_reason_are_one_row() -> None:
    names = [f"c-{number:02}" for number in range(25)]
    reasons = {"c-00": "", "c-07": "it has a taint"}
    results = [CandidateResult(name, not reasons.get(name, "x"), reasons.get(name, "not selected"), {}, None) for name in names]
    found = Explanation(str(KEY), policy="PropagationPolicy/shop/web", candidates=tuple(map(ExplainedCandidate, results)))
    rows = write_explanation(found, 200).split("Clusters\n")[1].split("\n\n")[0].splitlines()
    assert [row.split() for row in rows[1:]] == [
        ["c-00", "yes"],
        ["c-01,", "c-02,", "c-03", "and", "20", "more", "no", "not", "selected"],
        ["c-07", "no", "it", "has", "a", "taint"],
    ]
    few = write_explanation(found._replace(candidates=found.candidates[:20]), 200)
    assert [name for name in names if f"  {name} " in few] == names[:20]


def test_what_nothing_has_is_listed_before_what_it_causes_and_after_errors() -> None:
    codes = ["unschedulable", "selector-unmatched", "karmada-cluster-unknown"]
    warnings = [Finding("warning", code, "m", Location(f"{number}.yaml", 1, 1)) for number, code in enumerate(codes)]
    lines = write_findings([BROKEN, *warnings], 200).splitlines()
    assert [line.partition(":")[0] for line in lines[:4]] == [
        BROKEN.location.path if BROKEN.location else "",
        "1.yaml",
        "2.yaml",
        "0.yaml",
    ]


UNMATCHED = Finding(
    "warning", "selector-unmatched", "PropagationPolicy/shop/web: no cluster has ownership=private", Location("p.yaml", 17, 24)
)


@pytest.mark.parametrize("is_run", [False, True])
def test_new_errors_and_what_nothing_has_come_directly_below_the_headline(is_run: bool) -> None:
    other = Finding("warning", "unknown-path", "path x")
    field = Finding(
        "warning", "unknown-field", "the field 'replica' is unknown; did you mean 'replicas'?", Location("w.yaml", 7, 3)
    )
    known = BROKEN._replace(message="as before")
    base = ComparisonBase() if is_run else ComparisonBase("a" * 40, "main", findings=(known,))
    review = REVIEW._replace(base=base, findings=[other, field, UNMATCHED, BROKEN, *([] if is_run else [known])])
    text = (write_run if is_run else write_plan)(review, 200)
    blocks = text.split("\n\n")
    assert blocks[1].splitlines() == [str(BROKEN), str(UNMATCHED), str(field)]
    assert text.count(str(UNMATCHED)) == text.count(str(BROKEN)) == 1
    assert str(other) in blocks[-2]


def test_the_headline_names_a_document_with_a_misspelled_field() -> None:
    field = Finding("warning", "unknown-field", "the field 'replica' is unknown", resource=("Deployment", "shop", "cart"))
    for base in (ComparisonBase(findings=()), ComparisonBase("a" * 40, "main", findings=())):
        review = REVIEW._replace(base=base, moves=[], findings=[field])
        assert write_plan(review, 400).startswith("Deployment shop/cart has an unknown field, ")
        comment = write_markdown(review)
        assert comment.splitlines()[2].startswith("### Deployment shop/cart has an unknown field, ")
        assert "**1 new warning**" in comment.partition("Findings: ")[0]
    known = REVIEW._replace(base=ComparisonBase(findings=(field,)), moves=[], findings=[field])
    assert "unknown field," not in write_plan(known, 400)


def test_further_problems_are_counted_below_the_headline_and_listed_with_the_findings() -> None:
    many = [UNMATCHED._replace(message=f"no cluster has tier={number}") for number in range(6)]
    blocks = write_plan(REVIEW._replace(findings=many), 200).split("\n\n")
    assert blocks[1].splitlines() == [*map(str, many[:3]), "and 3 more among the findings below"]
    assert blocks[-2].splitlines() == [*map(str, many[3:])]


def test_what_the_headline_says_is_not_repeated_below_it() -> None:
    cause = Finding("warning", "unschedulable", "no cluster fits", resource=KEY.resource)
    missing = UNMATCHED._replace(resource=("PropagationPolicy", "shop", "web"))
    outcome = OUTCOME._replace(state="pending", targets=())
    review = REVIEW._replace(outcomes=[outcome], cluster_count=2, states={**STATES, "pending": 1}, findings=[cause, missing])
    headline, below = write_plan(review, 400).split("\n\n")[:2]
    assert missing.message in headline
    assert missing.message not in below


def test_a_long_plan_repeats_the_problems_at_its_end() -> None:
    fields = [Finding("warning", "unknown-path", f"path {number}") for number in range(45)]
    blocks = write_plan(REVIEW._replace(findings=[UNMATCHED, *fields]), 200).split("\n\n")
    assert blocks[1] == blocks[-2] == str(UNMATCHED)


def test_findings_of_a_comparison_are_counted_once_and_fixed_ones_named() -> None:
    note = Finding("info", "cluster-room-assumed", "2 Clusters")
    review = REVIEW._replace(base=ComparisonBase("a" * 40, "main", findings=(BROKEN, note)), findings=[UNMATCHED, note])
    text = write_plan(review, 200)
    assert "Fixed: no YAML [yaml-syntax]\n" in text
    assert text.endswith("\n1 new warning, 1 existing note, 1 fixed error.\nNext change without a commit: 2026-01-12T09:00:00Z.\n")


LACKING = "no policy selects Service/shop/web in {}"


@each_row(
    ("broken", "lines"),
    [
        ("a.yaml", []),
        ("b.yaml", [f"Fixed: {LACKING.format('a')} [lacking]"]),
    ],
)
def test_of_a_file_that_a_change_breaks_no_warning_is_called_fixed(broken: str, lines: list[str]) -> None:
    lacking = Finding("warning", "lacking", LACKING.format("a"), Location("a.yaml", 9, 1))
    wrong = BROKEN._replace(location=Location(broken, 2, 3))
    text = write_plan(REVIEW._replace(findings=[wrong], base=ComparisonBase("d" * 40, "main", findings=[lacking])), 200)
    assert [line for line in text.splitlines() if line.startswith("Fixed: ")] == lines


@each_row(
    ("before", "after", "counts", "lines"),
    [
        (("warning", 1, "a"), ("warning", 1, "a, b"), "1 changed warning", [f"Changed: {LACKING.format('a, b')} [lacking]"]),
        # Another place may be another mistake; an error is never passed over.
        (("warning", 1, "a"), ("warning", 2, "b"), "1 new warning, 1 fixed warning", [f"Fixed: {LACKING.format('a')} [lacking]"]),
        (("error", 1, "a"), ("error", 1, "b"), "1 new error, 1 fixed error", [f"Fixed: {LACKING.format('a')} [lacking]"]),
        (("warning", 1, "a"), ("warning", 1, "a"), "1 existing warning", []),
    ],
)
def test_a_warning_with_another_text_is_neither_new_nor_fixed(
    before: tuple[Severity, int, str], after: tuple[Severity, int, str], counts: str, lines: list[str]
) -> None:
    old, new = (
        Finding(severity, "lacking", LACKING.format(clusters), Location("web.yaml", line, 1), ("Service", "shop", "web"))
        for severity, line, clusters in (before, after)
    )
    review = REVIEW._replace(findings=[new], base=ComparisonBase("d" * 40, "main", findings=[old]))
    text = write_plan(review, 200)
    assert f"\n{counts}." in text
    assert [line for line in text.splitlines() if line.startswith(("Changed: ", "Fixed: "))] == lines
    found = serialize_review(review)["summary"]["findings"]
    assert found == {"new": len(review.new_findings), "changed": int("changed" in counts), "mended": int("fixed" in counts)}
    assert (f"{len(review.changed_findings)} changed" in write_markdown(review)) == ("changed" in counts)


def test_many_findings_with_the_same_text_are_listed_once_with_their_places() -> None:
    same = [Finding("warning", "unused", "nothing reads this", Location(f"team-{n:02}.yaml", 5, 1)) for n in range(20)]
    other = [Finding("warning", "other", "another one", Location("z.yaml", 1, 1))]
    assert write_findings([*same, *other], 200).splitlines()[:5] == [
        "team-00.yaml:5:1: warning: nothing reads this [unused]",
        "team-01.yaml:5:1: warning: nothing reads this [unused]",
        "team-02.yaml:5:1: warning: nothing reads this [unused]",
        "  the same in 17 more places: team-03.yaml:5:1, team-04.yaml:5:1, team-05.yaml:5:1 and 14 more",
        "z.yaml:1:1: warning: another one [other]",
    ]
    assert "more (" not in write_findings([*same, *other], 200)
    assert len([line for line in write_findings(same[:4], 200).splitlines() if "warning: " in line]) == 4


def test_text_and_comment_count_the_same_new_warnings() -> None:
    """Those that say of unplaced workloads what is listed above are counted, too."""
    unplaced = [
        Finding("warning", "unschedulable", "no cluster fits", Location("a.yaml", n, 1), ("Deployment", "shop", f"w{n}"))
        for n in range(4)
    ]
    moves = [Move(Key("apps", "Deployment", "shop", f"w{n}"), {"a": 1}, {}, "") for n in range(4)]
    cause = Finding("warning", "selector-unmatched", "no cluster has env=x", Location("p.yaml", 1, 1))
    review = REVIEW._replace(findings=[*unplaced, cause], moves=moves, base=ComparisonBase("d" * 40, "main", findings=[]))
    assert "5 new warnings" in write_plan(review, 200)
    assert "**5 new warnings**:\n> \n> - **warning** `p.yaml:1:1` no cluster has env=x" in write_markdown(review)


def test_a_first_plan_that_places_all_that_is_selected_counts_the_pods_that_nothing_selects() -> None:
    web = UnplacedObject(Key("apps", "Deployment", "shop", "web"), False, Cause("no policy has a similar selector"))
    first = REVIEW._replace(before=None, moves=[FIRST], findings=[])
    assert "and place 1 workload.\n" in write_plan(first, 200)
    text = write_plan(first._replace(comparison=OutputComparison(unplaced=[web])), 200)
    assert "and place 1 workload. No policy selects 1 object with pods.\n" in text
