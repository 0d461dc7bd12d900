"""The comment of a pull request: it fits the size limit, lists omitted parts and escapes text from manifests."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gitsched.model.changes import Cause, ManifestChange, Move, RecordChange, RetainedWorkload
from gitsched.model.document import Key
from gitsched.model.finding import Finding, Location
from gitsched.model.scheduling import Outcome, RecordTarget, TargetCluster
from gitsched.report.markdown import COMMENT_LIMIT, MIN_COMMENT_LIMIT, fits_limit, write_markdown
from gitsched.report.review import ComparisonBase, DeliveryChanges, OutputComparison, Review
from tests.search_depth import count_examples

THEN = datetime(2026, 1, 12, 9, tzinfo=UTC)
HOSTILE = "@team `a` | </details> <!-- [x](https://example.org) ![](//e) {0} ~~s~~ $x$ *b* _i_ #1 www.e.org a@b.example\n```\n# h\n---\n\\"
OURS = re.compile(r"<!-- gitsched:plan id=default -->|<details><summary>[^<>]*</summary>|</details>|</?sub>|</?code>")
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40) | st.just(HOSTILE)


def move(name: str, cluster: str = "b", text: str = "spec.replicas 1 -> 2", path: str = "apps/web.yaml") -> Move:
    causes = (Cause(text, Location(path, 7, 1)), Cause(f"another one: {text}"))
    return Move(Key("apps", "Deployment", "shop", name), {"a": 2}, {cluster: 3}, text, causes)


def bind(name: str, text: str) -> RecordChange:
    """Return a Cluster that is bound to a cloud."""
    cause = Cause(text, Location(f"{name}.yaml", 7, 1))
    return RecordChange(Key("kubernetes", "Cluster", "shop", name), "cloud", (), (RecordTarget(name, 2, name),), "krake", (cause,))


def review(count: int, *, text: str = "because", diff: int = 20, name: str = "web") -> Review:
    """Return a review of `count` moved workloads, each with a manifest diff of `diff` lines."""
    moves = [move(f"{name}-{number}", text=text) for number in range(count)]
    outcomes = [Outcome(m.key, "karmada", "placed", "", "", (TargetCluster("b", 3),), 3, (), "", THEN) for m in moves]
    body = "\n".join(["@@ -1 +1 @@", *(f"-  {name} {line}\n+  {text} {line}" for line in range(diff))])
    rendered = [
        ManifestChange(f"shop/deployment-{name}-{n}.yaml", ("b",), "1" * 40, "2" * 40, body) for n in range(min(count, 200))
    ]
    findings = [Finding("warning", "unknown-field", f"{text} {n}", Location(f"{name}.yaml", n + 1, 1)) for n in range(count)]
    known = [Finding("warning", "wrong-type", f"old {n}", Location("old.yaml", n + 1, 1)) for n in range(min(count, 30))]
    return Review(
        source="c" * 40,
        branch="placements",
        before="b" * 40,
        changed=True,
        outcomes=outcomes,
        states={"placed": count, "pending": 0, "stale": 0},
        moves=moves,
        findings=[*findings, *known],
        source_name="feature",
        base=ComparisonBase("d" * 40, "main", False, {"pending": 0, "stale": 0}, known),
        comparison=OutputComparison("sha256:" + "e" * 64, DeliveryChanges(rendered, max(count - 200, 0), count)),
        retained=[RetainedWorkload(m.key, {"b": 3}, {"a": 3}, "a rebalance") for m in moves[:5]],
        record_changes=[bind(f"{name}-{number}", text) for number in range(min(count, 150))],
    )


def check_structure(text: str) -> None:
    """Check that all elements are closed and that there is no other markup than that of the report."""
    tokens = READER.parse(text)
    blocks = [token.content for token in tokens if token.type == "html_block"]
    inline = [child for token in tokens for child in token.children or ()]
    tags = [child.content for child in inline if child.type == "html_inline"]
    assert not [left for content in (*blocks, *tags) if (left := OURS.sub("", content).strip()) and "</sub>" not in content]
    assert not {child.type for child in inline} & {"link_open", "image", "s_open", "em_open"}
    assert sum(content.count("<details>") for content in blocks) == sum(content.count("</details>") for content in blocks)
    opened = 0
    for content in blocks:
        opened += content.count("<details>") - content.count("</details>")
        assert opened in (0, 1)
    outside = [token for token in tokens if token.type == "heading_open"]
    assert len(outside) == 1, "the summary is the only heading"
    assert not [token for token in tokens if token.type in ("hr", "code_block")]


@pytest.mark.parametrize("count", [0, 1, 40, 300, 5_000])
def test_the_comment_fits_the_limit_and_lists_omitted_parts(count: int) -> None:
    text = write_markdown(review(count))
    assert len(text) <= COMMENT_LIMIT - 512
    check_structure(text)
    assert text.startswith("<!-- gitsched:plan id=default -->\n")
    assert ("Omitted to fit the size limit:" in text) == (count > 40)
    if count == 5_000:
        assert "5,000 of 5,000 workloads move, 0 become unplaced" in text
        names = "`Deployment shop/web-0`, `Deployment shop/web-1`, `Deployment shop/web-10` and 4,997 more"
        assert (
            f"**Moves:**\n\n- `~` **5,000 workloads move**: {names}: `− a`, `+ b`; 10,000 → 15,000 replicas\\\n"
            "  because (`apps/web.yaml:7`)\n\n"
        ) in text


@settings(max_examples=count_examples(6), deadline=None)
@given(st.integers(MIN_COMMENT_LIMIT, 40_000), st.integers(0, 120), texts)
def test_the_comment_fits_any_limit_for_any_manifest(limit: int, count: int, text: str) -> None:
    written = write_markdown(review(count, text=text, name=text, diff=3), limit)
    assert fits_limit(written, limit)
    check_structure(written)


def test_characters_outside_the_basic_multilingual_plane_count_twice() -> None:
    assert fits_limit("a" * 10, 10)
    assert not fits_limit("\U0001f600" * 6, 10)


def test_parts_are_omitted_in_the_documented_order() -> None:
    """As the limit decreases, the entries disappear one after the other."""
    signs = [
        "```diff",
        "shop/deployment-web-0.yaml",
        "Details of",
        "old 0",
        "web.yaml:30:",
        "Cluster shop/web-30",
        "`Deployment shop/web-99`",
    ]
    seen: list[tuple[bool, ...]] = []
    text = "because of one thing and another, " * 4
    many = review(100, text=text, diff=2)._replace(moves=[move(f"web-{number}", text=f"{text}{number}") for number in range(100)])
    for limit in range(110_000, 20_000, -2_000):
        text = write_markdown(many, limit)
        seen.append(tuple(sign in text for sign in signs))
    order = sorted(set(seen), reverse=True)
    assert all(shown == tuple(sorted(shown)) for shown in order), order
    assert len(order) == len(signs) + 1


def test_as_many_manifests_as_fit_are_shown() -> None:
    text = write_markdown(review(60, diff=50))
    assert 5 < text.count("```diff") < 60
    assert "the text of" in text


@pytest.mark.parametrize("place", ["name", "cluster", "text", "path"])
def test_markup_in_text_is_shown_literally(place: str) -> None:
    moved = {
        "name": move(HOSTILE),
        "cluster": move("web", cluster=HOSTILE),
        "text": move("web", text=HOSTILE),
        "path": move("web", path=HOSTILE),
    }[place]
    text = write_markdown(review(0)._replace(moves=[moved, move("next")]))
    check_structure(text)
    entries = text[text.index("**Moves:**") :].split("\n\n")[1]
    assert len(entries.splitlines()) == 4, "a newline must not add an entry"
    tokens = READER.parse(entries)
    assert sum(token.type == "list_item_open" for token in tokens) == 2
    shown = re.sub(r"<code>.*?</code>", "", READER.render(entries), flags=re.DOTALL)
    assert not re.search(r"@team|https:|www\.|#1|\$x", shown), "text outside of code has no mentions, links or references"


def test_a_code_fence_is_longer_than_any_in_the_manifest() -> None:
    entry = ManifestChange("a.yaml", ("b",), "1", "2", "@@\n ````\n+x\n </details>")
    text = write_markdown(review(1)._replace(comparison=OutputComparison(delivery=DeliveryChanges([entry], 0, 1))))
    assert "`````diff\n" in text
    check_structure(text)


def test_no_change_and_a_first_placement_have_their_own_headings() -> None:
    nothing = write_markdown(review(0)._replace(changed=False, base=ComparisonBase("d" * 40, "main", False, {}, ())))
    assert "### No changes\n" in nothing
    assert "**Moves:**" not in nothing
    first = review(3)._replace(before=None, base=ComparisonBase())
    text = write_markdown(first._replace(moves=[m._replace(before={}) for m in first.moves]))
    assert "### First placement of 3 workloads\n" in text
    assert "```diff" not in text, "a first placement has no diffs"
    assert "which does not exist yet" in text


def test_a_refusal_and_unplaced_workloads_come_first() -> None:
    one = review(2)
    lost = next(iter(one.outcomes))._replace(state="pending", targets=(), reason="0/2 clusters are available: 2 had taints.")
    text = write_markdown(
        one._replace(
            outcomes=[lost], states={**one.states, "pending": 1}, refused="12 of 20 workloads would lose their last placement"
        )
    )
    head = text[: text.index("**Moves:**")]
    assert "[!CAUTION]" in head
    assert "12 of 20 workloads" in head
    assert "0/2 clusters are available" in head


def test_comments_are_distinguished_by_their_identity() -> None:
    assert write_markdown(review(1), identity="eu.prod").startswith("<!-- gitsched:plan id=eu.prod -->\n")
