"""Hostile and oversized files."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.parser import ParsedFile, parse_file, reject_large_file

GOOD = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: good\n"
BOMB = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (now, now, b", ".join([b"*%c" % (now - 1)] * 9)) for now in range(ord("b"), ord("j"))
)


def read_yaml(data: bytes | str) -> ParsedFile:
    return parse_file(data if isinstance(data, bytes) else dedent(data).encode(), path="some/file.yaml", validate=None)


@pytest.mark.parametrize(
    ("data", "code", "line", "column"),
    [
        pytest.param(BOMB, "too-many-aliases", 5, 4, id="alias bomb"),
        pytest.param(b"[" * 100_000, "too-deep", 1, 201, id="100,000 brackets"),
        pytest.param(b"a: " + b"{b: " * 100_000, "too-deep", 1, 800, id="100,000 braces"),
        pytest.param(b"- " * 100_000, "too-deep", 1, 401, id="100,000 dashes"),
        pytest.param(b"\n".join(b" " * n + b"a:" for n in range(1000)), "too-deep", 201, 201, id="deep indentation"),
        pytest.param(b"a: &a [*a]\nkind: X", "recursive-alias", 1, 4, id="a list that contains itself"),
        pytest.param("kind: é\n".encode("latin-1"), "not-utf-8", 1, 7, id="Latin-1"),
        pytest.param(b"kind: a\n".decode().encode("utf-16"), "not-utf-8", 1, 1, id="UTF-16 with mark"),
        pytest.param(b"kind: a\n".decode().encode("utf-16-le"), "not-utf-8", 1, 1, id="UTF-16 without mark"),
        pytest.param(b"kind: a\n".decode().encode("utf-32-be"), "not-utf-8", 1, 1, id="UTF-32"),
        pytest.param(b"a: b\nkind: \x00", "control-character", 2, 7, id="NUL"),
        pytest.param(b"a: b\nkind: \x1b[0m", "control-character", 2, 7, id="escape"),
        pytest.param("kind: \x9b\n".encode(), "control-character", 1, 7, id="C1 control"),
        pytest.param(b"---\nkind: a\n" * 12_000, "too-many-documents", 10_001, 1, id="12,000 small documents"),
        pytest.param(b"[" + b"1," * 1_100_000 + b"]", "too-many-nodes", 1, 2_000_000, id="a million values"),
        pytest.param(b"x" * (DEFAULT_LIMITS.size + 1), "file-too-large", 1, 1, id="size"),
    ],
)
def test_a_malicious_file_is_one_error_with_its_location(data: bytes, code: str, line: int, column: int) -> None:
    file = read_yaml(data)
    assert file.status == "invalid"
    assert file.unreadable
    assert [(p.severity, p.code, p.line, p.column) for p in file.issues] == [("error", code, line, column)]


def test_large_file_is_reported_by_its_size_alone() -> None:
    assert (
        reject_large_file(50_000_000, "big.yaml").issues[0].message
        == "the file has 50000000 bytes; files over 4194304 bytes are not read"
    )
    assert reject_large_file(50_000_000, "data.json").issues[0].severity == "warning"


def test_documents_before_and_after_an_invalid_one_are_read() -> None:
    file = read_yaml(GOOD + b"---\napiVersion: v1\nkind: Secret\n  oops: [\n---\n" + GOOD.replace(b"good", b"fine"))
    assert [document.body["metadata"]["name"] for document in file.documents] == ["good", "fine"]
    assert [(p.code, p.line, p.column) for p in file.issues] == [("yaml-syntax", 8, 7)]
    assert (file.status, file.unreadable) == ("invalid", True)
    assert [document.line for document in file.documents] == [1, 10]


def test_a_limit_applies_after_a_syntax_error() -> None:
    file = read_yaml(b"kind: b: c\n---\n" + b"[" * 100_000)
    assert [p.code for p in file.issues] == ["yaml-syntax", "too-deep"]


def test_the_number_of_syntax_errors_is_limited() -> None:
    issues = read_yaml(b"kind: b: c\n---\n" * 1000).issues
    assert [issue.code for issue in issues] == ["yaml-syntax"] * 20 + ["too-many-problems"]
    assert (issues[-1].line, "from here on it is not read" in issues[-1].message) == (41, True)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        pytest.param("".join(f"k{n}: 1\n" for n in range(20_000)) + "k19999: 1\n" * 20_000, 20, id="duplicate keys"),
        pytest.param("  labels:\n" + "".join(f"    k{n}: 1\n" for n in range(20_000)), 20, id="numbers as labels"),
        pytest.param("x: [" + "!a b, " * 20_000 + "]\n", 20, id="tags"),
        pytest.param("x:\n" + "  <<: {a: 1}\n" * 20_000, 20, id="merges"),
        pytest.param("x: [" + "{on: 1}, " * 20_000 + "]\n", 20, id="boolean keys"),
    ],
)
def test_the_number_of_errors_of_a_document_is_limited(text: str, most: int) -> None:
    file = read_yaml(GOOD + text.encode())
    assert len(file.issues) == most + 1
    assert "too-many-problems" in [issue.code for issue in file.issues]


def test_items_after_too_many_errors_are_quarantined() -> None:
    entry = "- {apiVersion: v1, kind: Pod, metadata: {name: a}, x: 1, x: 2}\n"
    file = read_yaml("apiVersion: v1\nkind: List\nitems:\n" + entry * 30)
    assert [document.broken for document in file.documents] == [True] * 30


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\n" * 1_000_000, id="empty lines"),
        pytest.param(b" \t" * 500_000 + b"\n", id="blanks"),
        pytest.param(GOOD + b'x: "' + b"\\\\" * 500_000 + b'\\ud800"\n', id="backslashes"),
        pytest.param(b'apiVersion: v1\nkind: A\nmetadata:\n  name: "' + b"{{" * 500_000 + b'"\n', id="braces in a name"),
        pytest.param(
            b"apiVersion: v1\nkind: A\nmetadata:\n  name: " + b"a-" * 500_000 + b"\n", id="a name of a million characters"
        ),
        pytest.param(GOOD + b"x: {{" + b": " * 500_000, id="colons"),
    ],
)
def test_parsing_takes_linear_time(data: bytes) -> None:
    """Each input has a megabyte: a quadratic step would take hours."""
    assert read_yaml(data).status in ("empty", "invalid", "not-a-resource", "resources")


@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    read_yaml(data)


SEEDS = [
    GOOD,
    b"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n"
    b"  metadata: {name: a, uid: x}\n  data: &d {a: 1}\n- *d\n",
    b"---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n"
    b"  managedFields:\n  - {}\nspec:\n  replicas: 3\n---\n<<: {kind: x}\n...\n",
]
PIECES = [
    b"",
    b"\n",
    b"---\n",
    b"...\n",
    b" ",
    b"\t",
    b"- ",
    b"? ",
    b": ",
    b"[",
    b"]",
    b"{",
    b"}",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!int ",
    b"!x ",
    b"|\n",
]
PIECES += [
    b'"',
    b"'",
    b"#",
    b"%YAML 1.1\n",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"\r",
    b".nan",
    b"~",
    b"0x",
    b"1e999",
    b"\\ud800",
    b"@",
]


@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 12), st.sampled_from(PIECES)), max_size=6))
def test_no_edit_of_a_manifest_raises(data: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    for place, gone, piece in edits:
        data = data[:place] + piece + data[place + gone :]
    file = read_yaml(data)
    assert ParsedFile.from_json(json.loads(json.dumps(file))) == file
    for document in file.documents:
        assert document.spans.end <= len(data)
