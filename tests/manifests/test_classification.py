"""Distinguish Kubernetes objects from other files and values."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from gitsched.decide.validation import validate_document
from gitsched.manifests.parser import ParsedFile, parse_file
from tests.tables import each_row

TEMPLATES = {
    "a chart's template": """
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: {{ include "web.fullname" . }}
        spec:
          replicas: {{ .Values.replicas }}
        """,
    "a chart's template with control lines": """
        {{- if .Values.ingress.enabled }}
        apiVersion: v1
        kind: Service
        metadata:
          name: web
        {{- end }}
        """,
    "a chart's template with quotes in quotes": """
        apiVersion: v1
        kind: Service
        metadata:
          name: "{{ include "web.fullname" . }}"
        """,
}
QUIET = {
    "install-config.yaml of OpenShift": "apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: lab}\nplatform: {none: {}}\n",
    "a chart's template that happens to be YAML": """
        apiVersion: v1
        kind: Service
        metadata:
          name: "{{ .Release.Name }}-web"
        """,
    "a chart's values": """
        image:
          kind: nginx
          tag: 1.2
        replicas: 3
        """,
    "a chart's values with a duplicate key": "kind: x\nimage: a\nimage: b\n",
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "a JSON patch": "- op: replace\n  path: /spec/replicas\n  value: 3\n- kind: x\n",
    "kubeconfig": "apiVersion: v1\nkind: Config\nclusters: []\n",
    "kubeadm configuration": "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nnetworking: {}\n",
    "a component of kustomize": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nmetadata: {name: a}\n",
    "a plug-in of kustomize": "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\nprefix: x\n",
    "a name made by the server": "apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata:\n  generateName: a-\n",
    "broken YAML that is no manifest": "a: b: c\nthe kind of text: [\n",
    "a text": "this is some kind of text\n",
    "a workflow": "name: ci\non: [push]\njobs:\n  test:\n    runs-on: ubuntu\n",
}
RESOURCES = {
    "Argo CD ApplicationSet": (
        "argoproj.io/v1alpha1",
        "ApplicationSet",
        "spec: {template: {metadata: {name: '{{ .cluster }}-web'}}}",
    ),
    "Prometheus rules": ("monitoring.coreos.com/v1", "PrometheusRule", "spec: {x: 'on {{ $labels.instance }}'}"),
    "Flux Kustomization": ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "spec: {path: ./apps}"),
    "HelmRelease": ("helm.toolkit.fluxcd.io/v2", "HelmRelease", "spec: {values: {replicas: 3}}"),
    "substitution": ("apps/v1", "Deployment", "spec: {replicas: ${REPLICAS}}".replace("${REPLICAS}", '"${REPLICAS}"')),
}


def read_text(text: str, path: str = "dir/a.yaml") -> ParsedFile:
    return parse_file(dedent(text).encode(), path=path, validate=None)


@each_row("text", TEMPLATES.values())
def test_a_template_gets_a_note(text: str) -> None:
    """A chart's own templates are removed with what is found in them, because it is known then where charts are."""
    file = read_text(text)
    assert (file.status, file.documents, file.unreadable) == ("not-a-resource", (), False)
    assert [(issue.severity, issue.code) for issue in file.issues] == [("info", "helm-template")]


@each_row("text", QUIET.values())
def test_a_file_of_another_tool_gives_no_finding(text: str) -> None:
    file = read_text(text)
    assert (file.status, file.documents, file.issues, file.unreadable) == ("not-a-resource", (), (), False)
    assert file.reason


@pytest.mark.parametrize(("version", "kind", "rest"), RESOURCES.values(), ids=RESOURCES)
def test_objects_with_templates_in_strings_are_resources(version: str, kind: str, rest: str) -> None:
    file = read_text(f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: a\n{rest}\n")
    assert (file.status, file.issues, len(file.documents)) == ("resources", (), 1)


@pytest.mark.parametrize("text", ["", "\n", "---\n", "# kind: nothing\n", "---\n---\n", "--- # kind\n...\n", "null # kind: \n"])
def test_a_file_without_content_is_empty(text: str) -> None:
    assert read_text(text) == ParsedFile("empty")


@pytest.mark.parametrize(
    "member",
    ["spec: {replicas: 1}", "data: {a: b}", "rules: []", "webhooks: [{name: a.example.com}]", "roleRef: {name: a}", "type: Opaque"],
)
def test_an_object_without_a_kind_is_an_error(member: str) -> None:
    file = read_text(f"apiVersion: v1\nmetadata: {{name: a}}\n{member}\n")
    assert [(issue.severity, issue.code) for issue in file.issues] == [("error", "missing-kind")]


def test_krakes_objects_have_api_instead_of_api_version() -> None:
    file = read_text(
        "api: kubernetes\nkind: Application\nmetadata: {name: a, namespace: system:admin}\n".replace("system:admin", "system")
    )
    assert (file.status, len(file.documents), file.issues) == ("resources", 1, ())


@each_row(
    ("text", "code", "line", "column"),
    [
        pytest.param("apiVersion: v1\nkind: A\nx: '{{ .name }}'\n y: 1\n", "yaml-syntax", 4, 2, id="braces in a broken object"),
        pytest.param("apiVersion: v1\nkind: Pod\n name: x\n", "yaml-syntax", 3, 6, id="bad indentation"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata:\n\tname: x\n", "yaml-syntax", 4, 1, id="tab"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: {name: 'x}\n", "yaml-syntax", 4, 1, id="open quote"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: {name: x\nspec: {}\n", "yaml-syntax", 4, 5, id="open brace"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: {name: *x}\n", "yaml-syntax", 3, 18, id="unknown alias"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\n", "missing-name", 3, 1, id="no name"),
        pytest.param("apiVersion: apps/v1\nkind: Deployment\nspec: {}\n", "missing-name", 1, 1, id="no metadata"),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata:\n  name: 12\n", "invalid-name", 4, 9, id="a number as name"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: on}\n", "invalid-namespace", 3, 32, id="boolean namespace"
        ),
        pytest.param("apiVersion: v1\nkind: Pod\nmetadata: x\n", "invalid-metadata", 3, 11, id="text as metadata"),
        pytest.param("apiVersion: v1\nmetadata: {name: a}\nspec: {}\nkin: Pod\n", "missing-kind", 1, 1, id="no kind"),
        pytest.param("kind: Pod\nmetadata: {name: a}\n", "missing-api-version", 1, 1, id="no apiVersion"),
        pytest.param("apiVersion: 1\nkind: Pod\nmetadata: {name: a}\n", "invalid-type-meta", 1, 13, id="apiVersion 1"),
    ],
)
def test_an_object_without_a_valid_identity_is_an_error(text: str, code: str, line: int, column: int) -> None:
    file = read_text(text)
    assert (file.status, file.documents, file.unreadable) == ("invalid", (), True)
    assert [(p.severity, p.code, p.line, p.column) for p in file.issues] == [("error", code, line, column)]


def test_syntax_errors_have_plain_messages() -> None:
    (problem,) = read_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x\nspec: {}\n").issues
    assert problem.message.startswith("the YAML cannot be read: a mapping in braces lacks a ',' or its closing '}'")
    assert problem.message.endswith("(while parsing a flow mapping that begins in line 3)")


def test_a_kustomization_lists_files_that_are_not_documents() -> None:
    text = """
        apiVersion: kustomize.config.k8s.io/v1beta1
        kind: Kustomization
        resources: [deployment.yaml]
        patches:
          - path: patches/replicas.yaml
          - patch: "- op: remove"
            target: {kind: Deployment}
        patchesStrategicMerge: [memory.yaml]
        patchesJson6902: [{path: ../json.yaml, target: {kind: Service, name: a}}]
        configurations: [names.yaml]
        configMapGenerator: [{name: a, files: [config=app.yaml, app.yaml, other.yaml]}]
        """
    for name in ("kustomization.yaml", "kustomization.yml", "Kustomization"):
        file = read_text(text, f"base/{name}")
        assert (file.status, file.issues) == ("not-a-resource", ())
        assert file.kustomization is not None
        inputs = {reference.path for reference in file.kustomization.references if reference.role == "input"}
        assert inputs == {"memory.yaml", "names.yaml", "patches/replicas.yaml", "../json.yaml", "app.yaml", "other.yaml"}


@pytest.mark.parametrize("kind", ["List", "ConfigMapList"])
def test_items_of_a_list_are_separate_documents(kind: str) -> None:
    file = read_text(f"""
        apiVersion: v1
        kind: {kind}
        metadata: {{resourceVersion: ""}}
        items:
        - apiVersion: v1
          kind: ConfigMap
          metadata: {{name: a, labels: {{x: yes}}}}
        - apiVersion: v1
          kind: ConfigMap
          metadata: {{name: b, uid: u}}
        """)
    assert [(d.body["metadata"]["name"], d.index, d.item, d.line, d.column, d.broken) for d in file.documents] == [
        ("a", 0, 0, 6, 3, True),
        ("b", 0, 1, 9, 3, False),
    ]
    assert [(d.spans.whole_file, d.spans.server_owned) for d in file.documents] == [(False, ()), (False, None)]
    assert [(p.code, p.line, p.resource) for p in file.issues] == [("invalid-labels", 8, ("ConfigMap", "", "a"))]


def test_entries_of_a_typed_list_take_its_type() -> None:
    (document,) = read_text("apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n").documents
    assert (document.body["apiVersion"], document.body["kind"]) == ("apps/v1", "Deployment")


def test_json_files() -> None:
    package = json.dumps({"name": "x", "version": "1", "kind": "module"})
    assert read_text(package, "package.json").status == "not-a-resource"
    dump = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}]}
    )
    assert [d.item for d in read_text(dump, "dump.json").documents] == [0]


def test_a_file_of_another_tool_may_lack_a_name() -> None:
    """Only the kinds of Kubernetes and of policy APIs are known to need one."""
    file = read_text("apiVersion: tool.example.com/v1\nkind: Job\nmetadata: {labels: {}}\n")
    assert [(problem.severity, problem.code) for problem in file.issues] == [("warning", "missing-name")]
    assert not file.unreadable
    assert read_text("apiVersion: v1\nkind: Config\nclusters: []\n").issues == (), "a kubeconfig has no metadata"


@pytest.mark.parametrize(("value", "words"), [("n", "not false; quote it (YAML reads y, n,"), ("12", "not 12; quote it")])
def test_a_value_that_yaml_does_not_parse_as_a_string_must_be_quoted(value: str, words: str) -> None:
    text = (
        "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p}\nspec:\n"
        f"  resourceSelectors: [{{apiVersion: v1, kind: Pod, namespace: {value}}}]\n"
    )
    (problem,) = parse_file(text.encode(), path="a.yaml", validate=validate_document).issues
    assert words in problem.message


def test_a_generated_name_is_a_warning_with_its_cure() -> None:
    text = "apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata:\n  generateName: back-\nspec: {}\n"
    file = read_text(text)
    (issue,) = file.issues
    assert (issue.severity, issue.code, issue.line, issue.column) == ("warning", "generated-name", 4, 17)
    assert "set metadata.name" in issue.message
    assert not file.unreadable, "it hides no other document"


@each_row(
    "text",
    [
        '{"metadata": {"name": "a"}, "apiVersion": "v1", "kind": "ConfigMap",}}\n',
        "--- {metadata: {name: a}, apiVersion: v1, kind: ConfigMap\n",
        "metadata: {name: a}\rapiVersion: v1\rkind: ConfigMap\rdata: [\r",
        "metadata: {name: a}\u2028kind: ConfigMap\u2028apiVersion: v1\u2028data: [\n",
        "? kind\n: ConfigMap\n? apiVersion\n: v1\n? data\n: [\n",
        "- !!map {apiVersion: v1, kind: ConfigMap\n",
    ],
)
def test_a_syntax_error_of_anything_like_a_manifest_is_a_finding(text: str) -> None:
    file = read_text(text)
    assert (file.status, [issue.code for issue in file.issues]) == ("invalid", ["yaml-syntax"])


def test_a_json_manifest_in_utf_16_is_a_finding() -> None:
    text = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}'
    assert parse_file(text.encode("utf-16"), path="a.json", validate=None).issues[0].code == "not-utf-8"
    assert parse_file('{"a": "b"}'.encode("utf-16"), path="a.json", validate=None).status == "not-a-resource"


def test_a_syntax_error_of_a_kustomization_is_a_finding() -> None:
    file = read_text("resources: [a.yaml\n", "dir/kustomization.yaml")
    assert (file.status, [(issue.severity, issue.code, issue.line) for issue in file.issues]) == (
        "not-a-resource",
        [("error", "yaml-syntax", 2)],
    )
    assert read_text("resources: {{ .Values.resources }}\n x: y\n", "dir/kustomization.yaml").issues == ()
