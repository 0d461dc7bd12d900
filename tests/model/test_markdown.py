"""Sentences in Markdown: what a reader copies is one code span, without the punctuation around it."""

from __future__ import annotations

from gitsched.model.markdown import format_text
from tests.tables import each_row


@each_row(
    ("sentence", "formatted"),
    [
        ("a mistake (policy_a.yaml:8:7): 1 workload", "a mistake (`policy_a.yaml:8:7`): 1 workload"),
        ("see policies/shop.yaml:8:7.", "see `policies/shop.yaml:8:7`."),
        ("add - {apiVersion: v1, kind: ConfigMap, name: web} to it", "add - `{apiVersion: v1, kind: ConfigMap, name: web}` to it"),
        ("it has {a: {b: c}, d: e}, and more", "it has `{a: {b: c}, d: e}`, and more"),
        ("it has {a: {b: c, and no end", "it has `{a`: `{b`: c, and no end"),
        (
            "add the trailer Gitsched-Allow: 18b8d4e0a1c2f3d4 to a commit",
            "add the trailer `Gitsched-Allow: 18b8d4e0a1c2f3d4` to a commit",
        ),
        ("or pass --allow 18b8d4e0a1c2f3d4.", "or pass `--allow 18b8d4e0a1c2f3d4`."),
        ("--each-workload lists all of them", "`--each-workload` lists all of them"),
        ("pass --allow --all", "pass `--allow` `--all`"),
        ("from commit 1234567890, as before", "from commit `1234567890`, as before"),
        ("2 of 3 workloads move: a -> b", "2 of 3 workloads move: a -> b"),
        ("a (@team), #1 and :smile:.", "a (`@team`), `#1` and `:smile`:."),
    ],
)
def test_a_sentence_has_code_spans_around_what_has_a_meaning(sentence: str, formatted: str) -> None:
    assert format_text(sentence) == formatted


def test_an_object_of_too_many_words_is_not_one_code_span() -> None:
    few, many = (f"{{{' '.join(['a,'] * count)} b}}" for count in (50, 100))
    assert format_text(few) == f"`{few}`"
    assert f"`{many}`" != format_text(many)
