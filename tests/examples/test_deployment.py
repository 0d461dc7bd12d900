"""The manifests in deploy/knative are valid Kubernetes objects, run without privileges, and start a command that exists."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gitsched.cli.apply import AppliedApiGroup

KNATIVE = Path(__file__).parents[2] / "deploy" / "knative"
FILES = sorted(path for path in KNATIVE.glob("*.yaml") if path.name != "kustomization.yaml")


def list_pod_specs() -> Iterator[Any]:
    for path in FILES:
        for body in yaml.safe_load_all(path.read_text()):
            spec = body.get("spec", {})
            template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
            if template:
                yield pytest.param(template["spec"], id=f"{path.stem}-{body['metadata']['name']}")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_manifest_is_valid(path: Path) -> None:
    for body in yaml.safe_load_all(path.read_text()):
        kubernetes_validate.validate(body, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("spec", list(list_pod_specs()))
def test_a_pod_runs_restricted_and_its_command_exists(spec: dict[str, Any]) -> None:
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["serviceAccountName"] == "gitsched-knative"
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    program, api, *flags = container["args"]
    command = AppliedApiGroup("apply").get_command(None, api)  # type: ignore[arg-type]
    assert program == "apply"
    assert command is not None
    options = {name: option for option in command.params for name in option.opts}
    assert {flag for flag in flags if flag.startswith("--")} <= options.keys()
    known = {getattr(option, "envvar", "") for option in command.params} | {"HOME", "XDG_CACHE_HOME"}
    assert {variable["name"] for variable in container["env"]} <= known


def test_the_kustomization_lists_the_rights_and_the_deployment() -> None:
    done = subprocess.run(["kubectl", "kustomize", str(KNATIVE)], capture_output=True, text=True, check=True)
    kinds = [body["kind"] for body in yaml.safe_load_all(done.stdout)]
    assert sorted(kinds) == sorted(
        ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Deployment"]
    )
