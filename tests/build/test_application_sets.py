"""The Applications that Argo CD makes of an ApplicationSet: the values are those that its own code, mergo and Go's templates gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from gitsched.build.application_sets import GeneratedApplications, GeneratorInput, list_applications
from gitsched.build.generator_patterns import select_directories, select_files
from gitsched.build.generator_steps import Steps
from gitsched.build.go_functions import TemplateError, format_number
from gitsched.build.go_templates import Parameters, describe_unknown, find_unknown, hide_marks, render_go_template

from .test_delivery_tools import Files

FILES = Files(
    {
        "conf/web/config.json": b'{"app": "web", "size": 123456789012, "on": true, "path": "lost"}',
        "conf/team/db/config.json": b'{"app": "db", "nested": {"list": [1, 2]}}',
        "conf/many.yaml": b"- {app: one}\n- {app: two}\n",
        "conf/empty.yaml": b"",
        "conf/text.yaml": b"no parameters\n",
        "apps/web/x.yaml": b"",
        "apps/Legacy_1/x.yaml": b"",
        "apps/team/db/x.yaml": b"",
        "apps/.hidden/x.yaml": b"",
    }
)
SECRET = {
    "metadata": {"name": "c1", "labels": {"argocd.argoproj.io/secret-type": "cluster", "env": "eu"}, "annotations": {"zone": "a"}},
    "stringData": {"name": "One_1", "server": "https://one.example.com"},
}


def make(
    generators: str, template: str, go: bool = True, options: str = "", secrets: tuple[Any, ...] = ()
) -> GeneratedApplications:
    """Return the Applications whose namespace is what a template gives."""
    body = yaml.safe_load(
        f"apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: apps, namespace: argocd}}\n"
        f"spec:\n  goTemplate: {str(go).lower()}\n  goTemplateOptions: [{options}]\n  generators: [{generators}]\n"
    )
    text = {"metadata": {"name": template}, "spec": {"destination": {"namespace": template}}}
    body["spec"]["template"] = text
    return list_applications(body, GeneratorInput(FILES, secrets, lambda url: url == "own"))  # type: ignore[arg-type]


def read(made: GeneratedApplications) -> list[str] | str:
    return made.problem or [hide_marks(each["spec"]["destination"]["namespace"]) for each in made.applications]


def pair(kind: str, first: str, second: str, keys: str = "") -> str:
    return f"{kind}: {{{keys}generators: [{{{first}}}, {{{second}}}]}}"


def elements(*texts: str) -> str:
    return f"list: {{elements: [{', '.join(texts)}]}}"


BOTH = '{a: "", m: {y: 2}, l: [], z: 0}'
WEB = "git: {repoURL: own, files: [{path: conf/web/config.json}]}"
TEAM = "git: {repoURL: own, directories: [{path: apps/*}]}"
NAMES = ["Legacy_1", "team", "web"]
MERGE = "mergeKeys: [k], "


@pytest.mark.parametrize(
    ("generators", "template", "go", "expected"),
    [
        (pair("matrix", elements("{ns: first}"), elements("{ns: second}")), "{{.ns}}", True, ["first"]),
        (pair("matrix", elements("{ns: first}"), elements("{ns: second}")), "{{ns}}", False, "different values of ns"),
        (pair("matrix", elements("{ns: same}"), elements("{ns: same, b: '1'}")), "{{ns}}{{b}}", False, ["same1"]),
        (pair("matrix", elements("{app: mine}"), WEB), "{{.app}}-{{.on}}", True, ["mine-true"]),
        (pair("matrix", WEB, elements("{app: other}")), "{{.app}}", True, ["web"]),
        (pair("matrix", TEAM, WEB), "{{.path.basename}}-{{.path.filename}}", True, [f"{name}-config.json" for name in NAMES]),
        (
            pair("matrix", elements(BOTH), elements("{a: b, m: {x: 1, y: 1}, l: [1], z: 3}")),
            "{{.a}}|{{.m}}|{{.l}}|{{.z}}",
            True,
            ["|map[x:1 y:2]|[]|0"],
        ),
        (pair("matrix", elements("{m: {}}"), elements("{m: {x: 1}}")), "{{.m}}", True, ["map[x:1]"]),
        (pair("matrix", elements("{a: conf/web}"), "git: {repoURL: own, files: [{path: '{{.a}}/*'}]}"), "{{.app}}", True, ["web"]),
        (f"matrix: {{generators: [{{{elements('{a: b}')}}}]}}", "{{.a}}", True, "combines exactly two"),
        (f"matrix: {{generators: [{', '.join(['{' + elements('{a: b}') + '}'] * 3)}]}}", "{{.a}}", True, "combines exactly two"),
        (
            pair("matrix", pair("matrix", elements("{a: x}"), elements("{b: y}")), elements("{c: z}")),
            "{{.a}}{{.b}}{{.c}}",
            True,
            ["xyz"],
        ),
        (
            pair("matrix", pair("matrix", pair("matrix", elements(), elements()), elements()), elements()),
            "{{.a}}",
            True,
            "nested more than once",
        ),
        (pair("merge", elements("{k: x, a: base, b: b}"), elements("{k: x, a: over}"), MERGE), "{{.a}}{{.b}}", True, ["overb"]),
        (pair("merge", elements("{k: x, a: base}"), elements('{k: x, a: ""}'), MERGE), "n{{.a}}", True, ["n"]),
        (pair("merge", elements("{k: x, m: {a: 1}}"), elements("{k: x, m: {b: 2}}"), MERGE), "{{.m}}", True, ["map[a:1 b:2]"]),
        (pair("merge", elements("{k: x, a: base}"), elements("{k: y, a: lost}"), MERGE), "{{.a}}", True, ["base"]),
        (pair("merge", elements("{k: x}", "{k: x, a: b}"), elements("{k: x}"), MERGE), "{{.k}}", True, "the same k twice"),
        (pair("merge", elements("{k: x}"), elements("{k: x}")), "{{.k}}", True, "no mergeKeys"),
        (f"merge: {{mergeKeys: [k], generators: [{{{elements('{k: x}')}}}]}}", "{{.k}}", True, "fewer than two"),
        (elements("{a: 3}"), "{{a}}", False, "is not a text"),
        (elements("{values: {a: x}}"), "{{values.a}}{{ other }}", False, ["x{{ other }}"]),
        (elements("{a: 3, b: 1.10, c: 1234567}"), "{{.a}}-{{.b}}-{{.c}}-{{.d}}", True, ["3-1.1-1.234567e+06-<no value>"]),
        ("list: {elementsYaml: '[{a: one}, {a: two}]'}", "{{.a}}", True, ["one", "two"]),
        ("list: {elementsYaml: '[{a: one}, null]'}", '{{hasKey . "a"}}', True, ["true", '{{hasKey . "a"}}']),
        ("list: {elementsYaml: 'a: x'}", "{{.a}}", True, "not a list of mappings"),
        (WEB, "{{.size}}-{{.path.basename}}-{{.path.filename}}", True, ["1.23456789012e+11-web-config.json"]),
        (
            WEB,
            "{{size}}-{{path.basename}}-{{path[1]}}-{{path.filenameNormalized}}",
            False,
            ["1.23456789012e+11-web-web-config.json"],
        ),
        ("git: {repoURL: own, files: [{path: conf/many.yaml}]}", "{{.app}}", True, ["one", "two"]),
        ("git: {repoURL: own, files: [{path: conf/empty.yaml}]}", "{{.path.filename}}", True, ["empty.yaml"]),
        ("git: {repoURL: own, files: [{path: conf/text.yaml}]}", "{{.app}}", True, "neither a mapping nor a list"),
        ("git: {repoURL: own, files: [{path: conf/team/}]}", "{{nested.list.1}}", False, ["2"]),
        ("git: {repoURL: own}", "{{.app}}", True, "neither directories nor files"),
        ("git: {repoURL: own, pathParamPrefix: p, directories: [{path: apps/web}]}", "{{.p.path.path}}", True, ["apps/web"]),
        ("git: {repoURL: own, pathParamPrefix: p, directories: [{path: apps/web}]}", "{{p.path.basename}}", False, ["web"]),
        (
            "git: {repoURL: own, directories: [{path: apps/web}], values: {n: 'x-{{.path.basename}}'}}",
            "{{.values.n}}",
            True,
            ["x-web"],
        ),
        ("git: {repoURL: own, directories: [{path: apps/Legacy_1}]}", "{{.path.basenameNormalized}}", True, ["legacy-1"]),
        ("git: {repoURL: other, directories: [{path: apps/*}]}", "{{.path.basename}}", True, ["{{.path.basename}}"]),
        (
            f"{elements('{a: {b: https://x}}', '{a: {b: z}}')}, selector: {{matchLabels: {{a.b: 'https://x'}}}}",
            "{{.a.b}}",
            True,
            ["https://x"],
        ),
        (elements("{a: one}", "{a: one}"), "{{.a}}", True, "several Applications with the name one"),
    ],
)
def test_an_application_set_makes_what_argo_cd_makes(generators: str, template: str, go: bool, expected: list[str] | str) -> None:
    found = read(make(f"{{{generators}}}", template, go))
    if isinstance(expected, str) or isinstance(found, str):
        assert isinstance(found, str) and str(expected) in found  # noqa: PT018
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("generator", "expected"),
    [
        ("clusters: {}", ["One_1", "in-cluster"]),
        ("clusters: {selector: {matchLabels: {env: eu}}}", ["One_1"]),
        ("clusters: {selector: {matchLabels: {env: us}}}", []),
        ("clusters: {flatList: true}", ["<no value>"]),
    ],
)
def test_clusters_are_those_with_a_secret_and_that_of_argo_cd(generator: str, expected: list[str]) -> None:
    assert read(make(f"{{{generator}}}", "{{.name}}", secrets=(SECRET,))) == expected
    assert read(make(f"{{{generator}}}", "{{.name}}")) == ["{{.name}}"]  # which clusters there are is not known


def test_a_cluster_has_the_values_of_its_secret() -> None:
    template = '{{.nameNormalized}} {{.server}} {{index .metadata.labels "env"}} {{.metadata.annotations.zone}}'
    assert read(make("{clusters: {selector: {matchLabels: {env: eu}}}}", template, secrets=(SECRET,))) == [
        "one-1 https://one.example.com eu a"
    ]
    flat = "{{metadata.labels.env}} {{metadata.annotations.zone}}"
    assert read(make("{clusters: {selector: {matchLabels: {env: eu}}}}", flat, go=False, secrets=(SECRET,))) == ["eu a"]


def test_the_template_of_a_generator_has_what_it_says_and_the_rest_of_the_application_set() -> None:
    body = yaml.safe_load(
        "metadata: {name: apps, namespace: argocd}\nspec:\n  goTemplate: true\n  generators:\n"
        "  - list: {elements: [{a: x}], template: {metadata: {name: ''}, spec: {source: {path: 'own/{{.a}}'}}}}\n"
        "  template: {metadata: {name: '{{.a}}', namespace: elsewhere}, spec: {source: {path: base, repoURL: own}}}\n"
    )
    (application,) = list_applications(body, GeneratorInput(FILES, (), lambda _: True)).applications  # type: ignore[arg-type]
    assert application["metadata"] == {"name": "x", "namespace": "argocd"}
    assert application["spec"]["source"] == {"path": "own/x", "repoURL": "own"}


VALUES: Mapping[str, Any] = {"env": "Prod", "n": 3, "l": ["a", "b"], "path": {"path": "apps/web"}, "none": None, "empty": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ .env | lower }}-{{.env}}", "prod-Prod"),
        ("a {{- .env -}} b", "aProdb"),
        ("{{/* nothing */}}x", "x"),
        ('{{ index (splitList "/" .path.path) 1 }}', "web"),
        ("{{ index .l 1 }}", "b"),
        ('{{ default "x" .empty | upper }}', "X"),
        ('{{ .env | replace "P" "p" | trunc 2 }}', "pr"),
        ('{{ printf "%s-%v" .env .n }}', "Prod-3"),
        ('{{ printf "%s" .n }}', "%!s(float64=3)"),
        ("{{ .none }}{{ .nope }}{{ .nope.x }}", "<no value><no value><no value>"),
        ('{{ eq .env "Prod" }} {{ .env | quote }} {{ `raw` }} {{ 1000000 }}', 'true "Prod" raw 1000000'),
        ('{{ join "-" .l }} {{ .l }} {{ .path }}', "a-b [a b] map[path:apps/web]"),
        ('{{ normalize "A_b.C-" }}', "a-b.c"),
    ],
)
def test_go_templates_give_what_go_gives(text: str, expected: str) -> None:
    assert render_go_template(text, Parameters(VALUES)) == expected


FAILING = [
    f'{{{{ .env | replace "" "{"a" * 30_000}" | replace "" "b" }}}}',
    "{{ .env.x }}",
    "{{ .none.x }}",
    "{{ index .l 5 }}",
    '{{ index .nope "a" }}',
    "{{ lower .n }}",
    "{{ eq .n 3 }}",
    "{{ .env }",
    '{{ .env "x }}',
    "{{ .foo-bar }}",
    '{{ .["env"] }}',
    "{{ .env @ }}",
    "{{ 1.2.3 }}",
    '{{ "a\\q" }}',
    "{{/* a }}",
]


@pytest.mark.parametrize("text", FAILING)
def test_what_go_fails_at_is_an_error(text: str) -> None:
    with pytest.raises(TemplateError):
        render_go_template(text, Parameters(VALUES))


@pytest.mark.parametrize(("option", "works"), [("default", True), ("zero", True), ("error", False)])
def test_a_missing_key_is_what_the_options_say(option: str, works: bool) -> None:
    made = make(f"{{{elements('{a: x}')}}}", "{{.b}}", options=f"missingkey={option}")
    assert read(made) == (["<no value>"] if works else "no generator gives .b")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{{ template "x" }}', "does not evaluate `template`"),
        ("{{ if .env }}{{ .env | bcrypt }}{{ end }}", "{{ .env | bcrypt }}, and gitsched does not evaluate `bcrypt`"),
        ("{{ if .server }}a{{ end }}", "takes {{ if .server }}a{{ end }} from clusters or servers"),
        ("{{ $x := .server }}a{{ $x }}", "takes {{ $x }} from clusters or servers"),
        ('{{ $x := "a" }}{{ if .server }}{{ $x = "b" }}{{ end }}', "from clusters or servers"),
        ('{{ set .path "a" "b" }}', "`set` of a map that the template does not make"),
        (f"{{{{ {'(' * 30}.env{')' * 30} }}}}", "so many parentheses"),
        ('{{ printf "%x" .env }}', "`printf` with this pattern"),
        ("{{ .server | lower }}", "from clusters or servers"),
        ("{{ 'a' }}", "does not evaluate `'a'`"),
        ("{{ 0x10 }}", "does not evaluate `0x10`"),
        ("{{ 1_000 }}", "does not evaluate `1_000`"),
        ('{{ "\\x41" }}', "does not evaluate the escape \\x"),
    ],
)
def test_the_reason_why_an_expression_is_not_evaluated_is_the_true_one(text: str, reason: str) -> None:
    unknown = find_unknown(render_go_template(text, Parameters(VALUES, is_open=True)))
    assert unknown is not None
    assert reason in describe_unknown(unknown)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (123456789012, "1.23456789012e+11"),
        (1.1, "1.1"),
        (100000, "100000"),
        (123456, "123456"),
        (1234567, "1.234567e+06"),
        (21e6, "2.1e+07"),
        (1e21, "1e+21"),
        (12345678901234567890, "1.2345678901234567e+19"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-0.5, "-0.5"),
        (0, "0"),
    ],
)
def test_numbers_are_printed_as_go_prints_them(number: float, text: str) -> None:
    assert format_number(float(number)) == text


DIRECTORIES = ["apps", "apps/.hidden", "apps/legacy", "apps/team", "apps/team/db", "apps/web", "dev"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["apps/*"], ["apps/legacy", "apps/team", "apps/web"]),
        (["apps/**"], ["apps/legacy", "apps/team", "apps/web"]),
        (["apps/*/*"], ["apps/team/db"]),
        (["apps/*/"], []),
        (["/apps/*"], []),
        (["./apps/*"], []),
        (["**/dev"], []),
        (["*"], ["apps", "dev"]),
        (["apps/[lw]*"], ["apps/legacy", "apps/web"]),
        (["!apps/legacy", "apps/*"], ["apps/team", "apps/web"]),
        (["apps/*", "!apps/**"], []),
        (["apps/["], []),
    ],
)
def test_directories_are_selected_with_path_match(patterns: list[str], expected: list[str]) -> None:
    entries = [{"path": pattern.lstrip("!"), "exclude": pattern.startswith("!")} for pattern in patterns]
    assert list(select_directories(entries, DIRECTORIES, Steps(10_000))) == expected


PATHS = ["conf/a.yaml", "conf/team/db/config.json", "conf/web/config.json", "other.json"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["conf/*/config.json"], ["conf/team/db/config.json", "conf/web/config.json"]),
        (["conf/**/config.json"], ["conf/team/db/config.json", "conf/web/config.json"]),
        (["**/config.json"], ["conf/team/db/config.json", "conf/web/config.json"]),
        (["*.json"], ["conf/team/db/config.json", "conf/web/config.json", "other.json"]),
        (["./conf/web/*"], ["conf/web/config.json"]),
        (["conf/team"], ["conf/team/db/config.json"]),
        (["conf/web/"], ["conf/web/config.json"]),
        (["conf/a.yaml/"], []),
        (["conf/[!w]*/config.json"], ["conf/team/db/config.json"]),
        (["conf/*", "!conf/*/*"], ["conf/a.yaml"]),
        (["!conf/web/config.json", "conf/*.json"], ["conf/team/db/config.json"]),
        (["!conf/*"], []),
    ],
)
def test_files_are_selected_with_pathspecs_of_git(patterns: list[str], expected: list[str]) -> None:
    entries = [{"path": pattern.removeprefix("!"), "exclude": pattern.startswith("!")} for pattern in patterns]
    assert list(select_files(entries, PATHS, Steps(10_000))) == expected


@pytest.mark.parametrize("pattern", ["/conf/*", "../conf/*", ":(glob)conf/*"])
def test_a_pathspec_that_git_refuses_makes_no_application(pattern: str) -> None:
    with pytest.raises(TemplateError):
        list(select_files([{"path": pattern}], PATHS, Steps(10_000)))


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ("spec: {source: {directory: {exclude: '{{.x}}'}}}", ""),
        (
            "spec: {source: {directory: {exclude: {{.x}} }}}",
            "its templatePatch gives what is no Application: 'exclude' must be a string",
        ),
        ("spec: {sources: {path: a}}", "its templatePatch gives what is no Application: 'sources' must be a list, not a mapping"),
    ],
)
def test_a_template_patch_gives_fields_of_the_types_of_argo_cd(patch: str, problem: str) -> None:
    spec = {
        "goTemplate": True,
        "generators": [{"list": {"elements": [{"x": "true"}]}}],
        "template": {"metadata": {"name": "a"}, "spec": {"source": {"path": "a"}}},
        "templatePatch": patch,
    }
    made = list_applications({"spec": spec}, GeneratorInput(FILES, (), lambda _: False))  # type: ignore[arg-type]
    assert made.problem.startswith(problem)
    assert bool(made.problem) is bool(problem)


def test_a_cluster_with_two_secrets_is_one() -> None:
    other = {**SECRET, "stringData": {"name": "One_1", "server": "https://two.example.com"}}
    assert read(make("{clusters: {selector: {matchLabels: {env: eu}}}}", "{{.name}} {{.server}}", secrets=(SECRET, other))) == [
        "One_1 https://two.example.com"
    ]


def test_a_selector_of_clusters_that_is_not_valid_is_an_error() -> None:
    made = make("{clusters: {selector: {matchExpressions: [{key: env, operator: Nope}]}}}", "{{.name}}", secrets=(SECRET,))
    assert made.problem == "the selector of its generator clusters is not valid"


def test_a_cluster_without_a_name_has_an_empty_one_as_in_argo_cd() -> None:
    secret = {**SECRET, "stringData": {"server": "https://one.example.com"}}
    made = make("{clusters: {selector: {matchLabels: {env: eu}}}}", "x-{{.name}}-{{.nameNormalized}}-y", secrets=(secret,))
    assert [one["spec"]["destination"]["namespace"] for one in made.applications] == ["x---y"]
