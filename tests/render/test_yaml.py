"""YAML output is parsed back as the same value by YAML 1.1 and 1.2 parsers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.render.yaml import Fragment, dump, dump_fragment, quote
from tests.tables import each_row

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
LINES = st.lists(st.one_of(TEXT, st.sampled_from(["", " ", "  x", "\tx", "x ", "# x", "---", "- x", "a: b"])), max_size=5).map(
    "\n".join
)
READ_AS = st.sampled_from(["y", "No", "ON", "~", "null", "=", "<<", ".inf", "1e3", "012"])
AMBIGUOUS = st.from_regex(r"\A[-+]?[0-9xobe._:TZ -]{1,12}\Z") | READ_AS
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | LINES | AMBIGUOUS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | LINES | AMBIGUOUS, inner, max_size=4),
    max_leaves=12,
)
BODIES = st.dictionaries(TEXT | AMBIGUOUS, VALUES, max_size=5)

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "annotations": {}, "labels": {"version": "1.10", "enabled": "on"}},
    "spec": {
        "replicas": 3,
        "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.25", "args": ["--port", "80", "a: b", "${PORT}"]}]}},
        "matrix": [[1, 2], [], [{"a": None}]],
    },
    "script": "#!/bin/sh\n\necho one  \n",
}
TEXT_OF_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {}
  labels:
    version: "1.10"
    enabled: "on"
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: web
        image: nginx:1.25
        args:
        - "--port"
        - "80"
        - "a: b"
        - ${PORT}
  matrix:
  - - 1
    - 2
  - []
  - - a: null
script: "#!/bin/sh\\n\\necho one  \\n"
"""


def test_the_layout_is_that_of_kubectl() -> None:
    assert dump(DEPLOYMENT) == TEXT_OF_DEPLOYMENT


@given(BODIES)
def test_every_value_is_parsed_back(body: dict[str, Any]) -> None:
    text = dump(body)
    assert yaml.safe_load(text) == body
    assert yaml.load(text, Loader=yaml.CSafeLoader) == body


@given(TEXT | LINES | AMBIGUOUS)
def test_strings_stay_strings_as_keys_and_values(text: str) -> None:
    assert yaml.load(dump({text: [text, {"a": text}]}), Loader=yaml.CSafeLoader) == {text: [text, {"a": text}]}


@given(VALUES, st.integers(0, 3))
def test_a_fragment_has_the_same_bytes_as_its_value(value: Any, depth: int) -> None:
    def wrap(inner: Any) -> Any:
        for _ in range(depth):
            inner = {"spec": [inner, {"x": inner}], "last": inner}
        return inner

    assert dump(wrap(dump_fragment(value))) == dump(wrap(value))


def test_fragments_can_be_nested() -> None:
    inner = dump_fragment({"a": ["x\n\ny\n"]})
    assert isinstance(inner, Fragment)
    assert dump({"k": dump_fragment([inner])}) == dump({"k": [{"a": ["x\n\ny\n"]}]})


NUMBERS = "1e3 1E+3 012 0o17 0x1F 0b11 1_000 12:30 190:20:30 2026-01-02 2026-01-02T03:04:05Z .5 1. +1 -1 0 0xdeadbeef 1.10"
WORDS = "y N yes No ON off True FALSE null Null ~ = << .inf -.INF .nan"
MARKS = "- ? : --- ... # ! & * | > % @ ` a:"
UNSAFE = ["", " a", "a ", "a b: c", "a #b", "a  b", "- a", "a\tb", "\ufeff", "\x85", "\u2028", "\x7f", "x\r\ny", "\u202eevil", "é"]


@each_row("text", [*NUMBERS.split(), *WORDS.split(), *MARKS.split(), *UNSAFE])
def test_ambiguous_strings_are_quoted(text: str) -> None:
    assert quote(text).startswith('"')
    assert yaml.load(f"k: {quote(text)}", Loader=yaml.CSafeLoader) == {"k": text}


@each_row("text", ["web", "nginx:1.25", "/etc/app", "10Gi", "500m", "30s", "a b, c", "${X}", "apps/v1", "k=v", "https://x.y/z?a"])
def test_unambiguous_strings_are_plain(text: str) -> None:
    assert quote(text) == text


@pytest.mark.parametrize(
    ("value", "text"), [("a\nb\n", "|\n  a\n  b"), ("a\nb", "|-\n  a\n  b"), ("a\n\n b\n\n", "|+\n  a\n\n   b\n")]
)
def test_several_lines_are_a_literal_block(value: str, text: str) -> None:
    assert dump({"k": value, "z": 1}) == f"k: {text}\nz: 1\n"


@pytest.mark.parametrize("value", [" a\nb", "\na", "a\r\nb", "a\n ", "a\n\t\n", "\n\n"])
def test_lines_that_a_literal_block_cannot_represent_are_quoted(value: str) -> None:
    assert dump({"k": value}).startswith('k: "')


@pytest.mark.parametrize("length", [999, 1001, 5000])
def test_a_key_of_any_length_is_parsed_back(length: int) -> None:
    for inner in (1, {"a": 1}, [1], dump_fragment({"a": 1})):
        body = {"k" * length: inner, "z": [{"q" * length: inner}]}
        plain = {"a": 1} if isinstance(inner, Fragment) else inner
        assert yaml.safe_load(dump(body)) == {"k" * length: plain, "z": [{"q" * length: plain}]}


def test_a_short_key_whose_text_is_long_is_written_alike_each_time() -> None:
    body = {"\x01" * 190: {"\x01" * 190: 1}}
    assert dump(body) == dump(body)
    assert yaml.safe_load(dump(body)) == body


@pytest.mark.parametrize(
    ("value", "text"), [(1e16, "1.0e+16"), (1e-7, "1.0e-07"), (0.5, "0.5"), (-0.0, "-0.0"), (float("inf"), ".inf")]
)
def test_floats_stay_floats(value: float, text: str) -> None:
    assert dump({"k": value}) == f"k: {text}\n"
    assert yaml.safe_load(text) == value


def test_a_lone_surrogate_is_replaced() -> None:
    assert dump({"k": "a\ud800b"}) == 'k: "a\\ufffdb"\n'


def test_a_value_that_json_does_not_support_raises_type_error() -> None:
    with pytest.raises(TypeError, match="a manifest cannot contain a value of type set"):
        dump({"k": {1}})
