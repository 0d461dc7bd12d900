"""Values of YAML nodes, as Kubernetes reads them."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.parser import ParsedFile, parse_file
from gitsched.manifests.plain_scalars import NON_STRING_KEY
from gitsched.manifests.yaml_composer import YamlDocument, compose_documents
from gitsched.manifests.yaml_nodes import Constructor
from tests.tables import each_row

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def read_text(text: str) -> ParsedFile:
    return parse_file(text.encode(), path="a.yaml", validate=None)


def value_of(text: str) -> Any:
    """Return the value that kubectl reads; kustomize may read another one (`test_reader_differences`)."""
    (tree,) = compose_documents(f"{HEAD}value: {text}\n", DEFAULT_LIMITS)
    assert isinstance(tree, YamlDocument)
    found = Constructor(tree.line, tree.node)
    assert found.errors == []
    return found.value["value"]


@each_row(
    ("text", "value"),
    [
        *[(word, True) for word in ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y")],
        *[(word, False) for word in ("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N")],
        *[(word, None) for word in ("", "~", "null", "Null", "NULL", "# comment")],
        *[(word, word) for word in ("tRUE", "nO", "yEs", "nULL", "none", "None", "-a", "+", ".", "_1", "<<", "=")],
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("0644", 420),
        ("0o644", 420),
        ("0_7", 7),
        ("08", 8),
        ("0x1F", 31),
        ("-0x1f", -31),
        ("0b101", 5),
        ("-0b101", -5),
        ("0b2", "0b2"),
        ("0x", "0x"),
        ("1_000", 1000),
        ("1__0_", 10),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", float(2**63)),
        ("18446744073709551616", float(2**64)),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.", 1),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("-.5e1", -5),
        ("1_0.5", 10.5),
        ("1e-3", 0.001),
        ("1e22", 1e22),
        ("1e999", "1e999"),
        ("1e", "1e"),
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("2024-01-01", "2024-01-01"),
        ("2024-13-45", "2024-13-45"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("2024-01-01 10:00:00", "2024-01-01 10:00:00"),
        ("1.2.3", "1.2.3"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("250m", "250m"),
        ("١٢", "١٢"),
        ("'yes'", "yes"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("! yes", True),
        ("!!int '5'", 5),
        ("!!float 3", 3),
        ("!!bool yes", True),
        ("!!null ''", None),
        ("!!timestamp 2024-01-01", "2024-01-01"),
        ("!!map {}", {}),
        ("!!seq []", []),
        ("${REPLICAS}", "${REPLICAS}"),
        ("|-\n  yes", "yes"),
        (">\n  a\n  b\n", "a b\n"),
    ],
)
def test_a_scalar_has_the_value_of_go_yaml(text: str, value: object) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


@each_row(
    ("text", "members"),
    [
        ("{True: 1}", {"true": 1}),
        ("{1: a}", {"1": "a"}),
        ("{010: a}", {"8": "a"}),
        ("{1.5: a}", {"1.5": "a"}),
        ("{0.1: a}", {"0.1": "a"}),
        ("{1e-7: a}", {"1e-07": "a"}),
        ("{1234567.5: a}", {"1.2345675e+06": "a"}),
        ("{2024-01-01: a}", {"2024-01-01": "a"}),
        ('{"yes": 1}', {"yes": 1}),
        ("{'<<': 1}", {"<<": 1}),
        ('{"": 1}', {"": 1}),
    ],
)
def test_keys_become_strings(text: str, members: object) -> None:
    assert value_of(text) == members


@each_row(
    ("text", "code", "message"),
    [
        (".nan", "not-in-json", "JSON has no infinite numbers and no nan"),
        ("-.inf", "not-in-json", "JSON has no infinite numbers"),
        ("!!binary aGk=", "unsupported-tag", "write base64 text without the tag"),
        ("!!python/object:os.system x", "unsupported-tag", "the tag of this value has no meaning"),
        ("!secret x", "unsupported-tag", "the tag of this value has no meaning"),
        ("!!set {a: null}", "unsupported-tag", "the tag !!set"),
        ("!!omap [a: 1]", "unsupported-tag", "the tag !!omap"),
        ("!!int x", "wrong-tag", "the value is not a valid int"),
        ("!!bool 1", "wrong-tag", "the value is not a valid bool"),
        ("{~: 1}", "unsupported-key", "null cannot be a key"),
        ("{[a]: 1}", "unsupported-key", "a list cannot be a key"),
        ("{ {a: b}: 1}", "unsupported-key", "a mapping cannot be a key"),
        ("1" + "0" * 400, "number-out-of-range", "too large"),
        ("9" * 5000, "number-out-of-range", "too large"),
        ("0x" + "f" * 5000, "number-out-of-range", "too large"),
        ("{<<: 1}", "unsupported-merge", "takes a mapping"),
        ("{a: 1, b: 2, a: 3}", "duplicate-key", "duplicate key 'a': line 4 has it already"),
        ("{1: 1, '1': 2}", "duplicate-key", "duplicate key '1'"),
        ("{true: 1, TRUE: 2}", "duplicate-key", "duplicate key 'true'"),
        ("{<<: {a: 1}, <<: {b: 1}}", "duplicate-key", "duplicate key '<<'"),
    ],
)
def test_a_value_that_json_cannot_represent_quarantines_the_document(text: str, code: str, message: str) -> None:
    file = read_text(f"{HEAD}value: {text}\n")
    issues = [issue for issue in file.issues if issue.code != NON_STRING_KEY]
    assert [(p.severity, p.code, p.resource) for p in issues] == [("error", code, ("ConfigMap", "", "a"))]
    assert message in issues[0].message
    assert (file.status, file.unreadable, file.documents[0].broken) == ("resources", False, True)


def test_duplicate_keys_name_both_lines() -> None:
    (problem,) = read_text(HEAD + "data:\n  a: 1\n  b: 2\n  a: 3\n").issues
    assert (problem.line, problem.column, problem.message) == (7, 3, "duplicate key 'a': line 5 has it already")


def test_a_document_without_a_separator_before_it_is_reported() -> None:
    nested = "spec: {ref: {kind: A}}\n"
    first, *others = read_text(HEAD + nested + HEAD).issues
    assert (first.line, first.code) == (5, "duplicate-key")
    assert first.message == (
        "duplicate key 'apiVersion': line 1 has it already; if another document begins here, write a line '---' before it"
    )
    assert read_text(HEAD + nested + "---\n" + HEAD.replace("name: a", "name: b")).issues == ()
    assert [issue.message.partition("'")[2].partition("'")[0] for issue in others] == ["kind", "metadata"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("{base: &b {x: 1, w: 2}, value: {<<: *b, w: 3}}", {"x": 1, "w": 3}, id="a written key wins"),
        pytest.param(
            "{base: &b {x: 1}, other: &o {x: 2, z: 3}, value: {<<: [*b, *o]}}", {"x": 1, "z": 3}, id="the earlier mapping wins"
        ),
        pytest.param("{base: &b {x: 1}, next: &n {<<: *b, w: 2}, value: {<<: *n}}", {"x": 1, "w": 2}, id="merges nest"),
    ],
)
def test_merge_keys_are_resolved(text: str, value: object) -> None:
    file = read_text(f"{HEAD}spec: {text}\n")
    assert file.issues == ()
    assert file.documents[0].body["spec"]["value"] == value


def test_a_merge_after_the_key_it_sets_is_an_error() -> None:
    file = read_text(HEAD + "base: &b {x: 1}\nvalue:\n  x: 2\n  <<: *b\n")
    assert [(p.severity, p.code, p.line) for p in file.issues] == [("error", "late-merge", 7)]
    assert file.documents[0].body["value"] == {"x": 2}


def test_aliases_are_copied_so_no_two_fields_share_a_value() -> None:
    body = read_text(HEAD + "one: &a {x: [1]}\ntwo: *a\n").documents[0].body
    assert body["one"] == body["two"]
    assert body["one"] is not body["two"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("a: &x 1\nb: *x\nc: &x 2\nd: *x\n", [{"a": 1, "b": 1, "c": 2, "d": 2}], id="scalars"),
        pytest.param(
            "a: &x [1]\nb: *x\nc: &x {k: 2}\nd: *x\n", [{"a": [1], "b": [1], "c": {"k": 2}, "d": {"k": 2}}], id="collections"
        ),
        pytest.param("a: &x {k: &x 1, z: *x}\nb: *x\n", [{"a": {"k": 1, "z": 1}, "b": 1}], id="inside of itself"),
        pytest.param(
            "a: 1\n---\na: &x 1\nb: &x 2\nc: *x\n---\na: 3\n", [{"a": 1}, {"a": 1, "b": 2, "c": 2}, {"a": 3}], id="documents"
        ),
        pytest.param("&x a: 1\n&x b: *x\n", [{"a": 1, "b": "b"}], id="keys"),
    ],
)
def test_an_anchor_may_be_defined_again(text: str, values: list[object]) -> None:
    file = read_text("---\n".join(HEAD + part for part in text.split("---\n")))
    assert file.issues == ()
    head = set(read_text(HEAD).documents[0].body)
    assert [{key: value for key, value in d.body.items() if key not in head} for d in file.documents] == values


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        pytest.param("a: &x 1\nb: &x 2\nc: *y\n", "yaml-syntax", 6, id="unknown alias"),
        pytest.param("a: &x 1\nb: &x [*x]\n", "recursive-alias", 5, id="recursion"),
        pytest.param("a: &x 1\nb: &x 2\nc: [\n", "yaml-syntax", 7, id="syntax"),
        pytest.param("a: &x " + "[" * 250 + "]" * 250 + "\nb: &x 2\n", "too-deep", 4, id="depth"),
    ],
)
def test_a_document_that_defines_an_anchor_again_has_the_usual_limits(text: str, code: str, line: int) -> None:
    file = read_text(HEAD + text)
    assert [(issue.code, issue.line) for issue in file.issues] == [(code, line)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_line_ends_make_no_difference(newline: str, end: str) -> None:
    text = (HEAD + "value: |\n  x\n  y" + end).replace("\n", newline)
    assert read_text(text).documents[0].body["value"] == "x\ny" + end


def test_json_is_read_by_the_same_rules() -> None:
    data = b'{\n\t"apiVersion": "v1",\n\t"kind": "ConfigMap",\n\t"metadata": {"name": "a"},\n\t"data": {"a": "\\u00e9\\/\\n"}\n}\n'
    (document,) = parse_file(data, path="a.json", validate=None).documents
    assert document.body["data"] == {"a": "é/\n"}


def test_byte_order_mark_is_a_warning_and_counts_in_offsets_only() -> None:
    data = b"\xef\xbb\xbf" + HEAD.encode() + b"spec:\n  replicas: 3\n"
    file = parse_file(data, path="a.yaml", validate=None)
    ((_, start, end),) = file.documents[0].spans.editable
    assert data.decode()[start:end] == "3"
    assert (file.documents[0].line, file.documents[0].column) == (1, 1)
    assert [(p.severity, p.code) for p in file.issues] == [("warning", "byte-order-mark")]
