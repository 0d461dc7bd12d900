"""Settings among the documents of `gitsched.schedule`."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import gitsched

CONFIG = "{apiVersion: gitsched.io/v1alpha1, kind: Config, metadata: {name: %s}, spec: {karmada: {taintEviction: %s}}}"
DOWN = """
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: first}
spec: {syncMode: Push, taints: [{key: power, value: "off", effect: NoExecute}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 1}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web}
spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}
---
"""
PREVIOUS = """
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: web-deployment
  namespace: default
  annotations: {policy.karmada.io/applied-placement: "{}"}
spec: {clusters: [{name: first, replicas: 1}]}
status: {lastScheduledTime: "2026-01-01T00:00:00Z"}
"""


def schedule(*configs: str, **arguments: Any) -> tuple[bool, list[str]]:
    """Return whether the workload is evicted from its tainted cluster, and the codes of the findings about Configs."""
    bodies = [*yaml.safe_load_all(DOWN + "\n---\n".join(configs))]
    done = gitsched.schedule([body for body in bodies if body], previous=[yaml.safe_load(PREVIOUS)], **arguments)
    (binding,) = (body for body in done.documents if body["kind"] == "ResourceBinding")
    codes = [finding.code for finding in done.findings if finding.resource and finding.resource[0] == "Config"]
    return "gracefulEvictionTasks" in binding["spec"], codes


@pytest.mark.parametrize(
    ("configs", "config", "evicts", "codes"),
    [
        pytest.param([], None, True, [], id="none"),
        pytest.param([CONFIG % ("a", "false")], None, False, [], id="one"),
        pytest.param([CONFIG % ("a", "false"), CONFIG % ("b", "true")], None, False, ["stray-config"], id="two: the first"),
        pytest.param([CONFIG % ("a", "false")], {}, True, ["stray-config"], id="the argument takes precedence"),
        pytest.param([CONFIG % ("a", "perhaps")], None, True, ["wrong-type"], id="an invalid one"),
    ],
)
def test_a_config_among_the_documents_is_read_or_reported(
    configs: list[str], config: dict[str, Any] | None, evicts: bool, codes: list[str]
) -> None:
    assert schedule(*configs, config=config) == (evicts, codes)
