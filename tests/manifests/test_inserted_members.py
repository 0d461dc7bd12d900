"""A missing scalar is inserted into the source text: one line is new, and everything else stays as it is."""

from __future__ import annotations

import json
from textwrap import dedent, indent
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.edits.manifest_edits import edit_manifest
from gitsched.git.trees import apply_edits
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Document, Key, Origin
from gitsched.model.planned_files import EditedBlob, PatchedBlob
from gitsched.render.output_files import plan_manifest, set_counts

BLOB = "b" * 40
PATHS = ("spec.replicas", "spec.parallelism", "spec.scale.pods")


def render(text: str, *counts: tuple[str, int], number: int = 0) -> str | None:
    """Return the manifest of the file's document with these counts as text; None if it is written as new YAML."""
    file = parse_file(text.encode(), path="web.yaml", validate=None, editable=PATHS)
    parsed = file.documents[number]
    origin = Origin("web.yaml", BLOB, parsed.index, parsed.item, parsed.line, parsed.column, parsed.spans)
    key = Key("apps", "Deployment", "", "web")  # a missing namespace is another change
    planned = plan_manifest(Document(key, "apps/v1", parsed.body, origin), *counts)
    if isinstance(planned, PatchedBlob):
        patched = edit_manifest(text, planned)
        assert yaml.safe_load(patched.file.data) == set_counts(parsed.body, counts)
        return None if patched.refusal else patched.file.data.decode()
    assert isinstance(planned, EditedBlob)
    return apply_edits(text.encode(), planned.edits).decode()


CASES = {
    "block": """\
        # The shop's front.
        kind: Deployment   # kind first, on purpose
        apiVersion: apps/v1
        metadata: {name: web}
        spec:  # see the runbook
      +   replicas: 3
          # An autoscaler sets the replicas.

          selector: {matchLabels: {app: web}}
          template:
            spec: {}
        # the end
        """,
    "flow mapping on one line": """\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
      - spec: {template: {spec: {}}}  # short
      + spec: {replicas: 3, template: {spec: {}}}  # short
        """,
    "JSON": """\
        {
          "apiVersion": "apps/v1",
          "kind": "Deployment",
          "metadata": {"name": "web"},
          "spec": {
      +     "replicas": 3,
            "template": {"spec": {}}
          }
        }
        """,
    "flow mapping with a comment": """\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec: {  # no {replicas}
            # about the template
      +     replicas: 3,
            template: {},
        }
        """,
    "indented more": """\
        apiVersion: apps/v1
        kind: Deployment
        metadata:
              name: web
        spec:
      +       replicas: 3
              template: |
                spec:
                  replicas: 7
        """,
    "quoted keys": """\
        "apiVersion": apps/v1
        "kind": Deployment
        "metadata": {"name": "web"}
        "spec" :
      +   replicas: 3
          "template": {}
        """,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_line_of_a_missing_scalar_is_inserted(name: str, line_end: str) -> None:
    lines = CASES[name].splitlines()
    before = dedent("\n".join(line.replace("-", " ", 1) for line in lines if not line.startswith("      +")))
    after = dedent("\n".join(line.replace("+", " ", 1) for line in lines if not line.startswith("      -")))
    assert render(before.replace("\n", line_end), ("spec.replicas", 3)) == after.replace("\n", line_end)


def test_a_document_of_a_file_with_several_keeps_its_text() -> None:
    web = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  # pods\n  template: {}\n"
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n"
    text = f"\ufeff# all\n{other}---\n{web}---\n{other}"
    assert render(text, ("spec.replicas", 2), number=1) == web.replace("spec:\n", "spec:\n  replicas: 2\n")


def test_two_scalars_are_inserted() -> None:
    text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: web}\nspec: {scale: {max: 5}}\n"
    edited = render(text, ("spec.parallelism", 1), ("spec.replicas", 2), ("spec.scale.pods", 4))
    assert edited is not None
    assert yaml.safe_load(edited)["spec"] == {"parallelism": 1, "replicas": 2, "scale": {"max": 5, "pods": 4}}


@pytest.mark.parametrize(
    ("spec", "edited"),
    [
        pytest.param("", "spec:\n  replicas: 3\n", id="no spec"),
        pytest.param("spec:  # x\n", "spec:  # x\n  replicas: 3\n", id="a null spec"),
        pytest.param("spec: {}  # x\n", "spec:  # x\n  replicas: 3\n", id="an empty spec"),
        pytest.param("spec:\n  replicas:  # x\n", "spec:\n  replicas: 3  # x\n", id="an empty scalar"),
        pytest.param("spec: !!map\n  template: {}\n", "spec: !!map\n  template: {}\n  replicas: 3\n", id="a tag"),
        pytest.param(
            "x: &shared {a: 1}\nspec:\n  <<: *shared\n  b: 2\n",
            "x: &shared {a: 1}\nspec:\n  <<: *shared\n  b: 2\n  replicas: 3\n",
            id="a merge key",
        ),
    ],
)
def test_a_scalar_without_a_parent_to_insert_into_is_added_in_place(spec: str, edited: str) -> None:
    head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    assert render(head + spec, ("spec.replicas", 3)) == head + edited


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("x: &shared\n  template: {}\nspec: *shared\n", id="an alias"),
        pytest.param("spec: &shared\n  template: {}\nx: *shared\n", id="an anchor"),
        pytest.param("spec:\n  ? template\n  : {}\n", id="an explicit key"),
        pytest.param("? spec\n: template: {}\n", id="a value on the line of an explicit key"),
    ],
)
def test_other_text_is_written_again(spec: str) -> None:
    text = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\n{spec}"
    assert render(text, ("spec.replicas", 3)) is None


NAMES = st.sampled_from(["template", "selector", "replicasOf", "minReady", "strategy", "x-replicas"])
SCALARS = st.one_of(st.integers(0, 99), st.sampled_from(["a b", "replicas: 7", "# text", "{", "}", "é\u2028", "\U0001f600"]))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=5)
COMMENTS = st.sampled_from(["", "# replicas: 9\n", "\n", "   # indented, with {braces}\n", "# é\U0001f600\n\n"])


@given(
    spec=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4),
    pad=st.integers(1, 6),
    style=st.sampled_from(["block", "flow", "json", "json lines"]),
    comment=COMMENTS,
    beside=st.sampled_from(["", " ", "  # beside: {it}"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    head=st.sampled_from(["", "\ufeff", "# head\n", "---\n", "# é\n---\n"]),
    tail=st.sampled_from(["", "# tail\n", "status: {replicas: 4}\n"]),
    count=st.integers(0, 2**31 - 1),
)
def test_an_edit_inserts_one_line_and_nothing_else(
    spec: dict[str, Any], pad: int, style: str, comment: str, beside: str, line_end: str, head: str, tail: str, count: int
) -> None:
    if style == "block":
        inner = yaml.safe_dump(spec, allow_unicode=True, sort_keys=False, width=40)
        written = f"spec:{beside}\n{comment}{indent(inner, ' ' * pad)}"
    elif style == "flow":
        written = f"spec: {yaml.safe_dump(spec, allow_unicode=True, default_flow_style=True, width=10**6).strip()}{beside}\n"
    else:
        lines = style == "json lines"
        written = f"spec: {indent(json.dumps(spec, indent=pad if lines else None, ensure_ascii=False), '  ').strip()}{beside}\n"
    text = f"{head}apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\n{written}{tail}".replace("\n", line_end)
    before = parse_file(text.encode(), path="web.yaml", validate=None).documents[0]
    edited = render(text, ("spec.replicas", count))
    assert edited is not None
    after = parse_file(edited.encode(), path="web.yaml", validate=None).documents[0]
    server_owned = {"status"} if tail.startswith("status") else set()
    expected = set_counts(before.body, [("spec.replicas", count)])
    assert after.body == {name: value for name, value in expected.items() if name not in server_owned}
    source = text.replace(f"status: {{replicas: 4}}{line_end}", "") if server_owned else text
    at = next(i for i, (a, b) in enumerate(zip(edited, source + "\0", strict=False)) if a != b)
    inserted = edited[at : at + len(edited) - len(source)]
    assert edited[:at] + edited[at + len(inserted) :] == source
    assert str(count) in inserted
    assert inserted.count(line_end) == (style in ("block", "json lines"))
