"""The fast parser reads what every parser reads alike, and then returns what PyYAML does, with all values, types and offsets."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gitsched.manifests import subset_parser
from gitsched.manifests.parsed_file import SharedValues
from gitsched.manifests.parser import parse_file
from gitsched.manifests.yaml_subset import is_common_yaml
from gitsched.model.document import Body
from tests.fuzz.yaml_agreement import Difference, compare, mutate
from tests.tables import each_row

EXAMPLES = Path(__file__).parents[2] / "examples"
OBJECT = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"
WORKLOAD = """\
# A workload as people write it.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, tier: "1"}
  creationTimestamp: null
spec:
  # How many.
  replicas: 3  # at first
  selector:
    matchLabels:
      app: web
  template:
    spec:
      containers:
      - name: web
        image: registry.example.com/web:1.2.3@sha256:00
        command: ["sh", -c, 'it''s']
        args:
          - |
            # no comment
            replicas: 5

          - --level=2
        resources:
          limits: {cpu: 500m, memory: 1Gi}
status:
  replicas: 2

# The end.
---
apiVersion: v1
kind: Namespace
metadata:
  name: web
"""


SCALARS = """
a | a b c | 3 | -3 | 0.5 | true | null | [] | {} | 'yes' | "on" | 500m | 1.2.3 | ./a | $(A) | a:b | a#b | [a, 1] | {a: [1, {b: c}]}
10% | http://a:80/b?c=d&e | é | "a\\nb" | a # c | -c | --a=b | [sh, -c, "a b"] | 2026-w1 | /a/*.b | 'it''s' | "a: b"
"""
OTHER_SCALARS = """
yes | No | on | OFF | y | True | NULL | ~ | 0o17 | 017 | 0x1f | 1_000 | 1e3 | 1.0 | .5 | +1 | .inf | -0 | 0b1 | 12:30 | 2001-01-01
&a b | *a | !!str 1 | !a b | a: b | - a | ? a | @a | `a` | %a | {a: yes} | [on] | {<<: {a: 1}} | [[[[a]]]] | "\\x41" | "\\ud83d\\ude00"
9223372036854775808 | 1234567890123456 | << | _1 | __1.5
"""


def list_cells(table: str) -> list[str]:
    return [cell.strip() for line in table.strip().splitlines() for cell in line.split(" | ")]


@each_row("value", [*list_cells(SCALARS), "|\n    a\n\n     b", ">-\n    a\n    b", "|+ # c\n    a\n\n"])
def test_it_reads_what_manifests_contain(value: str) -> None:
    assert compare(f"{OBJECT}data:\n  a: {value}\n") is True


@each_row(
    "value",
    [
        *list_cells(OTHER_SCALARS),
        "a\tb",
        "'a\n  b'",
        "[a,\n  b]",
        "a\r",
        "a # b\rc",
        "'a\rb'",
        "a\x85b",
        "a\u2028b",
        "|2\n    a",
        "\ufeffa",
    ],
)
def test_it_leaves_the_rest_to_the_other_parser(value: str) -> None:
    assert not is_common_yaml(f"{OBJECT}data:\n  a: {value}\n")


@pytest.mark.parametrize("text", ["data:\n  a: 1\n  'a': 2\n", "kind: B\n", "1: a\n", "on: a\n", "true: a\n", "a: |\n  b"])
def test_it_leaves_duplicate_and_converted_keys_and_open_ends_to_the_other_parser(text: str) -> None:
    assert compare(OBJECT + text) is False


@pytest.mark.parametrize(
    "text", [f"{OBJECT}---\n", f"---\n---\n{OBJECT}", "- a\n", " a: 1\n", "a: 1\n...\n", "%YAML 1.1\n---\na: 1\n"]
)
def test_it_leaves_unusual_documents_to_the_other_parser(text: str) -> None:
    assert compare(text) is False


def test_both_parsers_find_the_same_offsets() -> None:
    assert compare(WORKLOAD) is True
    file = parse_file(WORKLOAD.encode(), path="a.yaml", validate=None, shared=SharedValues({}, {}))
    spans = file.documents[0].spans
    assert [WORKLOAD[a:b] for _, a, b in spans.editable] == ["3"]
    assert [WORKLOAD[a:b] for a, b in spans.server_owned or ()] == ["  creationTimestamp: null\n", "status:\n  replicas: 2\n"]


def test_both_parsers_agree_on_examples_and_mutations_of_them() -> None:
    texts = [
        WORKLOAD,
        *(text for path in sorted(EXAMPLES.rglob("*.yaml")) if len(text := path.read_text(encoding="utf-8")) < 2_000),
    ]
    random = Random(1)
    outcomes = [compare(text) for text in (*texts, *(mutate(random.choice(texts), random) for _ in range(1_500)))]
    assert not [outcome for outcome in outcomes if isinstance(outcome, Difference)]
    assert sum(outcome is True for outcome in outcomes) > 150


def test_a_file_with_a_finding_has_its_position() -> None:
    text = f"{OBJECT}  labels:\n    a: 1\n"
    assert subset_parser.parse_common_file(text, None, ()) is None
    assert parse_file(text.encode(), path="a.yaml", validate=None, shared=SharedValues({}, {})) == parse_file(
        text.encode(), path="a.yaml", validate=None
    )


def parse_specs(*texts: str) -> list[Body]:
    """Return the member spec of an object for each text, as files that are read together have it."""
    shared = SharedValues({}, {})
    files = (parse_file(f"{OBJECT}spec:\n{text}".encode(), path="a.yaml", validate=None, shared=shared) for text in texts)
    return [file.documents[0].body["spec"] for file in files]


def test_equal_texts_of_files_are_one_object() -> None:
    first, second = parse_specs("  a: same value\n", "  b: same value\n")
    assert first["a"] is second["b"]


def test_equal_collections_of_files_are_one_object() -> None:
    first, second, third = parse_specs(
        *(f"  {name}:\n  - {text}\n  - d: 1\n" for name, text in (("a", "c"), ("b", "c"), ("a", "e")))
    )
    assert first["a"] is second["b"]
    assert first["a"][1] is third["a"][1]


def test_values_that_are_equal_only_in_python_are_different_objects() -> None:
    specs = parse_specs(*(f"  a:\n  - {value}\n" for value in ("1", "true", "'1'")), "  c: 1\n  b: 2\n", "  b: 2\n  c: 1\n")
    texts = ["{'a': [1]}", "{'a': [True]}", "{'a': ['1']}", "{'c': 1, 'b': 2}", "{'b': 2, 'c': 1}"]
    assert [repr(spec) for spec in specs] == texts
