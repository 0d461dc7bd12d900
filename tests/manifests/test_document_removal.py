"""Documents are removed from a file, and the rest of the file stays byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.manifests.document_removal import NotRemovable, remove_documents
from gitsched.manifests.parser import parse_file
from tests.search_depth import count_examples
from tests.tables import each_row

OLD = ("apps.karmada.io", "WorkloadRebalancer", "", "old")
DOC = "apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata:\n  name: old # done\nspec:\n  workloads: []\n  # none\n"
INLINE = "{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: old}}"
WEB = "# Web.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name:   web}\ndata: {a: '1'}   # as it was\n"
API = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: api\n"

CASES = {
    "alone": (DOC, None),
    "alone below a licence": (f"# Licence\n\n---\n# About this.\n{DOC}", None),
    "first": (f"{DOC}---\n{WEB}", f"---\n{WEB}"),
    "first, with its own comment": (f"# About this.\n{DOC}---\n{WEB}", f"---\n{WEB}"),
    "first, below a header": (f"# Licence\n\n# About this.\n{DOC}---\n{WEB}", f"# Licence\n\n---\n{WEB}"),
    "first, with a marker": (f"# Licence\n---\n{DOC}---\n{WEB}", f"# Licence\n---\n{WEB}"),
    "in the middle": (f"{WEB}---\n{DOC}---\n{API}", f"{WEB}---\n{API}"),
    "in the middle, with comments": (
        f"{WEB}--- # old\n# About this.\n\n{DOC}\n# The API.\n---\n{API}",
        f"{WEB}# The API.\n---\n{API}",
    ),
    "last": (f"{WEB}---\n{DOC}", WEB),
    "last, with an end marker": (f"{WEB}---\n{DOC}...\n", f"{WEB}...\n"),
    "on one line": (
        f"{WEB}--- {{apiVersion: apps.karmada.io/v1, kind: WorkloadRebalancer, metadata: {{name: old}}}}\n---\n{API}",
        f"{WEB}---\n{API}",
    ),
    "Windows line ends": (f"{WEB}---\n{DOC}---\n{API}".replace("\n", "\r\n"), f"{WEB}---\n{API}".replace("\n", "\r\n")),
    "byte order mark": (f"\ufeff{DOC}---\n{WEB}", f"\ufeff---\n{WEB}"),
    "no newline at the end": (f"{WEB}---\n{DOC}".rstrip("\n"), WEB),
    "next to values of a tool": (f"a: 1\n---\n{DOC}", "a: 1\n"),
}


@each_row(("before", "after"), CASES.values())
def test_only_the_document_is_removed(before: str, after: str | None) -> None:
    removed = remove_documents(before.encode(), "all.yaml", {OLD})
    assert (removed.decode() if removed is not None else None) == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WEB, "no such document"),
        (f"apiVersion: v1\nkind: List\nitems:\n- {DOC.replace(chr(10), chr(10) + '  ').rstrip()}\n", "an item of a List"),
    ],
)
def test_a_document_that_cannot_be_separated_stays(text: str, reason: str) -> None:
    with pytest.raises(NotRemovable, match=reason):
        remove_documents(text.encode(), "all.yaml", {OLD})


comments = st.lists(st.sampled_from(["# a comment\n", "\n", "   # indented\n"]), max_size=3).map("".join)


@settings(max_examples=count_examples(75), deadline=None)
@given(parts=st.lists(st.tuples(comments, st.booleans(), comments), min_size=1, max_size=5), marked=st.booleans())
def test_the_other_documents_and_their_bytes_stay(parts: list[tuple[str, bool, str]], marked: bool) -> None:
    bodies = [
        before + (DOC.replace("old", f"old{i}") if chosen else WEB.replace("web", f"web{i}")) + after
        for i, (before, chosen, after) in enumerate(parts)
    ]
    text = ("---\n" if marked else "") + "---\n".join(bodies)
    chosen = {(*OLD[:3], f"old{i}") for i, (_, chosen, _) in enumerate(parts) if chosen}
    removed = remove_documents(text.encode(), "all.yaml", chosen)
    if removed is None:
        assert len(chosen) == len(parts)
        return
    kept = [document.body for document in parse_file(removed, path="all.yaml", validate=None).documents]
    assert [body["metadata"]["name"] for body in kept] == [f"web{i}" for i, (_, chosen, _) in enumerate(parts) if not chosen]
    for i, (_, is_chosen, _) in enumerate(parts):
        assert is_chosen or WEB.replace("web", f"web{i}") in removed.decode()
