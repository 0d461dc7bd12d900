"""Manifests that kubectl and kustomize do not both read as the same value: each class with its finding, and what they read alike."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from gitsched.manifests.parser import parse_file
from tests.fuzz.kubernetes_readers import read_with_kubectl, read_with_kustomize
from tests.fuzz.reader_agreement import find_other_values, list_accepted
from tests.tables import each_row

REFUSED, AMBIGUOUS, KEY, TEXT = "refused-by-kubernetes", "ambiguous-value", "non-string-key", "ambiguous-text"


def make_text(data: str) -> str:
    """Return a manifest with these members or entries in column 3 of line 6."""
    return f"apiVersion: example.com/v1\nkind: Example\nmetadata:\n  name: a\nspec:\n  {data}\n"


MANIFEST = make_text("a: b")
JSON = '{"apiVersion": "example.com/v1", "kind": "Example", "metadata": {"name": "a"}, "spec": {"a": 1}}'

CLASSES = [
    # The text of a file, and the findings with their place.
    (make_text("a: {url: http://x.example/?q=1}"), [(REFUSED, "6:29")]),
    (make_text("a: [b, c?]"), [(REFUSED, "6:11")]),
    (make_text("a: {b: c,\n      d: e\n      ? f}"), [(REFUSED, "7:18")]),
    (make_text(r'a: "http:\/\/x.example"'), [(REFUSED, "6:12")]),
    (make_text(r'"a\/b": c'), [(REFUSED, "6:5")]),
    (make_text(r'a: "\\\\\/"'), [(REFUSED, "6:11")]),
    (f"%YAML 1.1\n---\n{MANIFEST}", [(REFUSED, "1:1")]),
    (f"%YAML 1.2\n---\n{MANIFEST}", [(REFUSED, "1:1")]),
    (f"# a comment\n%TAG !e! tag:example.com,2000:\n---\n{MANIFEST}", [(REFUSED, "2:1")]),
    (f"--- !!map\n{MANIFEST}", [(REFUSED, "1:5")]),
    (f"{MANIFEST}---:\n", [(REFUSED, "7:1")]),
    (f"---:\n{MANIFEST}", [(REFUSED, "1:1")]),
    (f"{MANIFEST}---\x85\n{MANIFEST.replace('name: a', 'name: b')}", [(REFUSED, "7:1"), (REFUSED, "7:1")]),
    (f"{MANIFEST}---\x85\na: b\n", [(REFUSED, "7:1")]),
    ("--- {apiVersion: example.com/v1, kind: Example, metadata: {name: a}}\n", [(REFUSED, "1:5")]),
    (f"{MANIFEST}\u2028---\n{MANIFEST.replace('name: a', 'name: b')}", [(REFUSED, "7:2"), (REFUSED, "7:2")]),
    (
        '{"apiVersion": "example.com/v1", "kind": "Example", "metadata": {"name": "a"}, "spec": {"a": "b\n---c"}}\n',
        [(REFUSED, "2:1")],
    ),
    *((make_text(f"a: {word}"), [(AMBIGUOUS, "6:6")]) for word in ("y", "N", "yes", "NO", "on", "Off")),
    *((make_text(f"a: [{word}]"), [(AMBIGUOUS, "6:7")]) for word in ("y", "No", "ON", "off")),
    (make_text("a: !!bool yes"), [(AMBIGUOUS, "6:6")]),
    *(
        (make_text(f"a: {time}"), [(AMBIGUOUS, "6:6")])
        for time in (
            *("2001-01-01", "2001-1-1", "0000-02-29", "2001-01-01 10:00:00", "2001-01-01  1:0:0.5", "2001-01-01T1:00:00Z"),
            *("2001-01-01t10:00:00Z", "2001-01-01T10:00:00.50Z", "2001-01-01T10:00:00+00:00", "2001-01-01T10:00:00,5Z"),
            *("!!timestamp 2001-01-01", "!!timestamp '2001-01-01'"),
        )
    ),
    *((make_text(f"a: {flow}"), [(AMBIGUOUS, at)]) for flow, at in (("{b: , c: d}", "6:10"), ("{b}", "6:8"), ("{b:c}", "6:10"))),
    (make_text("a: [&b , c]"), [(AMBIGUOUS, "6:7")]),
    (make_text("a: ! 1"), [(AMBIGUOUS, "6:6")]),
    (make_text("a: !"), [(AMBIGUOUS, "6:6")]),
    (make_text("a: &b !"), [(AMBIGUOUS, "6:6")]),
    (make_text("a: &b ! 1\n  c: *b"), [(AMBIGUOUS, "6:6")]),
    *(
        (make_text(f"{key}: b"), [(KEY, "6:3")])
        for key in ("1", "1.5", "0x1", "true", "FALSE", "yes", "on", "n", "2001-01-01", "!!int 1")
    ),
    (make_text("a: {1: b, c: {off: d}}"), [(KEY, "6:7"), (KEY, "6:17")]),
    (make_text("2001-01-01T10:00:00Z: b"), [(KEY, "6:3")]),
    (make_text("a: &b {c: d}\n  e:\n    c: f\n    <<: *b"), [("late-merge", "9:5")]),
    (make_text("'<<': b"), [(KEY, "6:3")]),
    (make_text("a: |\n    b").rstrip("\n"), [(TEXT, "6:6")]),
    (make_text("a: >+\n    b\n  ").rstrip("\n"), [(TEXT, "6:6")]),
    (make_text("a: >+\n ").rstrip("\n"), [(TEXT, "6:6")]),
    (make_text("a: >\n    b:\n      c\n    d"), [(TEXT, "6:6")]),
    (make_text("- >-\n    b\n\n      c"), [(TEXT, "6:5")]),
    (make_text("a: >+\n    b\n\n"), [(TEXT, "6:6")]),
    *((make_text(f"a: |+\n    b\n\n{comment}"), [(TEXT, "6:6")]) for comment in ("# c", "  # c\n  # d\n\n", " \n# c\n...")),
    *((make_text(f'a: "b {escape} c"'), [(REFUSED, "6:6")]) for escape in (r"\x7f", r"\u0080", r"\x9F", r"\ufffe", r"\uFFFF")),
    *((make_text(f'a: "b{escape}c"'), [(AMBIGUOUS, "6:6")]) for escape in (r"\N", r"\x85", r"\u0085")),
    *((JSON + rest, [(REFUSED, at)]) for rest, at in (("\n...\n", "2:1"), ("\n#", "2:1"), (" # c", "1:98"), ("\n\n#", "3:1"))),
    (JSON.replace("1}", "1e400}"), [(REFUSED, "1:94")]),
    *((f"{directive}\n---\n---\n{MANIFEST}", [(REFUSED, "1:1")]) for directive in ("%YAML 1.2", "%TAG ! a")),
    (make_text("a: &b [&c {d: e}]\n  f: {<<: *b}"), [("unsupported-merge", "7:7")]),
    (make_text("a: !!timestamp b"), [("wrong-tag", "6:6")]),
    *(
        (MANIFEST.replace("name: a", f"name: a\n  annotations: {{b: {null}}}"), [(AMBIGUOUS, "5:20")])
        for null in ("null", "~", "NULL")
    ),
    *(
        (MANIFEST.replace("name: a", f"name: a\n  annotations: {{{key}: b}}"), [(KEY, at)])
        for key, at in (("'1'", "5:22"), ('"true"', "5:25"), ("!!str 1.5", "5:28"), ("'null'", "5:25"), ('"2001-01-01"', "5:31"))
    ),
]
ALIKE = [
    MANIFEST,
    *(
        make_text(data)
        for data in (
            *(
                "a: http://x.example/?q=1",
                "a: what?",
                "a: {b: 'c?'}",
                "a: {?b: c}",
                "? a\n  : b",
                "a: {? b : c}",
                "a: b!",
                "a: '! b'",
            ),
            *('a: "\\\\/"', "a: '\\/'", "a: b\\/c", "a: 'yes'", "a: true", "a: FALSE", "a: yEs", "a: !!str on"),
            *("a: '2001-01-01'", "a: 2001-02-30", "a: 2001-01-01T10:00:00", "a: 2001-01-01T10:00:00Z", "a: 2001-01-01 24:00:00"),
            *(
                "a: 2001-01-01T10:00:00.5+02:00",
                "a: 12:30:45",
                "a: 017",
                "a: 0o17",
                "a: !!int '1'",
                "a: !!float 1",
                "a: +.5",
                "a: 1_000",
            ),
            *(
                "a:",
                "a: {b: null, c: ~, d: ''}",
                "a: []",
                "a: [b, ]",
                "a: !!map {}",
                "a: 0xffffffffffffffff",
                "a: 18446744073709551616",
            ),
            *("'1': b", "'yes': b", "!!str 1: b", "1a: b", "=: b", "a: &b {c: d}\n  e: {<<: *b}", "a: &b c\n  d: *b\n  e: &b f"),
            *(
                "a: |\n    b\n     c",
                "a: |+\n    b\n\n",
                "a: |+\n    b\n\n  # c\n  d: e",
                "a: |+\n    b\n# c",
                "a: >\n    b\n    c\n\n    d",
                "a: >-\n    b\n\n    c",
                "a: >\n    b \n      c",
            ),
            *("a: |-\n    %b\n    --- c\n    ...", 'a: "b\n    c"', "a: b\n    c", "a: '\u2028b'"),
        )
    ),
    *(make_text(data) for data in (r'a: "\\x7f\t\_\L\u2028\e"', "a: '\\x7f\\N'", "a: {b: &c {d: e}, f: {<<: [*c]}}", "a: [1e400]")),
    *(JSON + rest for rest in ("\n# c\n", "\n\n", "  # cc\n", "\n#cc", "\n\n#\n", " ")),
    *(JSON.replace("1}}", f"1, }}}}{rest}") for rest in ("#", "\n...\n", "\n#")),
    *(make_text(data).rstrip("\n") for data in ("a: |-\n    b", "a: >+", "a: |\n  ")),
    *(
        MANIFEST.replace("name: a", f"name: a\n  {member}")
        for member in (
            "annotations:\n    b:",
            "annotations: {b: 'null', '1a': '1', yes.a: c, 'n': 'yes'}",
            "labels: {b: null, '1': 'true'}",
        )
    ),
    f"# a comment\n---\n{MANIFEST}...\n",
    f"--- # a comment\n{MANIFEST}---\n{MANIFEST.replace('name: a', 'name: b')}...\n---\n{MANIFEST.replace('name: a', 'name: c')}",
    f"\ufeff{MANIFEST}",
    MANIFEST.replace("\n", "\r\n"),
    '{"apiVersion": "example.com/v1", "kind": "Example", "metadata": {"name": "a"}, "spec": {"a": "b?"}}',
]


@each_row(("text", "expected"), CLASSES)
def test_what_the_readers_disagree_about_is_a_finding_at_its_place(text: str, expected: list[tuple[str, str]]) -> None:
    file = parse_file(text.encode(), path="a.yaml", validate=None)
    assert [(issue.code, f"{issue.line}:{issue.column}") for issue in file.issues] == expected
    refused = [issue.severity == "error" for issue in file.issues]
    assert refused == [issue.code != TEXT for issue in file.issues]
    assert any(document.broken for document in file.documents) == any(refused)


@each_row("text", ALIKE)
def test_what_the_readers_read_alike_has_no_finding(text: str) -> None:
    file = parse_file(text.encode(), path="a.yaml", validate=None)
    assert [issue for issue in file.issues if issue.code != "byte-order-mark"] == []


def _rename_objects(texts: Iterable[str]) -> list[str]:
    """Return the texts with another name for each first object, so that one process reads all."""
    return [re.sub(r'(?<="name": ")a(?=")|(?<=name: )a\b', f"a{number}", text) for number, text in enumerate(texts)]


def test_kubectl_and_kustomize_confirm_the_table() -> None:
    accepted = [document for text in _rename_objects(ALIKE) for document in list_accepted(text)]
    assert len(accepted) == len(ALIKE) + 2
    assert find_other_values(accepted) == []


def test_kubectl_or_kustomize_refuses_each_class_or_both_read_other_values() -> None:
    texts = [text.encode() for text in _rename_objects(text for text, _ in CLASSES)]
    read = {}
    for number, (text, reading) in enumerate(zip(texts, read_with_kubectl(texts), strict=True)):
        if not reading.refusal and len(reading.values) == len(parse_file(text, path="a.yaml", validate=None).documents):
            read[number] = reading.values
    left = [texts[number] for number in read]
    others = read_with_kustomize(left, [("example.com", "Example", "default", f"a{number}") for number in read])
    for text, values, other in zip(left, read.values(), others, strict=True):
        assert other.refusal or other.values != values, text


@pytest.mark.parametrize("key", ["1", "yes"])
def test_a_template_with_a_key_that_is_no_string_is_no_template_of_helm(key: str) -> None:
    file = parse_file(make_text(f'{key}: "{{{{ $labels.pod }}}}"').encode(), path="a.yaml", validate=None)
    assert [issue.code for issue in file.issues] == [KEY]


def test_a_key_that_both_readers_take_for_a_marker_is_refused() -> None:
    file = parse_file(f"---# a: b\n{MANIFEST}".encode(), path="a.yaml", validate=None)
    assert [(issue.code, issue.line) for issue in file.issues] == [(REFUSED, 1)]
    assert "---# a" in file.documents[0].body
