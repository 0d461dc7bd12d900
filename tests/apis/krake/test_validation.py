"""Validation of Krake documents."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

import gitsched
from tests.builders.krake import (
    MANIFEST,
    NAMESPACE,
    Body,
    ScheduleRuns,
    application,
    cloud,
    cluster,
    codes,
    measure,
)


def test_a_constraint_error_has_its_position() -> None:
    (finding,) = gitsched.validate([application(constraints={"labels": ["location is DE", "location of DE"]})])
    assert finding.code == "krake-label-constraint"
    assert "expected an operator such as is, is not, in, not in at character 10" in finding.message


def test_a_misspelt_kind_is_reported() -> None:
    (finding,) = gitsched.validate([{**application(), "kind": "Aplication"}])
    assert (finding.severity, finding.code) == ("warning", "unknown-kind")
    assert "did you mean Application?" in finding.message
    assert gitsched.validate([{"api": "core", "kind": "RoleBinding", "metadata": {"name": "r"}}]) == []


@pytest.mark.parametrize("api", ["kubernets", "Kubernetes", "infra"])
def test_a_misspelt_api_is_reported(api: str) -> None:
    (finding,) = gitsched.validate([{**application(), "api": api}])
    assert (finding.severity, finding.code) == ("warning", "unknown-kind")
    assert "did you mean kubernetes?" in finding.message


def test_a_cloud_needs_the_settings_of_its_type() -> None:
    body = cloud("sky", is_global=True)
    (finding,) = gitsched.validate([{**body, "spec": {"type": "openstack"}}])
    assert (finding.severity, finding.code) == ("error", "missing-field")


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://p", "http://", "http://p:canary@"])
def test_an_invalid_provider_url_is_reported_without_quoting_it(url: str) -> None:
    provider = {"type": "prometheus", "prometheus": {"url": url}}
    (finding,) = gitsched.validate([{**measure()[0], "spec": provider}])
    assert (finding.severity, finding.code) == ("warning", "krake-provider-url")
    assert url not in finding.message


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("prometheus", {"url": "http://h", "tokenFrom": {"env": "T"}}, []),
        ("prometheus", {"url": "http://user:canary@h"}, [("info", "krake-secret-in-git", "spec.prometheus.url")]),
        ("prometheus", {"url": "http://user@h"}, []),
        (
            "influx",
            {"url": "http://h", "org": "o", "bucket": "b", "token": "canary"},
            [("info", "krake-secret-in-git", "spec.influx.token")],
        ),
        (
            "prometheus",
            {"url": "http://h", "tokenFrom": {"env": "T", "file": "/t"}},
            [("warning", "krake-token-twice", "spec.prometheus.tokenFrom")],
        ),
    ],
)
def test_secrets_in_provider_documents_are_reported(kind: str, settings: Body, expected: list[tuple[str, str, str]]) -> None:
    findings = gitsched.validate([{**measure()[0], "spec": {"type": kind, kind: settings}}])
    assert [(finding.severity, finding.code, finding.message.partition(":")[0]) for finding in findings] == expected
    assert "canary" not in "".join(finding.message for finding in findings)


@pytest.mark.parametrize("key", [None, 1, True])
def test_a_key_that_is_not_a_string_is_a_finding(key: Any) -> None:
    """YAML parsers produce such keys."""
    document = {**application(), "metadata": {"name": "echo", "namespace": NAMESPACE, key: "x"}}
    assert "wrong-type" in codes(ScheduleRuns(document).run())
    assert (
        codes(
            ScheduleRuns(
                {**application(), "spec": {"manifest": [{**MANIFEST[0], "data": {key: "x", "y": "z"}}]}}, cluster("one")
            ).run()
        )
        == set()
    )


@pytest.mark.parametrize("value", [date(2026, 1, 1), b"x"], ids=str)
def test_a_value_that_json_cannot_represent_is_a_finding(value: object) -> None:
    """Other YAML parsers convert unquoted dates."""
    (finding,) = gitsched.validate(
        [{**application(), "metadata": {"name": "echo", "namespace": NAMESPACE, "labels": {"since": value}}}]
    )
    assert (finding.severity, finding.code) == ("error", "wrong-type")
    assert "metadata.labels.since: JSON has no " in finding.message


def test_a_lone_surrogate_is_a_finding() -> None:
    (finding,) = gitsched.validate([{**measure()[0], "spec": {"type": "\ud800"}}])
    assert finding.code == "wrong-type"
