"""deploy/kustomize and the chart give valid objects, the same ones, and pods that pass the restricted level of Pod Security."""

from __future__ import annotations

import functools
import json
import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import click
import jsonschema
import kubernetes_validate
import pytest
import yaml

from gitsched import __version__
from gitsched.cli.reconcile import command as reconcile_command
from gitsched.cli.watch import command as watch_command
from gitsched.reconcile.operator_settings import read_operator_config
from tests.deploy.rendering import (
    CHART,
    KUSTOMIZE,
    VALUES,
    Manifest,
    build,
    find,
    get_pod_template,
    normalize,
    render,
    render_file,
    run,
    try_to_render,
)
from tests.upstream_schemas import FLAG, LISTED, NAME, TEXT, TEXTS, strict

SELECTOR = strict("matchLabels", matchLabels=TEXTS)
METADATA = strict("name", "namespace", name=NAME, namespace=TEXT, labels=TEXTS)
DURATION = {"type": "string", "pattern": "^([0-9]+(ms|s|m|h))+$"}
UPSTREAM = {
    "ServiceMonitor": strict(
        *("apiVersion", "kind", "metadata", "spec"),
        apiVersion={"const": "monitoring.coreos.com/v1"},
        kind=TEXT,
        metadata=METADATA,
        spec=strict(
            *("selector", "endpoints"),
            selector=SELECTOR,
            endpoints=LISTED | {"items": strict("port", port=TEXT, path=TEXT, interval=DURATION, scrapeTimeout=DURATION)},
        ),
    ),
    "SealedSecret": strict(
        *("apiVersion", "kind", "metadata", "spec"),
        apiVersion={"const": "bitnami.com/v1alpha1"},
        kind=TEXT,
        metadata=METADATA,
        spec=strict(
            "encryptedData",
            encryptedData=TEXTS,
            template=strict("metadata", metadata=METADATA, type=TEXT, immutable=FLAG),
        ),
    ),
}
"""The fields that deploy/ uses of the CRDs of the Prometheus operator and of Sealed Secrets."""

CASES = [pytest.param(directory, id=f"kustomize-{directory.name}") for directory in (KUSTOMIZE / "base", KUSTOMIZE / "example")]
CASES += [pytest.param(path, id=f"helm-{path.stem}", marks=pytest.mark.needs("helm")) for path in VALUES]
pytestmark = pytest.mark.needs("kubectl")


@pytest.fixture(params=CASES)
def objects(request: pytest.FixtureRequest) -> tuple[Manifest, ...]:
    return build(request.param) if request.param.is_dir() else render_file(request.param)


@functools.cache
def validate(body: str) -> None:
    """Check an object with the schema of the newest Kubernetes."""
    kubernetes_validate.validate(json.loads(body), kubernetes_validate.latest_version(), strict=True)


def list_pods(objects: tuple[Manifest, ...]) -> list[Manifest]:
    return [template["spec"] for body in objects if (template := get_pod_template(body))]


def test_every_object_is_valid(objects: tuple[Manifest, ...]) -> None:
    for body in objects:
        if schema := UPSTREAM.get(body["kind"]):
            jsonschema.validate(body, schema)
        else:
            validate(json.dumps(body))


def test_every_object_is_in_the_namespace(objects: tuple[Manifest, ...]) -> None:
    for body in objects:
        assert body["kind"] == "Namespace" or body["metadata"]["namespace"] == "gitsched", body["kind"]


def test_pods_pass_the_restricted_level_and_have_no_rights(objects: tuple[Manifest, ...]) -> None:
    assert not {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} & {body["kind"] for body in objects}
    assert find(objects, "ServiceAccount")["automountServiceAccountToken"] is False
    for spec in list_pods(objects):
        assert spec["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "privileged": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {next(iter(volume.keys() - {"name"})) for volume in spec["volumes"]} <= {
            *("configMap", "emptyDir", "persistentVolumeClaim", "secret")
        }


def test_images_have_the_version_of_gitsched(objects: tuple[Manifest, ...]) -> None:
    version = __version__
    images = [spec["containers"][0]["image"] for spec in list_pods(objects)]
    assert {image.partition("@")[0].removesuffix(f":{version}") for image in images} == {"registry.example.com/platform/gitsched"}
    assert all("@sha256:" in image or image.endswith(f":{version}") for image in images)


def test_references_of_the_pods_have_a_target(objects: tuple[Manifest, ...]) -> None:
    maps = {body["metadata"]["name"] for body in objects if body["kind"] == "ConfigMap"}
    for spec in list_pods(objects):
        (container,) = spec["containers"]
        assert {source["configMapRef"]["name"] for source in container["envFrom"]} <= maps
        assert {volume["configMap"]["name"] for volume in spec["volumes"] if volume["name"] == "settings"} <= maps
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
        assert spec["serviceAccountName"] == find(objects, "ServiceAccount")["metadata"]["name"]
    deployments = [body for body in objects if body["kind"] == "Deployment"]
    for body in deployments:
        labels = body["spec"]["template"]["metadata"]["labels"]
        selectors = [body["spec"]["selector"]["matchLabels"], find(objects, "Service")["spec"]["selector"]]
        for kind in ("PodDisruptionBudget", "NetworkPolicy"):
            spec = find(objects, kind)["spec"]
            selectors.append((spec.get("selector") or spec["podSelector"])["matchLabels"])
        assert all(selector.items() <= labels.items() for selector in selectors)


def test_commands_and_variables_exist(objects: tuple[Manifest, ...]) -> None:
    environment = find(objects, "ConfigMap", "gitsched-environment")["data"]
    assert all(isinstance(value, str) for value in environment.values())
    watched = {option.envvar for option in watch_command.params if isinstance(option, click.Option)}
    assert {name for name in environment if name.startswith("GITSCHED_")} <= watched
    for spec in list_pods(objects):
        program, *arguments = spec["containers"][0]["args"]
        assert program in ("watch", "reconcile")
        known = {name for option in reconcile_command.params for name in option.opts}
        assert {argument.partition("=")[0] for argument in arguments} <= known
        assert set(re.findall(r"\$\((\w+)\)", " ".join(arguments))) <= environment.keys()


def test_grace_periods_and_files_agree(objects: tuple[Manifest, ...]) -> None:
    environment = find(objects, "ConfigMap", "gitsched-environment")["data"]
    for spec in list_pods(objects):
        mounts = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
        paths = re.findall(r"/(?:etc|var)/[\w/.-]+", " ".join(environment.values()))
        assert all(any(path == mount or path.startswith(f"{mount}/") for mount in mounts) for path in paths)
        if spec["containers"][0]["args"] == ["watch"]:
            assert spec["terminationGracePeriodSeconds"] > float(environment.get("GITSCHED_GRACE", 20))


def test_the_settings_of_the_operator_are_valid(objects: tuple[Manifest, ...], tmp_path: Path) -> None:
    file = tmp_path / "operator.yaml"
    file.write_text(find(objects, "ConfigMap", "gitsched-settings")["data"]["operator.yaml"])
    read_operator_config(file)


def test_pods_may_connect_to_git_servers_and_not_to_the_metadata_service(objects: tuple[Manifest, ...]) -> None:
    def is_allowed(address: str, port: int) -> bool:
        for rule in rules:
            blocks = [peer["ipBlock"] for peer in rule.get("to", [{"ipBlock": {"cidr": "0.0.0.0/0"}}]) if "ipBlock" in peer]
            inside = [block for block in blocks if ip_address(address) in ip_network(block["cidr"])]
            left = [block for block in inside if not any(ip_address(address) in ip_network(net) for net in block.get("except", []))]
            if left and port in [entry["port"] for entry in rule["ports"]]:
                return True
        return False

    policies = [body for body in objects if body["kind"] == "NetworkPolicy"]
    for policy in policies:
        rules = policy["spec"]["egress"]
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        assert [is_allowed("198.51.100.7", port) for port in (22, 53, 80, 443)] == [True, True, False, True]
        assert is_allowed("2001:db8::7", 443)
        assert not is_allowed("169.254.169.254", 443)
        assert not is_allowed("fd00:ec2::254", 443)


@pytest.mark.needs("helm")
@pytest.mark.parametrize("name", ["base", "example"])
def test_the_chart_renders_the_objects_of_kustomize(name: str) -> None:
    values = CHART / "ci" / f"{'default' if name == 'base' else name}-values.yaml"
    expected = normalize(build(KUSTOMIZE / name))
    expected.pop(("Namespace", "gitsched"), None)
    assert normalize(render_file(values)) == expected


@pytest.mark.needs("helm")
@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_helm_lint_accepts_the_chart(path: Any) -> None:
    done = run("helm", "lint", "--strict", str(CHART), "--values", str(path))
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


REQUIRED: dict[str, Any] = {
    "image": {"repository": "registry.example.com/platform/gitsched"},
    "source": {"repository": "https://git.example.com/platform/fleet.git"},
}


@pytest.mark.needs("helm")
@pytest.mark.parametrize(
    ("values", "path"),
    [
        pytest.param({}, "/image/repository", id="nothing set"),
        pytest.param({**REQUIRED, "watch": {"replica": 2}}, "/watch", id="unknown value"),
        pytest.param({**REQUIRED, "watch": {"port": 80}}, "/watch/port", id="port that needs a capability"),
        pytest.param(
            {**REQUIRED, "source": {"repository": "https://ada:secret@git.example.com/a.git"}}, "/source/repository", id="password"
        ),
        pytest.param({**REQUIRED, "ingress": {"enabled": True}}, "/watch", id="Ingress without webhook"),
        pytest.param({**REQUIRED, "securityContext": {"runAsUser": 0}}, "/securityContext/runAsUser", id="root"),
        pytest.param({**REQUIRED, "watch": {"status": "jenkins"}}, "/watch/status", id="unknown forge"),
    ],
)
def test_the_chart_rejects_wrong_values(values: dict[str, Any], path: str) -> None:
    done = try_to_render(values)
    assert done.returncode != 0
    assert f"'{path}" in done.stderr


def test_every_value_of_the_chart_is_described() -> None:
    def list_paths(schema: dict[str, Any], values: Any, path: str = "") -> list[str]:
        members = schema.get("properties")
        if not members:
            return []
        assert values.keys() == members.keys() - ({"global"} if not path else set()), path
        found = [f"{path}{name}" for name, member in members.items() if "type" in member and "description" not in member]
        return found + [leaf for name in values for leaf in list_paths(members[name], values[name], f"{path}{name}.")]

    schema = json.loads((CHART / "values.schema.json").read_text())
    undescribed = list_paths(schema, yaml.safe_load((CHART / "values.yaml").read_text()))
    assert {path.partition(".")[0] for path in undescribed} <= {"securityContext"}


@pytest.mark.needs("helm")
def test_large_numbers_are_rendered_as_integers() -> None:
    values = {**REQUIRED, "securityContext": {"runAsUser": 1000660000}}
    template = get_pod_template(find(render(values), "Deployment"))
    assert template is not None
    assert template["spec"]["securityContext"]["runAsUser"] == 1000660000


@pytest.mark.needs("helm")
def test_two_releases_in_a_namespace_have_different_names_and_selectors() -> None:
    one, two = (normalize(render(CHART / "ci" / "example-values.yaml", release)) for release in ("gitsched", "second"))
    shared = one.keys() & two.keys()
    assert {kind for kind, _ in shared} <= {"SealedSecret"}
    labels = two["Deployment", "second-gitsched"]["spec"]["template"]["metadata"]["labels"]
    assert not one["Service", "gitsched"]["spec"]["selector"].items() <= labels.items()
