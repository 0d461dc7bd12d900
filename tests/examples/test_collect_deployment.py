"""The manifests in deploy/collect are valid, run without privileges, and start `gitsched collect` with settings that it has.

That their rights are those that are used is in tests/collect/test_collection.py.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from gitsched.cli.collect import command

COLLECT = Path(__file__).parents[2] / "deploy" / "collect"


@pytest.mark.needs("kubectl")
def test_the_manifests_are_valid_and_their_command_exists() -> None:
    done = subprocess.run(["kubectl", "kustomize", str(COLLECT)], capture_output=True, text=True, check=True)
    bodies = {body["kind"]: body for body in yaml.safe_load_all(done.stdout)}
    assert bodies.keys() == {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "CronJob"}
    for body in bodies.values():
        kubernetes_validate.validate(body, kubernetes_validate.latest_version(), strict=True)
    spec = bodies["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert (
        spec["serviceAccountName"]
        == bodies["ClusterRoleBinding"]["subjects"][0]["name"]
        == bodies["ServiceAccount"]["metadata"]["name"]
    )
    program, *flags = container["args"]
    assert program == "collect"
    assert {flag for flag in flags if flag.startswith("--")} <= {name for option in command.params for name in option.opts}
    known = {str(option.envvar) for option in command.params} | {"HOME", "XDG_CACHE_HOME", "GIT_SSH_COMMAND"}
    assert {variable["name"] for variable in container["env"]} <= known
    reads_secrets = [rule for rule in bodies["ClusterRole"]["rules"] if {"secrets", "*"} & {*rule["resources"], *rule["verbs"]}]
    assert reads_secrets == []
