"""Helm charts of a commit: which files are read, what helm renders, and what stops it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from gitsched.build.chart_files import ChartRequest, resolve_chart
from gitsched.build.commit_files import BuildProblem
from gitsched.build.helm import ChartResult, compute_chart_key, find_helm, render_chart
from gitsched.build.process import BuildLimits
from gitsched.manifests.parser import parse_file
from tests.build.test_closure import Commit
from tests.fuzz.kubernetes_readers import read_with_kubectl

pytestmark = pytest.mark.needs("helm")

CHART_FILE = "charts/web/Chart.yaml"
CHART = {
    CHART_FILE: "apiVersion: v2\nname: shop-web\nversion: 1.0.0\n",
    "charts/web/values.yaml": "replicas: 2\nhost: none\n",
    "charts/web/templates/a.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\ndata:\n"
        '  replicas: "{{ .Values.replicas }}"\n  host: {{ .Values.host }}\n  kube: {{ .Capabilities.KubeVersion.Version }}\n'
        '  monitored: "{{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}"\n'
    ),
}


def render(
    files: Mapping[str, str], limits: BuildLimits | None = None, chart: str = "charts/web", **options: object
) -> ChartResult:
    commit = Commit(files)
    found = resolve_chart(ChartRequest(chart, "web", **options), commit)  # type: ignore[arg-type]
    if found.problems:
        return ChartResult((), found.problems)
    blobs = {blob: commit.read_blob(blob) for blob in found.files.values()}
    return render_chart(found, blobs, find_helm({}), limits or BuildLimits())


def texts(result: ChartResult) -> str:
    assert result.problems == ()
    return "---\n".join(rendered.text.decode() for rendered in result.objects)


def problem(result: ChartResult) -> BuildProblem:
    assert (result.objects, len(result.problems)) == ((), 1)
    return result.problems[0]


def test_the_objects_are_those_of_helm_template(tmp_path: Path) -> None:
    files = CHART | {
        "charts/web/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
        "charts/web/charts/db/templates/s.yaml": "{{- range list 1 2 }}\n---\nkind: Service\nmetadata: {name: db-{{ . }}}\n{{- end }}\n",
        "charts/web/crds/c.yaml": "kind: CustomResourceDefinition\nmetadata: {name: c1}\n---\nkind: X\nmetadata: {name: c2}\n",
        "charts/web/templates/hook.yaml": "kind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n",
        "charts/web/templates/test.yaml": "kind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    command = [
        str(find_helm({}).executable),
        *["template", "web", "charts/web", "--include-crds", "--skip-tests", "--kube-version=1.35.0"],
    ]
    expected = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout.decode()
    result = render(files)
    for rendered in result.objects:
        assert rendered.text.decode() in expected
    assert expected.count("kind: ") == texts(result).count("kind: ") == len(result.objects) == 6
    assert [rendered.path for rendered in result.objects] == [
        *("charts/web/crds/c.yaml", "charts/web/crds/c.yaml", "charts/web/templates/a.yaml"),
        *("charts/web/charts/db/templates/s.yaml", "charts/web/charts/db/templates/s.yaml", "charts/web/templates/hook.yaml"),
    ]
    assert len(render(files, crds=False, hooks=False).objects) == 3


LINKED = CHART | {
    "charts/web/extra/b.yaml": "kind: A\nmetadata: {name: b}\n",
    "charts/web/extra/inner/c.yaml": "kind: A\nmetadata: {name: c}\n",
    "charts/web/templates/more": "->../extra",
    "charts/web/templates/again": "->more/inner",
    "charts/web/config/v1": "->data",
    "charts/web/config/data/a.txt": "text",
    "charts/web/templates/files.yaml": (
        'kind: B\nmetadata: {name: f}\ndata: {{- range $path, $_ := .Files.Glob "config/v1/*" }}\n  {{ $path | quote }}: x\n{{- end }}\n'
    ),
    "charts/web/library/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
    "charts/web/library/db/templates/s.yaml": "kind: Service\nmetadata: {name: db}\n",
    "charts/web/charts/db": "->../library/db",
}


def test_links_to_directories_of_the_chart_are_followed_as_helm_follows_them(tmp_path: Path) -> None:
    for path, text in LINKED.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            (tmp_path / path).symlink_to(text[2:])
        else:
            (tmp_path / path).write_text(text)
    command = [str(find_helm({}).executable), "template", "web", "charts/web", "--kube-version=1.35.0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    result = render(LINKED)
    expected = [part.partition("\n")[2].rstrip() + "\n" for part in done.stdout.decode().split("---\n")[1:]]
    assert [rendered.text.decode() for rendered in result.objects] == expected
    assert "config/v1/a.txt" in texts(result)
    assert sorted({rendered.path.removeprefix("charts/web/") for rendered in result.objects}) == [
        *("extra/b.yaml", "extra/inner/c.yaml", "library/db/templates/s.yaml", "templates/a.yaml", "templates/files.yaml"),
    ]


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 1234\n"


def test_a_pointer_that_no_template_reads_is_no_problem() -> None:
    assert not render({**CHART, "charts/web/logo.png": POINTER}).problems


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("../../../shared", "a symbolic link to shared, which is outside of the chart"),
        ("../../../../..", "a symbolic link to ../.. or a submodule, which is no file of the commit"),
        ("/etc", "a symbolic link to /etc or a submodule, which is no file of the commit"),
        ("..", "a symbolic link to charts/web, which contains the link"),
        ("loop", "a symbolic link to charts/web/templates/loop or a submodule, which is no file of the commit"),
    ],
)
def test_other_links_of_a_chart_are_an_error(target: str, reason: str) -> None:
    files = CHART | {"charts/web/templates/loop": f"->{target}", "shared/a.yaml": "kind: A\n"}
    assert problem(render(files)).message == f"charts/web/templates/loop is {reason}: it is not followed"


def test_links_that_lead_to_each_other_are_limited() -> None:
    links = {f"charts/web/{a}/{b}": f"->../{b}" for a in "xy" for b in "xy" if a != b}
    files = CHART | links | {f"charts/web/{name}/a.txt": "a" for name in "xy"}
    assert "lead to more than" in problem(render(files)).message


def test_inline_values_overrule_later_files_overrule_earlier_files() -> None:
    files = CHART | {"env/a.yaml": "replicas: 3\nhost: a\n", "env/b.yaml": "host: b\n"}
    found = texts(render(files, values_files=("env/a.yaml", "env/b.yaml")))
    assert 'replicas: "3"' in found
    assert "host: b" in found
    assert "host: c" in texts(render(files, values_files=("env/a.yaml",), values={"host": "c"}))


def test_release_namespace_and_versions_are_those_of_the_request() -> None:
    found = texts(render(CHART))
    assert "name: web\n  namespace: default\n" in found
    assert "kube: v1.35.0" in found
    assert 'monitored: "false"' in found
    other = texts(render(CHART, namespace="shop", kube_version="1.30.2", api_versions=("monitoring.coreos.com/v1",)))
    assert "namespace: shop" in other
    assert "kube: v1.30.2" in other
    assert 'monitored: "true"' in other


def test_a_subchart_is_found_by_its_alias_and_its_directory() -> None:
    files = CHART | {
        "charts/web/Chart.yaml": (
            CHART["charts/web/Chart.yaml"]
            + "dependencies:\n- {name: db, alias: orders, version: 1.0.0}\n- {name: db, alias: users, version: 1.0.0}\n"
        ),
        "charts/web/charts/database/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
        "charts/web/charts/database/templates/s.yaml": "kind: Service\nmetadata: {name: '{{ .Chart.Name }}'}\n",
    }
    paths = [rendered.path for rendered in render(files).objects]
    assert paths == ["charts/web/templates/a.yaml"] + ["charts/web/charts/database/templates/s.yaml"] * 2


@pytest.mark.parametrize(
    ("files", "options", "code", "path", "text"),
    [
        ({}, {"chart": "charts"}, "helm-missing", "charts/Chart.yaml", "charts is no Helm chart"),
        ({}, {"chart": "../web"}, "helm-missing", "../web/Chart.yaml", "outside of the repository"),
        ({}, {"values_files": ("/etc/passwd",)}, "helm-missing", "charts/web/Chart.yaml", "outside of the repository"),
        ({}, {"values_files": ("none.yaml",)}, "helm-missing", "charts/web/Chart.yaml", "none.yaml is not in the commit"),
        ({}, {"namespace": "--debug"}, "helm-build", "charts/web/Chart.yaml", "'--debug'"),
        (
            {"charts/web/values.schema.json": "->/etc/passwd"},
            {},
            "helm-missing",
            "charts/web/Chart.yaml",
            "charts/web/values.schema.json is a symbolic link",
        ),
        (
            {
                "charts/web/Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: db, repository: https://x.test}]"
            },
            {},
            "helm-missing",
            "charts/web/Chart.yaml",
            "run `helm dependency build charts/web` and commit charts/web/charts",
        ),
        (
            {"charts/web/templates/b.yaml": "kind: A\na: {{ required `host is missing` .Values.none }}\n"},
            {},
            "helm-build",
            "charts/web/templates/b.yaml",
            "host is missing",
        ),
        ({"charts/web/templates/b.yaml": "a: {{ nofunction }}\n"}, {}, "helm-build", "charts/web/templates/b.yaml", "nofunction"),
        ({"charts/web/values.yaml": POINTER}, {}, "git-lfs-pointer", "charts/web/values.yaml", "commit the file itself"),
        (
            {"charts/web/charts/db-1.0.0.tgz": POINTER},
            {},
            "git-lfs-pointer",
            "charts/web/charts/db-1.0.0.tgz",
            "commit the file itself",
        ),
        ({"charts/web/templates/b.tpl": "\0GITCRYPT\0"}, {}, "git-crypt", "charts/web/templates/b.tpl", "has encrypted"),
        (
            {"charts/web/a.json": POINTER, "charts/web/templates/b.yaml": "a: {{ .Files.Get `a.json` }}\n"},
            {},
            "git-lfs-pointer",
            "charts/web/a.json",
            "commit the file itself",
        ),
    ],
)
def test_a_chart_that_cannot_be_rendered_is_a_located_problem(
    files: Mapping[str, str], options: Mapping[str, object], code: str, path: str, text: str
) -> None:
    found = problem(render({**CHART, **files}, **options))  # type: ignore[arg-type]
    assert (found.code, found.path) == (code, path)
    assert text in found.message


@pytest.mark.parametrize(
    ("files", "options", "place"),
    [
        ({"charts/web/templates/b.yaml": "kind: A\na: {{ .Values.service.port }}\n"}, {}, ("charts/web/templates/b.yaml", 2)),
        ({"charts/web/templates/b.yaml": "kind: A\na: {{ nofunction }}\n"}, {}, ("charts/web/templates/b.yaml", 2)),
        ({"charts/web/templates/b.yaml": "kind: A\na: b: c\n"}, {}, ("charts/web/templates/b.yaml", 1)),
        (
            {"charts/web/values-eu.yaml": "a: 1\n  b: 2\n"},
            {"values_files": ("charts/web/values-eu.yaml",)},
            ("charts/web/values-eu.yaml", 2),
        ),
        ({"charts/web/values.yaml": "a: 1\n  b: 2\n"}, {}, ("charts/web/values.yaml", 2)),
    ],
)
def test_an_error_of_helm_is_located_where_helm_says(
    files: Mapping[str, str], options: Mapping[str, object], place: tuple[str, int]
) -> None:
    found = problem(render({**CHART, **files}, **options))  # type: ignore[arg-type]
    assert (found.path, found.line) == place, found.message
    assert "--debug" not in found.message


EVALUATE = "kind: Secret\nmetadata: {name: b}\ndata:\n  a: {{ tpl .Values.text . | quote }}\n"


@pytest.mark.parametrize(
    ("values", "inline", "path", "line"),
    [
        ("text: '{{ randAlphaNum 8 }}'\n", {}, "charts/web/values.yaml", 1),
        ("a: b\ntext: '{{ now | date `2006` }}'\n", {}, "charts/web/values.yaml", 2),
        ("text: none\n", {"text": "{{ uuidv4 }}"}, "charts/web/templates/b.yaml", 4),
        ("text: none\n", {"text": "{{ now | date `2006` }}"}, "charts/web/templates/b.yaml", 4),
        ("text: '{{ tpl (printf `{{ %s 9 }}` .Values.name) . }}'\nname: randAlpha\n", {}, "charts/web/templates/b.yaml", 4),
        ("text: '{{ .Values.name }}'\nname: web\n", {}, None, 0),
        ("text: '{{ .Values.name }}'\nname: randAlpha 5\n", {"other": "now"}, None, 0),
    ],
)
def test_a_text_that_a_template_evaluates_cannot_hide_random_values(
    values: str, inline: Mapping[str, str], path: str | None, line: int
) -> None:
    files = {**CHART, "charts/web/values.yaml": values, "charts/web/templates/b.yaml": EVALUATE}
    result = render(files, values=inline)
    assert [(found.code, found.path, found.line) for found in result.problems] == ([("helm-random", path, line)] if path else [])
    assert bool(result.objects) == (path is None)


def test_random_functions_that_do_not_change_the_output_are_no_problem() -> None:
    template = "kind: Secret\nmetadata: {name: b}\ndata:\n  a: {{ .Values.password | default (randAlphaNum 8) }}\n"
    files = {**CHART, "charts/web/templates/b.yaml": template}
    assert problem(render(files)).line == 4
    assert "a: given" in texts(render(files, values={"password": "given"}))


def test_lookup_is_a_problem_where_its_result_matters() -> None:
    template = (
        'kind: Secret\nmetadata: {name: b}\ndata:\n  a: {{ if %s }}{{ (lookup "v1" "Secret" "a" "b") | toJson | quote }}{{ end }}\n'
    )
    used = render({**CHART, "charts/web/templates/b.yaml": template % "true"})
    assert [(found.code, found.path, found.line) for found in used.problems] == [("helm-lookup", "charts/web/templates/b.yaml", 4)]
    assert len(used.objects) == 2
    assert texts(render({**CHART, "charts/web/templates/b.yaml": template % "false"}))


def test_a_chart_that_does_not_end_or_prints_too_much_is_a_problem() -> None:
    loop = '{{ define "a" }}{{ range until 9999 }}{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}{{ end }}{{ end }}'
    files = {**CHART, "charts/web/templates/b.yaml": loop + '{{ include "a" . }}'}
    assert "did not end within 1 seconds" in problem(render(files, BuildLimits(seconds=1))).message
    large = {**CHART, "charts/web/templates/b.yaml": 'kind: A\na: "{{ repeat 1000000 `a` }}"\n'}
    assert "printed more than 100000 bytes" in problem(render(large, BuildLimits(output=100_000))).message


def test_the_key_changes_with_everything_that_is_read() -> None:
    commit, helm = Commit(CHART | {"env/a.yaml": "host: a\n"}), find_helm({})
    requests = [
        ChartRequest("charts/web", "web"),
        ChartRequest("charts/web", "web", values={"host": "b"}),
        ChartRequest("charts/web", "web", values_files=("env/a.yaml",)),
        ChartRequest("charts/web", "web", namespace="shop"),
        ChartRequest("charts/web", "web2"),
        ChartRequest("charts/web", "web", kube_version="1.30.0"),
        ChartRequest("charts/web", "web", crds=False),
    ]
    keys = {compute_chart_key(resolve_chart(request, commit), helm) for request in requests}
    other = Commit(CHART | {"charts/web/README.md": "new\n"})
    keys.add(compute_chart_key(resolve_chart(requests[0], other), helm))
    keys.add(compute_chart_key(resolve_chart(requests[0], commit), helm._replace(version="helm v9")))
    assert len(keys) == len(requests) + 2


AMBIGUOUS = (
    "apiVersion: example.com/v1\nkind: Example\nmetadata: {name: a, labels: {a: b}}\nspec:\n  n: one\n  2: two\n"
    "  mode: on\n  day: 2026-01-02\n  texts: [\"n\", 'on']\n"
)
"""An object that kustomize refuses, or reads otherwise than kubectl."""


def test_what_kustomize_reads_differently_is_delivered_as_kubectl_reads_it() -> None:
    plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {a: b} # as it is\n"
    result = render(CHART | {"charts/web/templates/a.yaml": AMBIGUOUS, "charts/web/templates/b.yaml": plain})
    codes = ("non-string-key", "non-string-key", "ambiguous-value", "ambiguous-value")
    assert [(one.code, one.path) for one in result.problems] == [(code, "charts/web/templates/a.yaml") for code in codes]
    assert result.problems[0].message == (
        "kubectl reads the key n as false, and kustomize as a text: quote it; delivered as kubectl reads it"
    )
    texts = {one.path: one.text for one in result.objects}
    assert texts["charts/web/templates/b.yaml"].decode() == plain
    delivered = texts["charts/web/templates/a.yaml"]
    (wanted,) = read_with_kubectl([AMBIGUOUS.encode()])
    assert read_with_kubectl([delivered]) == [wanted]
    assert parse_file(delivered, path="a.yaml", validate=None).issues == ()


@pytest.mark.needs("kubectl")
def test_empty_lines_at_the_end_of_a_text_are_those_that_kubectl_reads_in_what_helm_prints(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {0}}}\ndata:\n  text: |+\n    {0}\n\n\n"
    files = {CHART_FILE: CHART[CHART_FILE], **{f"charts/web/templates/{name}.yaml": text.format(name) for name in "abc"}}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    printed = subprocess.run(
        [str(find_helm({}).executable), "template", "web", "charts/web"], cwd=tmp_path, capture_output=True, check=True
    ).stdout
    (tmp_path / "printed.yaml").write_bytes(printed)
    command = ["kubectl", "annotate", "--local", "-f", "printed.yaml", "--dry-run=client", "x=y", "-o", "jsonpath={.data.text}|"]
    read = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True).stdout
    bodies = [parse_file(one.text, path="a.yaml", validate=None).documents[0].body for one in render(files).objects]
    assert "".join(f"{body['data']['text']}|" for body in bodies) == read
    assert read.count("\n\n") >= 3
