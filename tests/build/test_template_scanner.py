"""Calls of functions in Go templates, and what replaces them."""

from __future__ import annotations

from gitsched.build.template_scanner import replace_calls, scan_template
from tests.tables import each_row

NAMES = frozenset({b"keys", b"now"})


def replace(template: str, *, literals: bool = False) -> tuple[str, list[tuple[str, int]]]:
    """Return the template with short names for what is inserted, and the calls with their lines."""
    calls: list[tuple[str, int]] = []

    def number(name: bytes, line: int) -> int:
        calls.append((name.decode(), line))
        return len(calls) - 1

    text = replace_calls(template.encode(), NAMES, number, literals=literals).decode()
    for name in ("keys", "now"):
        text = text.replace(f" | include `gitsched.{name}` | get $gitsched", f" |{name.upper()}")
        text = text.replace(f' | include "gitsched.{name}" | get $gitsched', f' |"{name.upper()}')
    return text.replace("$gitsched := dict", "V").replace("list $gitsched ", "L"), calls


@each_row(
    ("template", "expected"),
    [
        ("{{ keys .a }}", "{{ V }}{{ L0 .a |KEYS }}"),
        ("{{- keys .a -}}", "{{- V }}{{- L0 .a |KEYS -}}"),
        ("{{keys .a}}", "{{ V }}{{L0 .a |KEYS}}"),
        ("{{ .a | keys | first }}", "{{ V }}{{ .a | L0 |KEYS | first }}"),
        ("{{ keys .a .b | join `,` }}", "{{ V }}{{ L0 .a .b |KEYS | join `,` }}"),
        ("{{ first (keys .a) }}", "{{ V }}{{ first (L0 .a |KEYS) }}"),
        ("{{ keys (get (.a) (first (keys .b))) }}", "{{ V }}{{ L0 (get (.a) (first (L1 .b |KEYS))) |KEYS }}"),
        ("{{ $x := keys $y }}{{ $x = keys .z }}", "{{ V }}{{ $x := L0 $y |KEYS }}{{ V }}{{ $x = L1 .z |KEYS }}"),
        ("{{ range $i, $k := keys $y }}{{ end }}", "{{ V }}{{ range $i, $k := L0 $y |KEYS }}{{ end }}"),
        ("{{ if not (keys .a) }}{{ end }}", "{{ V }}{{ if not (L0 .a |KEYS) }}{{ end }}"),
        ('{{ template "a" keys .a }}', '{{ V }}{{ template "a" L0 .a |KEYS }}'),
        ("{{ now.Year }}", "{{ V }}{{ (L0 |NOW).Year }}"),
        ('{{ date "2006" now }}', '{{ V }}{{ date "2006" (L0 |NOW) }}'),
        ("{{ now | date `x` }}", "{{ V }}{{ L0 |NOW | date `x` }}"),
        ("{{ (now).Unix }}", "{{ V }}{{ (L0 |NOW).Unix }}"),
        ("{{ if .a }}x{{ else if keys .b }}y{{ end }}", "{{ V }}{{ if .a }}x{{ else if L0 .b |KEYS }}y{{ end }}"),
        (
            "{{ if .a }}{{- with .c }}{{ end }}{{ else if keys .b }}{{ end }}",
            "{{ V }}{{ if .a }}{{- with .c }}{{ end }}{{ else if L0 .b |KEYS }}{{ end }}",
        ),
        ('{{ define "a" }}{{ keys . }}{{ end }}', '{{ define "a" }}{{ V }}{{ L0 . |KEYS }}{{ end }}'),
        ("{{ keys\n  .a\n}}", "{{ V }}{{ L0\n  .a |KEYS\n}}"),
        # a text in JSON
        (
            r'{"a": "{{ keys .a | join \",\" }}\n{{ now }}"}',
            r'{"a": "{{ V }}{{ L0 .a |KEYS | join \",\" }}\n{{ V }}{{ L1 |NOW }}"}',
        ),
    ],
)
def test_a_call_becomes_an_included_template_with_the_same_arguments(template: str, expected: str) -> None:
    assert replace(template)[0] == expected


@each_row(
    "template",
    [
        "{{ .keys }}{{ .a.keys }}{{ $keys }}{{ $.keys.now }}{{ (f .x).keys }}",
        '{{ "keys" }}{{ `now` }}{{ "}}" }} now {{ "a\\"now" }}',
        "{{/* now */}}{{- /* keys }} now */ -}} now",
        "{{ include `x` (dict `keys` 1) }}{{ hasKey .now `a` }}{{ keysOf .a }}{{ mykeys .a }}",
        "{{ now",
        "now | keys }}",
        "{{ define `keys` }}{{ end }}",
    ],
)
def test_what_is_no_call_stays(template: str) -> None:
    data = template.encode()
    assert replace_calls(data, NAMES, lambda name, line: 0, literals=False) is data


def test_a_literal_is_a_template_only_where_something_evaluates_it() -> None:
    template = '{{ tpl "{{ keys .a }}" . }}\n{{ tpl `{{ now }}` . }}\n{{ keys .b }}'
    assert replace(template)[1] == [("keys", 3)]
    text, calls = replace(template, literals=True)
    assert calls == [("keys", 1), ("now", 2), ("keys", 3)]
    assert text.splitlines()[:2] == ['{{ tpl "{{ V }}{{ L0 .a |KEYS }}" . }}', '{{ tpl `{{ V }}{{ L1 |"NOW }}` . }}']


def test_what_follows_an_action_without_an_end_is_no_template() -> None:
    for text in (b"{{ ", b'{{ "', b"{{ `", b"{{ '", b"{{/* ", b'{{ \\" ', b"{{ (", b'{{ \\\\"'):
        assert scan_template(b"{{ keys . }}" + text * 500 + b"keys", NAMES).calls[1:] == []
