"""Input beyond a limit is an error that names the limit, and the rest is read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gitsched.build.application_sets import GeneratorInput, list_applications
from gitsched.git import open_repository
from gitsched.git.signatures import verify_commit
from gitsched.model.errors import Permanent
from gitsched.reconcile.operator_settings import read_operator_config

from .conftest import Fleet, cluster, deployment, policy

NO_FILES: Any = SimpleNamespace(entries={}, directories=())
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcGBuAgwYEGcUMQ6TYTFyr4SIFRdMaGv1WZQ8nyVvnW release@example.com"
TENANT = "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: NAME}\nspec: {paths: [teams/NAME], namespaces: [NAME]}\n"


def test_more_tenants_than_the_limit_are_an_error(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.reconcile.tenants.MAX_TENANTS", 2)
    tenants = "---\n".join(TENANT.replace("NAME", name) for name in ("red", "blue", "green"))
    fleet.commit({"tenants.yaml": tenants, "web.yaml": deployment("web"), "one.yaml": cluster("one"), "all.yaml": policy()})
    found = [finding.message for finding in fleet.reconcile().plan.findings if finding.code == "tenant-invalid"]
    assert found == ["the source has 3 Tenants: only the first 2 count; remove the others"]


def test_settings_of_the_operator_that_are_too_large_are_not_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "apiVersion: gitsched.io/v1alpha1\nkind: OperatorConfig\nspec:\n  verify:\n    keys:\n"
    file = tmp_path / "operator.yaml"
    file.write_text(text + f"      - {KEY}\n")
    monkeypatch.setattr("gitsched.reconcile.operator_settings.MAX_SIZE", len(file.read_bytes()))
    read_operator_config(file)
    file.write_text(file.read_text() + f"      - {KEY}\n")
    with pytest.raises(Permanent, match=r"more than \d+ bytes"):
        read_operator_config(file)


def test_more_keys_than_the_limit_are_an_error(pair: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.git.signatures.MAX_KEYS", 2)
    repository, head = open_repository(pair.path), pair.git("rev-parse", "HEAD")
    assert verify_commit(repository, head, [KEY] * 2).reason
    with pytest.raises(Permanent, match="more than 2 keys"):
        verify_commit(repository, head, [KEY] * 3)


def test_an_application_set_has_a_limited_number_of_applications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.build.application_sets.MAX_APPLICATIONS", 3)
    elements = [{"name": f"app-{number}"} for number in range(9)]
    spec = {"generators": [{"list": {"elements": elements}}], "template": {"metadata": {"name": "{{name}}"}}}
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "all"}, "spec": spec}
    assert len(list_applications(body, GeneratorInput(NO_FILES, (), lambda url: True))) == 3
