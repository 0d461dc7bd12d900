"""Findings contain the location of an invalid value, but no value that may be secret."""

from __future__ import annotations

import pytest

import gitsched
from gitsched.manifests.parser import parse_file

SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: shop}
stringData:
  number: !!int CANARY
  fraction: !!float CANARY
  flag: !!bool CANARY
"""


def test_a_wrong_value_in_a_secret_is_not_repeated() -> None:
    problems = parse_file(SECRET.encode(), path="secret.yaml", validate=None).issues
    assert [problem.code for problem in problems] == ["wrong-tag"] * 3
    assert not any("CANARY" in problem.message for problem in problems)


@pytest.mark.parametrize("address", ["http://ada:CANARY@[::1", "https://ada:CANARY@host:port"])
def test_an_address_with_a_password_in_it_is_not_repeated(address: str) -> None:
    cluster = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "one"},
        "spec": {"syncMode": "Push", "apiEndpoint": address},
    }
    findings = [finding for finding in gitsched.validate([cluster]) if finding.severity == "error"]
    assert findings
    assert not any("CANARY" in finding.message for finding in findings)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"kubeconfig": "CANARY"}, id="kubeconfig"),
        pytest.param({"kubeconfig": {"contexts": [{}], "clusters": [{}], "users": "CANARY"}}, id="users of a kubeconfig"),
    ],
)
def test_a_wrong_kubeconfig_is_not_repeated(spec: dict[str, object]) -> None:
    findings = gitsched.validate(
        [{"api": "kubernetes", "kind": "Cluster", "metadata": {"name": "k", "namespace": "n"}, "spec": spec}]
    )
    assert [finding for finding in findings if finding.severity == "error"]
    assert "CANARY" not in str(findings)


def test_a_token_that_yaml_reads_as_a_number_is_not_repeated() -> None:
    spec = {"type": "influx", "influx": {"url": "u", "org": "o", "bucket": "b", "token": 99887766}}
    (finding,) = gitsched.validate([{"api": "core", "kind": "GlobalMetricsProvider", "metadata": {"name": "i"}, "spec": spec}])
    assert "'token' must be a string, not a value that is not shown; quote it" in finding.message
