"""Validation of Krake documents."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

import gitsched
from tests.builders.krake import (
    KUBECONFIG,
    MANIFEST,
    NAMESPACE,
    Body,
    ScheduleRuns,
    application,
    cloud,
    cluster,
    codes,
    measure,
    project,
)
from tests.tables import each_row


def test_a_constraint_error_has_its_position() -> None:
    (finding,) = gitsched.validate([application(constraints={"labels": ["location is DE", "location of DE"]})])
    assert finding.code == "krake-label-constraint"
    assert "expected an operator such as is, is not, in, not in at character 10" in finding.message


def test_a_misspelt_kind_is_reported() -> None:
    (finding,) = gitsched.validate([{**application(), "kind": "Aplication"}])
    assert (finding.severity, finding.code) == ("error", "unknown-kind")
    assert "did you mean Application?" in finding.message
    (finding,) = gitsched.validate([{"api": "core", "kind": "Conflict", "metadata": {"name": "r"}}])
    assert (finding.severity, finding.code) == ("warning", "unknown-kind")
    (finding,) = gitsched.validate([{"api": "core", "kind": "RoleBinding", "metadata": {"name": "r"}}])
    assert (finding.severity, finding.code) == ("warning", "kind-unsupported")


@pytest.mark.parametrize("api", ["kubernets", "Kubernetes", "infra"])
def test_a_misspelt_api_is_reported(api: str) -> None:
    (finding,) = gitsched.validate([{**application(), "api": api}])
    assert (finding.severity, finding.code) == ("error", "unknown-kind")
    assert "did you mean `api: kubernetes` without apiVersion?" in finding.message


def test_a_cloud_needs_the_settings_of_its_type() -> None:
    body = cloud("sky", is_global=True)
    (finding,) = gitsched.validate([{**body, "spec": {"type": "openstack"}}])
    assert (finding.severity, finding.code) == ("error", "missing-field")


@pytest.mark.parametrize("url", ["prometheus:9090", "ftp://p", "http://", "http://p@"])
def test_an_invalid_provider_url_is_reported_without_quoting_it(url: str) -> None:
    provider = {"type": "prometheus", "prometheus": {"url": url}}
    (finding,) = gitsched.validate([{**measure()[0], "spec": provider}])
    assert (finding.severity, finding.code) == ("warning", "krake-provider-url")
    assert url not in finding.message


@pytest.mark.parametrize("url", ["http://p:canary@", "https://u:canary@h:99999/", "https://u:canary@[h", "amqp://u:canary@h"])
def test_a_password_in_an_invalid_url_is_reported_without_quoting_it(url: str) -> None:
    provider = {"type": "prometheus", "prometheus": {"url": url}}
    found = gitsched.validate([{**measure()[0], "spec": provider}])
    assert {finding.code for finding in found} == {"krake-provider-url", "krake-secret-in-git"}
    assert "canary" not in "".join(finding.message for finding in found)


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("prometheus", {"url": "http://h", "tokenFrom": {"env": "T"}}, []),
        ("prometheus", {"url": "http://user:canary@h"}, [("warning", "krake-secret-in-git", "spec.prometheus.url")]),
        ("prometheus", {"url": "http://user@h"}, []),
        (
            "influx",
            {"url": "http://h", "org": "o", "bucket": "b", "token": "canary"},
            [("warning", "krake-secret-in-git", "spec.influx.token")],
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


@pytest.mark.parametrize("value", [date(2026, 1, 1)], ids=str)
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


def user(**fields: Any) -> Body:
    """Return a Cluster whose kubeconfig has these fields of its user."""
    kubeconfig = {**KUBECONFIG, "users": [{"name": "u", "user": {name.replace("_", "-"): value for name, value in fields.items()}}]}
    return cluster("one", kubeconfig=kubeconfig)


def authenticated(**auth: Any) -> list[Body]:
    """Return a Project and a Cloud with these credentials."""
    documents = []
    for body, path in ((project("p"), ()), (cloud("c"), ("openstack",))):
        spec = (
            {**body["spec"], "auth": auth}
            if not path
            else {**body["spec"], "openstack": {**body["spec"]["openstack"], "auth": auth}}
        )
        documents.append({**body, "spec": spec})
    return documents


SECRET = "canary-3b0e"
KUBECONFIG_USER = "spec.kubeconfig.users[0].user"


@each_row(
    ("document", "fields"),
    [
        (user(token=SECRET), [f"{KUBECONFIG_USER}.token"]),
        (user(password=SECRET, username="admin"), [f"{KUBECONFIG_USER}.password"]),
        (user(client_key_data=SECRET, client_certificate_data="public"), [f"{KUBECONFIG_USER}.client-key-data"]),
        (
            user(auth_provider={"name": "oidc", "config": {"refresh-token": SECRET, "client-secret": SECRET, "client-id": "c"}}),
            [f"{KUBECONFIG_USER}.auth-provider.config.{name}" for name in ("refresh-token", "client-secret")],
        ),
        (
            user(exec={"command": "login", "env": [{"name": "REGION", "value": "eu"}, {"name": "OS_PASSWORD", "value": SECRET}]}),
            [f"{KUBECONFIG_USER}.exec.env[1].value"],
        ),
        (user(exec={"args": ["get-token", f"--client-secret={SECRET}"]}), [f"{KUBECONFIG_USER}.exec.args[1]"]),
        (user(exec={"args": ["--token", SECRET, "--server-id", "s"]}), [f"{KUBECONFIG_USER}.exec.args[1]"]),
        (user(token=12345), [f"{KUBECONFIG_USER}.token"]),
        *zip(
            authenticated(type="password", password={"user": {"id": "u", "password": SECRET}}),
            (["spec.auth.password.user.password"], ["spec.openstack.auth.password.user.password"]),
            strict=True,
        ),
        *zip(
            authenticated(type="application_credential", application_credential={"id": "i", "secret": SECRET}),
            (["spec.auth.application_credential.secret"], ["spec.openstack.auth.application_credential.secret"]),
            strict=True,
        ),
        (
            {
                "api": "infrastructure",
                "kind": "GlobalInfrastructureProvider",
                "metadata": {"name": "im"},
                "spec": {"type": "im", "im": {"url": "http://h", "username": "u", "password": SECRET, "token": SECRET}},
            },
            ["spec.im.password", "spec.im.token"],
        ),
        (application(status={"state": "RUNNING", "complete_token": SECRET}), ["status.complete_token"]),
    ],
)
def test_a_credential_in_git_is_reported_without_quoting_it(document: Body, fields: list[str]) -> None:
    findings = gitsched.validate([document])
    assert [(finding.severity, finding.code) for finding in findings] == [("warning", "krake-secret-in-git")] * len(fields)
    assert [finding.message.partition(":")[0] for finding in findings] == fields
    assert not any(SECRET in finding.message or "12345" in finding.message for finding in findings)


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "REDACTED", "client_key_data": "DATA+OMITTED"},
        {"token": "ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]"},
        {"token": "${KUBE_TOKEN}"},
        {"token": "", "password": None},
        {"tokenFile": "/var/run/token", "client_key": "/etc/key.pem"},
        {
            "exec": {
                "command": "aws",
                "args": ["eks", "get-token", "--token-file", "/t"],
                "env": [{"name": "TOKEN_FILE", "value": "/t"}],
            }
        },
        {"exec": {"args": "none", "env": {"TOKEN": "x"}}},
        {"auth_provider": "none"},
    ],
)
def test_placeholders_and_paths_are_no_credentials(fields: Body) -> None:
    assert gitsched.validate([user(**fields)]) == []


@pytest.mark.parametrize(
    "kubeconfig", [{"users": [{"user": [1]}]}, {"users": "x"}, {"users": [None]}, {"clusters": [{"cluster": 1}]}]
)
def test_a_malformed_kubeconfig_is_reported_once(kubeconfig: Body) -> None:
    findings = gitsched.validate([cluster("one", kubeconfig=kubeconfig)])
    assert {finding.code for finding in findings} == {"krake-kubeconfig"}
