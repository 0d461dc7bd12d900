"""Findings are committed with the decisions: they say where a value is wrong, and never a value that may be secret."""

from __future__ import annotations

import pytest

import gitsched
from gitsched.manifests.reading import read

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
    problems = read(SECRET.encode(), path="secret.yaml", check=None).problems
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
