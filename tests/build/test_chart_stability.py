"""Charts that render something else each time are refused, and those that only call such functions are not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

import pytest
import yaml

from gitsched.build.chart_stability import ChartSources, check_stable
from gitsched.build.helm import find_helm
from gitsched.build.process import DEFAULT_LIMITS
from gitsched.build.scratch import run_on_files
from gitsched.build.template_scanner import replace_calls
from gitsched.build.unstable_functions import FUNCTIONS, write_definitions
from tests.build.chart_archives import pack
from tests.build.test_helm import problem, render, texts

pytestmark = pytest.mark.needs("helm")

VALUES = {"a": "x", "n": 3, "d": {"one": 1, "two": {"x": 1}, "three": [3]}, "day": "2020-01-02", "tz": "Europe/Berlin"}
CA = "(genCAWithKey `y` 1 (genPrivateKey `ed25519`))"
DAY = '(toDate "2006-01-02" .Values.day)'

STABLE = [
    'keys .Values.d | sortAlpha | join ","',
    ".Values.d | keys | sortAlpha | first",
    "keys .Values.d (dict `z` 1) | sortAlpha | toJson",
    "keys .Values.d | len",
    'has "one" (keys .Values.d)',
    "without (keys .Values.d) `two` `three` | first",
    "keys (dict `a` 1) | first",
    "keys dict | toJson",
    ".Values.none | keys | toJson",
    "keys .Values | sortAlpha | first",
    "if keys .Values.d }}some{{ else if keys .Values }}none{{ end",
    "if false }}{{ else if keys .Values.d | first }}{{ end",
    "range keys .Values.d | sortAlpha }}{{ . }}{{ end",
    "range $key, $value := .Values.d }}{{ $key }}{{ end",
    "values .Values.d | len",
    ".Values.none | values | toJson",
    "values (dict `a` 1 `b` 1) | uniq | toJson",
    "range values (dict `a` .Values.d) }}{{ .one }}{{ end",
    "values (dict `a` 1000000000) | first",
    "max 1 (values (dict `a` 3 `b` 2) | len)",
    f'date "2006-01-02" {DAY}',
    'date "2006" 1600000000',
    'date "no field of a time" now',
    'date "" .Values.a',
    f"htmlDate {DAY}",
    f'dateInZone "2006" {DAY} "UTC"',
    f'date_in_zone "2006" {DAY} ""',
    f'htmlDateInZone {DAY} "UTC"',
    f'{DAY} | date_modify "24h" | date "2006-01-02"',
    f"unixEpoch {DAY}",
    "ago `no time`",
    'durationRound "2h10m"',
    'duration "90"',
    "now | unixEpoch | trunc 0",
    ".Values.a | default (now | date `2006`)",
    "if false }}{{ now }}{{ end",
    'print "" }}{{/* {{ now }} */}}{{- /* keys .Values */ -}}{{ print `now`',
    "printf `{{ now }} {{ keys .Values.d }}` | quote",
    ".Values.a | default (randAlphaNum 8)",
    ".Values.a | default (genCA `x` 1).Cert",
    ".Values.a | default (uuidv4 | bcrypt | htpasswd `a`)",
    "randNumeric 3 | trunc 0",
    "randAlpha 0",
    "randInt 3 4",
    'shuffle "aa"',
    "randAlpha 8 | len",
    'derivePassword 1 "long" "password" "user" "site"',
    'get (merge (dict "a" 1) (dict "a" 2 "b" 3)) "a"',
    "pick .Values.d `one` `three` | toJson",
    "omit .Values.d `one` | toYaml | b64enc",
    ".Values.d | toString",
    'getHostByName "example.com"',
    'print "0x1234567890"',
]  # fmt: skip
UNSTABLE = {
    "keys": [
        'keys .Values.d | join ","', ".Values.d | keys | first", "index (keys .Values.d) 1", "range keys .Values.d }}{{ . }}{{ end",
        "keys (dict `a` 1 `b` 2) | last", "with keys .Values.d | first }}{{ . }}{{ end", "first (keys .Values.d (dict `z` 1))",
        "keys .Values | toJson | sha256sum", "slice (keys .Values.d) 1 2",
        "if false }}{{ else if eq (first (keys .Values.d)) `one` }}x{{ end",
        "$found := dict }}{{ range keys .Values.d }}{{ $_ := set $found `last` . }}{{ end }}{{ $found.last",
    ],
    "values": [
        "values .Values.d | toJson", ".Values.d | values | first", "index (values .Values.d) 1 | toJson",
        "$n := dict }}{{ $d := dict `a` (dict) `b` (dict) }}"
        "{{ range values $d }}{{ $_ := set . `n` (len $n) }}{{ $_ := set $n `x` 1 }}{{ end }}{{ toJson $d",
    ],
    "now": ["now", "now.Year", "now.Unix", "(now).Month", '"" | default now | toString', "(now | date_modify `-1h`).Hour"],
    "ago": [f"ago {DAY}", "ago 1600000000", f"{DAY} | ago"],
    "durationRound": [f"durationRound {DAY}"],
    "date": ['date "15:04" .Values.a', 'date "2006" .Values.n', '.Values.none | date "2006"'],
    "htmlDate": ["htmlDate .Values.day"],
    "dateInZone": ['dateInZone "2006" .Values.a "UTC"', f'dateInZone "15" {DAY} .Values.tz'],
    "date_in_zone": ['date_in_zone "2006" "x" "UTC"'],
    "htmlDateInZone": ['htmlDateInZone "x" "UTC"', f"htmlDateInZone {DAY} .Values.tz"],
    "randAlphaNum": ["randAlphaNum 1", "randAlphaNum 9 | sha256sum", "9 | randAlphaNum | trunc 3"],
    "randAlpha": ["randAlpha 1 | lower"],
    "randAscii": ["randAscii 1 | quote"],
    "randNumeric": ["randNumeric 1", "randNumeric 1 | int"],
    "randBytes": ["randBytes 1"],
    "randInt": ["randInt 1 3", "add 1 (randInt 0 2)"],
    "shuffle": ['shuffle "ab"', 'shuffle "abc" | substr 1 2'],
    "uuidv4": ["uuidv4"],
    "bcrypt": ["bcrypt `x`"],
    "htpasswd": ["htpasswd `a` `b`"],
    "encryptAES": ["encryptAES `a` `b`"],
    "genPrivateKey": ["genPrivateKey `ed25519` | b64enc"],
    "genCA": ["(genCA `x` 1).Cert | b64enc"],
    "genCAWithKey": ["(genCAWithKey `x` 1 (genPrivateKey `ed25519`)).Cert | b64enc"],
    "genSelfSignedCert": ["(genSelfSignedCert `x` (list) (list) 1).Key | b64enc"],
    "genSelfSignedCertWithKey": ["(genSelfSignedCertWithKey `x` (list) (list) 1 (genPrivateKey `ed25519`)).Cert | b64enc"],
    "genSignedCert": [f"(genSignedCert `x` (list) (list) 1 {CA}).Cert | b64enc"],
    "genSignedCertWithKey": [f"(genSignedCertWithKey `x` (list) (list) 1 {CA} (genPrivateKey `ed25519`)).Cert | b64enc"],
}  # fmt: skip


def render_rows(rows: Sequence[str], change: Callable[[bytes], bytes] = bytes, definitions: bytes = b"") -> list[str]:
    """Return what helm renders for each of the pipelines."""
    lines = "".join(f"row{number}: |\n  {{{{ {row} }}}}\n" for number, row in enumerate(rows))
    files = {
        "rows/Chart.yaml": b"apiVersion: v2\nname: rows\nversion: 1.0.0\n",
        "rows/values.yaml": json.dumps(VALUES).encode(),
        "rows/templates/rows.yaml": change(lines.encode()),
        "rows/templates/_gitsched.tpl": definitions,
    }
    helm = find_helm({})
    done = run_on_files(helm.executable, helm.version, ["template", "x", "{root}/rows"], files, DEFAULT_LIMITS)
    assert isinstance(done, bytes), done
    return list(yaml.safe_load(done).values())


def test_outcomes_of_all_functions_show_which_results_matter() -> None:
    """The rows of one chart, rendered as helm does and with each outcome of the functions that are called."""
    rows = [*STABLE, *(row for entries in UNSTABLE.values() for row in entries)]

    def change(data: bytes) -> bytes:
        calls = iter(range(1000))
        return replace_calls(data, FUNCTIONS, lambda name, line: next(calls), literals=False)

    first, *others = [render_rows(rows, change, write_definitions(outcome, False, 1000)) for outcome in range(3)]
    printed = render_rows(rows)
    differ = {row for other in others for row, before, after in zip(rows, first, other, strict=True) if before != after}
    assert [row for row in STABLE if row in differ] == []
    assert [row for entries in UNSTABLE.values() for row in entries if row not in differ] == []
    assert [row for row, one, other in zip(rows, printed, first, strict=True) if row in STABLE and one != other] == []
    assert UNSTABLE.keys() | {"lookup"} == {name.decode() for name in FUNCTIONS}
    # Where a function needs fewer outcomes, these are enough, without luck.
    few = {row for row, *printed in zip(rows, printed, first, others[0], strict=True) if len(set(printed)) > 1}
    assert [
        row for name, entries in UNSTABLE.items() for row in entries if FUNCTIONS[name.encode()].outcomes < 3 and row not in few
    ] == []
    one = {row for row, before, after in zip(rows, printed, first, strict=True) if before != after}
    assert [
        row for name, entries in UNSTABLE.items() for row in entries if FUNCTIONS[name.encode()].outcomes == 1 and row not in one
    ] == []


MAP = "kind: ConfigMap\nmetadata: {name: a}\ndata:\n"
CHART = {
    "c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    "c/values.yaml": "{d: {one: 1, two: 2}, text: none}\n",
    "c/templates/_a.tpl": '{{ define "a" }}{{ keys .d | sortAlpha | join "," }}{{ end }}\n',
    "c/templates/a.yaml": MAP + '  a: {{ include "a" .Values }}\n  count: "{{ keys .Values | len }}"\n',
}


def add(text: str) -> dict[str, str]:
    """Return a template with data of a ConfigMap."""
    return {"c/templates/z.yaml": MAP + text}


@pytest.mark.parametrize(
    ("files", "values", "path", "line", "text"),
    [
        ({}, {}, None, 0, ""),
        (
            {"c/templates/_a.tpl": '{{ define "a" }}\n{{- keys .d | join "," }}{{ end }}\n'},
            {},
            *("c/templates/_a.tpl", 2),
            "c renders something else each time because of keys here: the keys of a dict have no order: sort them, as",
        ),
        (
            add('{{ range keys .Values.d }}\n  {{ . }}: {{ now | date "2006" }}\n{{ end }}'),
            {"d": {"two": None}},
            *("c/templates/z.yaml", 5),
            "because of now here",
        ),
        # a text of the values, which a template evaluates
        (add("  a: {{ tpl .Values.text . | quote }}\n"), {}, None, 0, ""),
        (
            add("  a: {{ tpl .Values.text . | quote }}\n"),
            {"text": '{{ keys .Values.d | join "," }}'},
            *("c/templates/z.yaml", 4),
            "because of keys here",
        ),
        (
            add("  a: {{ tpl .Values.text . | quote }}\n"),
            {"text": '{{ keys .Values.d | sortAlpha | join "\\"," }}\n{{ if eq "a" "b" }}{{ now }}{{ end }}'},
            *(None, 0, ""),
        ),
        (add("  a: {{ tpl `{{ values .Values.d | first }}` . }}\n"), {}, "c/templates/z.yaml", 4, "of values here"),
        # a text of the values that no template evaluates, with functions of another program
        (add("  a: {{ tpl `x` . }}\n  b: {{ toJson .Values | quote }}\n"), {"text": "{{ keys .x }} {{ now }}"}, None, 0, ""),
        # what replaces a certificate is refused
        (add("  a: {{ $ca := genCA `x` 1 }}{{ $b := buildCustomCert (b64enc $ca.Cert) (b64enc $ca.Key) }}\n"), {}, None, 0, ""),
        (
            add("  a: {{ $ca := genCA `x` 1 }}{{ (buildCustomCert (b64enc $ca.Cert) (b64enc $ca.Key)).Cert | b64enc }}\n"),
            {},
            *("c/templates/z.yaml", 4, "of genCA here"),
        ),
        (add("  a: {{ toString $ | quote }}\n"), {}, "c/templates/z.yaml", 1, "address of an object"),
        (add('  a: {{ printf "%p" .Values | quote }}\n'), {}, "c/templates/z.yaml", 1, "address of an object"),
    ],
)  # fmt: skip
def test_the_call_that_changes_the_output_is_named(
    files: Mapping[str, str], values: Mapping[str, object], path: str | None, line: int, text: str
) -> None:
    result = render({**CHART, **files}, chart="c", values=values)
    if path is None:
        assert "a: one,two" in texts(result) or values
        return
    found = problem(result)
    assert (found.code, found.path, found.line) == ("helm-random", path, line)
    assert text in found.message


def test_lookup_in_a_chart_that_evaluates_texts_is_a_warning() -> None:
    lines = (
        '  l{{ lookup "v1" "Secret" "a" "b" | typeOf | len }}: {{ tpl `x` . }}\n',
        '  a: {{ lookup "v1" "Secret" "a" "c" | default `randAlpha` }}\n',
    )
    result = render({**CHART, **add("".join(lines))}, chart="c")
    assert [(found.code, found.path, found.line) for found in result.problems] == [("helm-lookup", "c/templates/z.yaml", 5)]
    assert len(result.objects) == 2


def pack_chart(name: str, template: str, charts: Mapping[str, bytes] | None = None) -> bytes:
    main = f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n".encode()
    files = {"Chart.yaml": main, "values.yaml": b"{x: 1, y: 2, z: 3}", "templates/a.yaml": (MAP + template).encode()}
    return pack(
        {f"{name}/{path}": data for path, data in files.items()}
        | {f"{name}/charts/{path}": data for path, data in (charts or {}).items()}
    )


@pytest.mark.parametrize(
    ("archive", "text"),
    [
        (
            pack_chart("db", "  a: {{ keys .Values | first }}\n"),
            "because of keys here: .*sortAlpha` does \\(db/templates/a.yaml, line 4\\)$",
        ),
        (pack_chart("db", "  a: {{ keys .Values | sortAlpha | first }}\n"), ""),
        (
            pack_chart("db", "", {"in.tgz": pack_chart("in", "\n  a: {{ now }}\n")}),
            r"of now here: .* \(in/templates/a.yaml, line 5\)$",
        ),
        (b"no archive", ""),
    ],
    ids=["first of keys", "sorted keys", "archive in an archive", "no archive"],
)
def test_an_archive_with_a_chart_is_read_as_a_directory_is(archive: bytes, text: str) -> None:
    helm = find_helm({})
    files = {path: data.encode() for path, data in CHART.items()} | {"c/charts/db.tgz": archive}
    arguments = ["template", "x", "{root}/c"]

    def run(changed: Mapping[str, bytes]) -> bytes | str:
        return run_on_files(helm.executable, helm.version, arguments, {**files, **changed}, DEFAULT_LIMITS)

    output = run({})
    if isinstance(output, str):
        assert archive == b"no archive"
        return
    found = check_stable(ChartSources("c", ["c"], files), output, run)
    assert [(entry.code, entry.path, entry.line) for entry in found] == ([("helm-random", "c/charts/db.tgz", 1)] if text else [])
    assert not text or re.search(text, found[0].message)
