"""gitsched.yaml: every setting has a default, and an invalid setting is reported with its path."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import gitsched
from gitsched.apis.gitsched.config import AssumedObject, Config, KindScope, WorkloadKind, parse_config
from gitsched.apis.gitsched.config_section import SettingError
from gitsched.apis.gitsched.output_config import SigningConfig
from gitsched.apis.gitsched.reserve_config import ReserveConfig
from gitsched.apis.karmada.settings import SETTINGS as KARMADA
from gitsched.apis.karmada.settings import FailbackConfig
from gitsched.apis.knative.settings import SETTINGS as KNATIVE
from gitsched.apis.krake.settings import SETTINGS as KRAKE
from gitsched.model.delivery import ArgoSettings, DeliveryConfig, FluxSettings, SourceAddress
from tests.tables import each_row

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas/gitsched.io/v1alpha1/Config.json").read_text("utf-8"))
FULL = """
source: {branch: main, paths: [clusters, apps], ignore: [docs/]}
output:
  branch: fleet
  repository: https://git.example.com/platform/placements.git
  push: false
  path: /fleet/
  retireAfter: 1h30m
  author: {name: bot, email: bot@example.com}
  signing: {format: ssh, key: /etc/gitsched/key}
  commitSubject: Placements
delivery:
  source: {url: "ssh://git@git.example.com/platform/fleet.git", secretName: fleet-read}
  flux: {namespace: gitops, interval: 1h30m, prune: false, serviceAccountName: deployer, decryption: {secretName: sops-age}}
  argocd: {namespace: openshift-gitops, project: fleet, destination: "https://{cluster}.example.com:6443", prune: false}
  clusterProfileNamespace: fleet-inventory
karmada:
  taintEviction: false
  allowNoExecuteTaintPolicy: true
  missingFacts: strict
  evictionPurgeMode: Directly
  gracefulEvictionTimeout: 5m
  enableEmptyWorkloadPropagation: true
  preemption: true
  failback: {AfterStabilization: 30m}
krake: {rescheduleAfter: 90, stickiness: 0.5, stickinessFormula: krake}
knative: {capacity: 10, policy: MAXFILLUP, scaleUp: replace, cluster: private-1, autoscaler: {attemptScaleDown: true}}
workloads: [{apiVersion: example.io/v1, kind: Widget, replicasPath: spec.replicas, podTemplatePath: spec.template}]
kinds: [{apiVersion: example.io/v1, kind: Tenant, scope: Cluster}]
assumed: [{kind: StorageClass, name: gp3, clusters: [aws-*]}, {kind: Secret, namespace: shop}]
guard: {freeze: a holiday, period: 1h, limitEvictions: true, fleet: {removed: 12.5, replicasAdded: 400}, namespace: {moved: 5}}
observations: {onFailure: exclude, timeout: 5}
notifications: [{to: somebody}]
followTargets: true
reserve: {lose: zone, namespaces: {shop-*: {lose: region}}}
"""


def defaults_of(node: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of the defaults of a schema."""
    made = {name: child["default"] for name, child in node["properties"].items() if "default" in child}
    inner = {name: defaults_of(child) for name, child in node["properties"].items() if "properties" in child}
    return made | {name: spec for name, spec in inner.items() if spec}


def test_every_setting_is_optional() -> None:
    config = parse_config({})
    assert config == Config()
    assert (config.source.branch, config.output.branch, config.output.author.name) == ("", "placements", "gitsched")
    assert config.settings_of(KARMADA).taint_eviction
    assert config.settings_of(KARMADA).missing_facts == "assume"
    assert config.output.retire_after == timedelta(hours=24)
    assert config.settings_of(KARMADA).graceful_eviction_timeout == timedelta(minutes=10)
    assert config.settings_of(KRAKE).reschedule_after == timedelta(seconds=60)


def test_the_schema_has_the_same_defaults() -> None:
    spec = defaults_of(SCHEMA["properties"]["spec"])
    assert spec["karmada"]["missingFacts"] == "assume"
    assert parse_config(spec) == Config()


def test_every_setting_is_parsed() -> None:
    spec = yaml.safe_load(FULL)
    assert list(Draft202012Validator(SCHEMA["properties"]["spec"]).iter_errors(spec)) == []
    config = parse_config(spec)
    assert config.source.paths == ("clusters", "apps")
    assert config.source.ignore == ("docs/",)
    assert (config.output.branch, config.output.push, config.output.path) == ("fleet", False, "fleet")
    assert config.output.retire_after == timedelta(minutes=90)
    assert config.delivery == DeliveryConfig(
        SourceAddress("ssh://git@git.example.com/platform/fleet.git", "fleet-read"),
        FluxSettings("gitops", "1h30m", False, "deployer", "sops-age"),
        ArgoSettings("openshift-gitops", "fleet", "https://{cluster}.example.com:6443", False),
        "fleet-inventory",
    )
    assert config.output.signing == SigningConfig("ssh", "/etc/gitsched/key")
    assert config.settings_of(KARMADA).failback == FailbackConfig("AfterStabilization", timedelta(minutes=30))
    assert not config.settings_of(KARMADA).taint_eviction
    assert config.settings_of(KARMADA).preemption
    assert config.settings_of(KARMADA).allow_no_execute_taint_policy
    assert config.settings_of(KRAKE).stickiness == 0.5
    assert (config.settings_of(KNATIVE).capacity, config.settings_of(KNATIVE).scale_up) == (10, "replace")
    assert config.workloads == (WorkloadKind("example.io/v1", "Widget", "spec.replicas", "spec.template"),)
    assert config.kinds == (KindScope("example.io/v1", "Tenant", namespaced=False),)
    assert config.assumed == (AssumedObject("StorageClass", "gp3", clusters=("aws-*",)), AssumedObject("Secret", namespace="shop"))
    assert config.reserve == ReserveConfig("zone", {"shop-*": "region"})
    assert config.guard.freeze == "a holiday"
    assert config.guard.limits["fleet"] == {
        "removed": 12.5,
        "moved": 30,
        "movedPerPeriod": 10,
        "replicasLost": 30,
        "replicasAdded": 400,
        "clustersUnready": 50,
    }
    assert config.guard.limits["namespace"] == {"removed": 50, "moved": 5, "movedPerPeriod": 25}
    assert (config.guard.period, config.guard.limits_evictions) == (timedelta(hours=1), True)
    assert all(getattr(config, name) != getattr(Config(), name) for name in Config._fields if name != "upstream_defaults")


@pytest.mark.parametrize(
    ("text", "seconds"), [(90, 90), (0.5, 0.5), ("60s", 60), ("90", 90), ("1m30s", 90), ("0.5h", 1800), ("500ms", 0.5)]
)
def test_seconds_are_a_number_or_a_duration(text: object, seconds: float) -> None:
    assert Draft202012Validator(SCHEMA["properties"]["spec"]).is_valid({"krake": {"rescheduleAfter": text}})
    config = parse_config({"krake": {"rescheduleAfter": text}, "observations": {"timeout": text if seconds <= 600 else 1}})
    assert config.settings_of(KRAKE).reschedule_after.total_seconds() == seconds
    assert config.observations.timeout == (seconds if seconds <= 600 else 1)


@each_row("text", ["", "soon", "1h 30m", "1:30", "-60s", "1d", "60 s", "999999999999h", True, [60]])
def test_other_durations_are_rejected(text: object) -> None:
    with pytest.raises(SettingError, match="rescheduleAfter"):
        parse_config({"krake": {"rescheduleAfter": text}})


def test_a_wrong_duration_is_reported_with_examples() -> None:
    body = {"apiVersion": "gitsched.io/v1alpha1", "kind": "Config", "metadata": {"name": "settings"}}
    (finding,) = gitsched.validate([{**body, "spec": {"krake": {"rescheduleAfter": "soon"}}}])
    assert (finding.code, '"soon"' in finding.message) == ("wrong-format", True)
    assert finding.message.endswith("write it like 60s or 1m30s")


def test_gitsched_schedule_has_the_defaults_of_the_upstream_schedulers() -> None:
    for spec in ({}, {"krake": None}, {"krake": {"stickiness": 0.2}}, {"krake": {"metricConstraints": None}}):
        assert parse_config(spec).settings_of(KRAKE).metric_constraints == "raw"
        assert parse_config(spec, upstream=True).settings_of(KRAKE).metric_constraints == "weighted"
    assert parse_config({"krake": {"metricConstraints": "raw"}}, upstream=True).settings_of(KRAKE).metric_constraints == "raw"
    assert "krake" not in parse_config({}, upstream=True).api_settings


def test_a_section_that_is_null_has_its_defaults() -> None:
    spec = dict.fromkeys(SCHEMA["properties"]["spec"]["properties"])
    assert list(Draft202012Validator(SCHEMA["properties"]["spec"]).iter_errors(spec)) == []
    assert parse_config(spec) == Config()


def test_unknown_settings_are_ignored() -> None:
    assert parse_config({"later": 1, "karmada": {"later": []}}) == Config()


@each_row(
    ("text", "place"),
    [
        ("source: []", "spec/source"),
        ("source: {paths: clusters}", "spec/source/paths"),
        ("source: {paths: [1]}", "spec/source/paths/0"),
        ("output: {branch: 1}", "spec/output/branch"),
        ("karmada: {failback: Sometimes}", "spec/karmada/failback"),
        ("karmada: {failover: true}", "spec/karmada/failover"),
        ("karmada: {failover: cluster, taintEviction: false}", "spec/karmada/failover"),
        ("output: {push: maybe}", "spec/output/push"),
        ("output: {path: ../x}", "spec/output/path"),
        ("output: {path: out/../../x}", "spec/output/path"),
        ("output: {path: out/.GIT/x}", "spec/output/path"),
        ('output: {path: "a\\0b"}', "spec/output/path"),
        ("output: {path: 'a\\b'}", "spec/output/path"),
        ("output: {retireAfter: 1 day}", "spec/output/retireAfter"),
        ("output: {retireAfter: 60}", "spec/output/retireAfter"),
        ("output: {signing: {format: x509, key: a}}", "spec/output/signing/format"),
        ("output: {signing: {format: ssh}}", "spec/output/signing/key"),
        ("delivery: {source: {url: 'https://bot:token@git.example.com/fleet.git'}}", "spec/delivery/source/url"),
        ("delivery: {source: {url: /srv/git/fleet.git}}", "spec/delivery/source/url"),
        ("delivery: {flux: {interval: 10 minutes}}", "spec/delivery/flux/interval"),
        ("delivery: {flux: {namespace: Flux}}", "spec/delivery/flux/namespace"),
        ("delivery: {clusterProfileNamespace: fleet.example}", "spec/delivery/clusterProfileNamespace"),
        ("delivery: {argocd: {destination: production}}", "spec/delivery/argocd/destination"),
        ("karmada: {missingFacts: guess}", "spec/karmada/missingFacts"),
        ("karmada: {preemption: 1}", "spec/karmada/preemption"),
        ("karmada: {failback: Always}", "spec/karmada/failback"),
        ("karmada: {failback: {}}", "spec/karmada/failback/AfterStabilization"),
        ("karmada: {failback: {AfterStabilization: soon}}", "spec/karmada/failback/AfterStabilization"),
        ("krake: {stickiness: -1}", "spec/krake/stickiness"),
        ("krake: {stickiness: .nan}", "spec/krake/stickiness"),
        ("krake: {rescheduleAfter: 1.0e+300}", "spec/krake/rescheduleAfter"),
        (f"krake: {{rescheduleAfter: {10**400}}}", "spec/krake/rescheduleAfter"),
        ("knative: {capacity: 0}", "spec/knative/capacity"),
        ("knative: {capacity: true}", "spec/knative/capacity"),
        ("knative: {policy: maxfillup}", "spec/knative/policy"),
        ("workloads: [{kind: Widget}]", "spec/workloads/0/apiVersion"),
        ("workloads: [Widget]", "spec/workloads/0"),
        ("kinds: [{apiVersion: example.io/v1, kind: Tenant}]", "spec/kinds/0/scope"),
        ("notifications: [me]", "spec/notifications/0"),
    ],
)
def test_an_invalid_setting_is_reported_with_its_path(text: str, place: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_config(yaml.safe_load(text))
    assert str(caught.value).startswith(f"{place}: must be ")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("", ""), (".", ""), ("/", ""), ("./fleet/", "fleet"), ("out//fleet", "out/fleet"), ("github", "github"), (".out", ".out")],
)
def test_the_output_path_is_normalised(written: str, meant: str) -> None:
    assert parse_config({"output": {"path": written}}).output.path == meant


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["24h", "ssh", "Never"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*yaml.safe_load(FULL), "key", "branch"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(yaml.safe_load(FULL))), anything, max_size=4))
def test_any_spec_parses_or_raises_a_setting_error(spec: dict[str, Any]) -> None:
    complaint = "spec/"
    try:
        parse_config(spec)
    except ValueError as mistake:
        complaint = str(mistake)
    assert complaint.startswith("spec/")


@given(st.dictionaries(st.sampled_from(sorted(yaml.safe_load(FULL))), anything, max_size=4))
def test_a_spec_that_the_schema_accepts_parses(spec: dict[str, Any]) -> None:
    finite = (
        json.loads(json.dumps(spec, allow_nan=False)) if "NaN" not in (text := json.dumps(spec)) and "Infinity" not in text else {}
    )
    if Draft202012Validator(SCHEMA["properties"]["spec"]).is_valid(finite):
        parse_config(finite)
