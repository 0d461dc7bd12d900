"""Errors of YAML have the same place and words whichever version of PyYAML, and so of libyaml, is installed.

`make pyyaml` compares versions with each other on generated texts.
"""

from __future__ import annotations

import pytest

from gitsched.manifests import yaml_errors
from gitsched.manifests.parsed_file import DEFAULT_LIMITS, ParsedFile
from gitsched.manifests.parser import parse_file
from tests.tables import each_row

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
DEPTH = DEFAULT_LIMITS.depth


def read(text: str, path: str = "some/file.yaml") -> ParsedFile:
    return parse_file(text.encode(), path=path, validate=None)


def list_errors(file: ParsedFile) -> list[tuple[str, int, int]]:
    return [(issue.code, issue.line, issue.column) for issue in file.issues if issue.severity == "error"]


def nest(opener: str, count: int, closer: str = "") -> str:
    return opener * count + closer * count


INDENTED = "\n".join(" " * level + "a:" for level in range(1_001))
BEYOND = {
    "brackets": (nest("[", DEPTH + 1, "]"), 1, 201),
    "brackets in a member": (HEAD + "data: " + nest("[", DEPTH, "]"), 4, 206),
    "brackets as a key": (HEAD + nest("[", 300, "]") + ": x\n", 4, 200),
    "braces": (nest("{a: ", DEPTH + 1), 1, 801),
    "explicit keys in braces": (nest("{? ", 1_001), 1, 601),
    "pairs in brackets": (nest("[a: ", 1_001), 1, 401),
    "dashes": (nest("- ", 1_001), 1, 401),
    "explicit keys": (nest("? ", 1_001), 1, 401),
    "indentation": (INDENTED, 201, 201),
    "brackets behind dashes": (nest("- ", 150) + nest("[", 1_001), 1, 351),
    "brackets and braces": (nest("[{", 600), 1, 201),
    "brackets in lines of their own": (nest("[\n", 1_001), 201, 1),
    "anchors and tags": (nest("&a [!t [", 501), 1, 801),
    "brackets up to the limit of libyaml": (nest("[", 1_000, "]"), 1, 201),
    "brackets beyond the limit of libyaml": (nest("[", 1_001, "]"), 1, 201),
    "dashes beyond the limit of libyaml": (HEAD + "data:\n" + nest("- ", 1_001), 5, 399),
    "many brackets": (nest("[", 100_000), 1, 201),
    "before what no value begins with": (nest("[", 1_001) + "@", 1, 201),
    "soon before what no value begins with": (nest("[", 250) + "@", 1, 201),
    "before an open quote": (nest("[", 1_001) + "'", 1, 201),
    "before a tab": (nest("[", 300) + "\n\t@", 1, 201),
    "before an end of too many": (nest("[", 300) + "}" * 300, 1, 201),
    "behind an unknown alias": ("[*a, " + nest("[", 1_001), 1, 205),
    "behind another document": (HEAD + "---\n" + nest("[", 1_001) + "\n---\n" + HEAD, 5, 201),
}
"""Texts that nest too deep, with the place of the first collection beyond the limit."""


@each_row(("text", "line", "column"), BEYOND.values())
def test_nesting_beyond_the_limit_is_found_where_it_begins(text: str, line: int, column: int) -> None:
    file = read(text)
    assert (file.status, file.documents, file.unreadable) == ("invalid", (), True)
    assert [(issue.code, issue.message, issue.line, issue.column) for issue in file.issues] == [
        ("too-deep", "collections are nested more than 200 deep", line, column)
    ]


@each_row("text", [nest("[", DEPTH - 1, "]"), nest("{a: ", DEPTH - 1, "}"), "\n " + nest("- ", DEPTH - 1) + "a"])
def test_nesting_up_to_the_limit_is_read(text: str) -> None:
    (document,) = read(f"{HEAD}data: {text}\n").documents
    value, depth = document.body["data"], 0
    while isinstance(value, dict | list) and value:
        value, depth = next(iter(value.values() if isinstance(value, dict) else value)), depth + 1
    assert depth in (DEPTH - 1, DEPTH - 2), "the innermost brackets may be empty"


@each_row(
    ("text", "line", "column"),
    [
        pytest.param(HEAD + nest("[", 1_001), 4, 1, id="brackets that cannot be a key"),
        pytest.param(HEAD + nest("[", 5_000) + "\nkind: B\n", 4, 1, id="many of them"),
        pytest.param(HEAD + nest("[", 1_001) + "@", 4, 1, id="with another error"),
        pytest.param(HEAD + "data: ['a' 'b', " + nest("[", 1_001), 4, 12, id="two values"),
        pytest.param(HEAD + "data: ['a' 'b', " + nest("[", 1_001) + "@", 4, 12, id="two values and another error"),
        pytest.param(HEAD + "data: [[? ], " + nest("[", 1_001), 4, 9, id="a key without text"),
        pytest.param(HEAD + "data: " + nest("[", 150) + "@" + nest("[", 1_001), 4, 157, id="at a lower depth"),
    ],
)
def test_an_error_before_the_nesting_is_reported_instead(text: str, line: int, column: int) -> None:
    assert list_errors(read(text)) == [("yaml-syntax", line, column)]


@each_row(
    ("text", "code", "line", "column"),
    [
        pytest.param("k: [" + "1," * 1_000 + nest("[", 1_001), "too-many-nodes", 3, 1_993, id="values"),
        pytest.param("k: [" + "1," * 990 + nest("[", 1_001) + "@", "too-many-nodes", 3, 1_989, id="values, read ahead"),
        pytest.param("--- a\n" * 101 + nest("[", 1_001), "too-many-documents", 101, 1, id="documents"),
        pytest.param("--- a\n" * 100 + "%TAG ! x\n" * 101 + nest("[", 1_001), "too-many-directives", 203, 1, id="directives"),
    ],
)
def test_other_limits_come_first_where_they_are_exceeded_before(text: str, code: str, line: int, column: int) -> None:
    limits = DEFAULT_LIMITS._replace(nodes=1_000, documents=100)
    file = parse_file(f"kind: a\n---\n{text}".encode(), path="a.yaml", validate=None, limits=limits)
    assert list_errors(file) == [(code, line, column)]


@pytest.mark.parametrize("text", ["[? ]", "[?]", "[b, ? # why\n]", "[? \t\r\n]", "[[? ]]]", "[? ], b]", "{b: [?\u2028]}"])
def test_a_list_in_brackets_cannot_end_with_a_question_mark(text: str) -> None:
    """Kubernetes' parsers do not read it either."""
    file = read(f"{HEAD}---\n{HEAD}data: {text}\n---\n{HEAD}")
    assert [document.index for document in file.documents] == [0, 1]
    assert [document.line for document in file.documents] == [1, 10 + text.count("\n")]
    ((code, line, column),) = list_errors(file)[:1]
    assert (code, line, column) == ("yaml-syntax", 8, 7 + text.index("?"))
    assert file.issues[0].message == "the YAML cannot be read: a key is expected after '?'"


@pytest.mark.parametrize("text", ["[? b]", "[? b : c]", "['? ]']", "{? b}", "[a?, b]", "[? &x ]", "|\n [? ]", "[? : ]", "is it? ]"])
def test_other_question_marks_are_read(text: str) -> None:
    file = read(f"{HEAD}data: {text}\n")
    assert len(file.documents) == 1
    assert "yaml-syntax" not in [issue.code for issue in file.issues]


LONG = "k" * 1_025
NO_COLON_HERE = (
    "a ':' is not allowed here: check the indentation, write a space after the ':' of each key above, quote values with ': '"
)
KEY_EXPECTED = "a key is expected here: check the indentation of this line and of the one before it, and the quotes above"
SYNTAX = {
    "a: b: c": (1, 5, NO_COLON_HERE),
    f"{LONG}: a": (1, 1026, NO_COLON_HERE),
    "a:b\nc: d": (2, 2, NO_COLON_HERE),
    "'a' 'b': c": (1, 5, KEY_EXPECTED),
    "a: 'b\nc: 'd'": (2, 5, f"{KEY_EXPECTED} (while parsing a block mapping that begins in line 1)"),
    "a: 1\n- b": (2, 1, f"{KEY_EXPECTED} (while parsing a block mapping that begins in line 1)"),
    **{
        f"a: 1\n{line}\nc: 2": (
            *(2, 1),
            "this line is neither a 'key: value', nor part of a value, nor the line '---' between documents: a ':' may be missing",
        )
        for line in ("b", "--", "----")
    },
    "- a\nb: 1": (
        *(2, 1),
        "a list entry '- ' is expected here: check the indentation (while parsing a block collection that begins in line 1)",
    ),
    "a: @b": (1, 4, "no value begins like this: indent with spaces, not tabs; quote @, ` and %"),
    "a:\n\tb: 1": (2, 1, "no value begins like this: indent with spaces, not tabs; quote @, ` and %"),
    "a: 'kind: b, api: c": (
        2,
        1,
        "the file ends inside a quoted text: its closing quote is missing (while scanning a quoted scalar that begins in line 1)",
    ),
    'a: "b\n---\nc: 1': (
        *(2, 1),
        "a document ends inside a quoted text: its closing quote is missing (while scanning a quoted scalar that begins in line 1)",
    ),
    "a: *b": (1, 4, "the alias refers to an anchor that is not defined before it"),
    "a: [b: c: d]": (1, 9, "a list in brackets lacks a ',' or its closing ']'"),
    "a: [b}": (1, 6, "a list in brackets lacks a ',' or its closing ']'"),
    "a: {b: c]": (1, 9, "a mapping in braces lacks a ',' or its closing '}'"),
    "a: 1\n...\nb: 2": (3, 1, "a new document must begin with a line '---'"),
    "a: [,]": (1, 5, "a value is expected here"),
    "a: - b": (1, 4, "a list entry '- ' is not allowed here: put it on a line of its own"),
    "a: ? b": (1, 4, "a key is not allowed here: check the indentation"),
    "a: |\n  \tb\n c": (
        *(2, 3),
        "a tab is used for indentation: use spaces (while scanning a block scalar that begins in line 1)",
    ),
    "a: b\n\tc: d": (2, 1, "a tab is used for indentation: use spaces (while scanning a plain scalar that begins in line 1)"),
    'a: "\\q"': (1, 5, "unknown escape in a quoted text: write \\\\ for a backslash, or use single quotes"),
    'a: "\\x4"': (1, 7, "an escape in a quoted text lacks hexadecimal digits: write \\\\ for a backslash"),
    'a: "\\Uffffffff"': (1, 7, "an escape in a quoted text is no Unicode character"),
    "a: [b:]": (1, 6, "a ':' is not allowed in this text in brackets or braces: quote it"),
    "a: |0\n b": (1, 5, "a text after | or > cannot be indented by 0 spaces"),
    "a: > b\n c": (1, 6, "only a comment can follow in this line"),
    "a: & b": (1, 5, "a name is expected after & or *: quote texts that begin with them"),
    "a: !b!c d": (1, 4, "the tag uses a handle that is not defined"),
    "%TAG !b c\n--- a": (1, 8, "the handle of a tag lacks its closing '!'"),
    "a: !<b c": (1, 7, "the tag lacks its closing '>'"),
    "a: !b!": (1, 7, "the tag lacks its name"),
    "a: !%4 b": (1, 5, "two hexadecimal digits are expected after '%' in a tag"),
    "a: !%ff b": (1, 5, "an escape in a tag is not UTF-8"),
    "a: !%c3%28 b": (1, 8, "an escape in a tag is not UTF-8"),
    'a: !b"c"': (1, 6, "a space is expected here"),
    "%TAG !b!\n--- a": (1, 9, "a space is expected here"),
    "% \n--- a": (1, 2, "a line that begins with % is a directive, and this one lacks its name"),
    "%Y! a\n--- a": (1, 3, "a directive cannot have this character"),
    "%FOO a\n--- b": (1, 5, "a line that begins with % is a directive: only %YAML and %TAG exist"),
    "%YAML x\n--- a": (1, 7, "the directive %YAML lacks its version"),
    "%YAML 1\n--- a": (1, 8, "the version of the directive %YAML is not two numbers, such as 1.1"),
    "%YAML 1111111111.1\n--- a": (1, 16, "the version of the directive %YAML is too long"),
    "%YAML 2.0\n--- a": (1, 1, "the directive %YAML names another version than 1.1 and 1.2"),
    "%YAML 1.1\n%YAML 1.1\n--- a": (2, 1, "the document has the directive %YAML twice"),
    "%TAG ! a\n%TAG ! b\n--- c": (2, 1, "the document has a directive %TAG twice for the same handle"),
}
"""Each error of libyaml, with its place and what is said about it."""


@each_row(("text", "expected"), SYNTAX.items())
def test_a_syntax_error_has_its_place_and_plain_words(text: str, expected: tuple[int, int, str]) -> None:
    line, column, message = expected
    (issue,) = read(f"{text}\n" if "kind" in text else f"{text}\n# apiVersion: v1, kind: ConfigMap\n").issues
    assert (issue.severity, issue.code, issue.line, issue.column) == ("error", "yaml-syntax", line, column)
    assert issue.message == f"the YAML cannot be read: {message}"


def test_every_known_error_of_libyaml_has_an_example() -> None:
    said = {message.partition(" (while ")[0] for _, _, message in SYNTAX.values()}
    assert set(yaml_errors._MESSAGES.values()) == said


@pytest.mark.parametrize("path", ["a.yaml", "dir/kustomization.yaml"])
def test_an_error_that_may_be_a_limit_of_libyaml_is_always_a_finding(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Whatever else is in the file, it may be a large manifest and not another kind of text."""
    text = "a kind of text: {{ b: c\n"
    assert read(text).status == "not-a-resource"
    monkeypatch.setattr(yaml_errors, "_MESSAGES", {})
    (issue,) = read(text, path).issues
    assert (issue.severity, issue.code, issue.line, issue.column) == ("error", "yaml-refused", 2, 1)
    assert issue.message.startswith("the YAML parser refuses this: did not find expected")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", ("error", "git-lfs-pointer", 1)),
        (b"\0GITCRYPT\0\x8a\x01kind\xff", ("info", "git-crypt", 1)),
        (b"kind: A\n<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> main\n", ("error", "conflict-markers", 2)),
        (b"<<<<<<< HEAD\nkind: A\n||||||| base\nb: 1\n=======\r\na: 2\n>>>>>>> main\n", ("error", "conflict-markers", 1)),
        (b"kind: A\n<<<<<<< HEAD\na: 1\n", ("error", "conflict-markers", 2)),
        (b"kind: A\na: 1\nb: 1\n>>>>>>>\n", ("error", "conflict-markers", 4)),
    ],
)
def test_what_git_stores_in_place_of_a_file_is_named(data: bytes, expected: tuple[str, str, int]) -> None:
    file = parse_file(data, path="a.yaml", validate=None)
    assert [(issue.severity, issue.code, issue.line) for issue in file.issues] == [expected]
    assert file.unreadable == (expected[0] == "error")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("kind: A\nmetadata:\n  name: {{ .Release.Name }}-web\n", ["helm-template"]),
        ("{{- if .Values.on }}\napiVersion: v1\nkind: A\n{{- end }}\n", ["helm-template"]),
        ('kind: A\nmetadata:\n  labels:\n    {{- include "x" . | nindent 4 }}\n', ["helm-template"]),
        ("replicas: {{ .Values.replicas }}\nlist: [{{ .Values.a }}\n", []),
        ('groups:\n- alert: "{{ $labels.job }} is down"\n  kind: x\n', []),
    ],
)
def test_a_template_of_objects_outside_of_a_chart_is_named(text: str, codes: list[str]) -> None:
    file = read(text)
    assert (file.status, file.unreadable) == ("not-a-resource", False)
    assert [issue.code for issue in file.issues if issue.severity == "info"] == [issue.code for issue in file.issues] == codes


def test_a_template_of_jinja_is_not_reported_as_one_of_helm() -> None:
    (issue,) = read("kind: A\nspec:\n  {% for one in all %}\n  - a: {{ one }}\n  {% endfor %}\n").issues
    assert (issue.code, "Jinja" in issue.message, "helm" in issue.message) == ("helm-template", True, False)


def test_a_file_that_only_has_lines_like_a_conflict_is_read() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n    <<<<<<< HEAD\n    =======\n    >>>>>>> main\n"
    text += "# <<<<<<<\n#=======\n"
    assert parse_file(text.encode(), path="a.yaml", validate=None).issues == ()
    assert parse_file(b"<<<<<<< a\n=======\n>>>>>>> b\n", path="values.yaml", validate=None).issues == ()
