"""Validation of Krake documents beyond their JSON Schemas: names, labels, constraints, kubeconfigs, metrics providers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from gitsched.apis.krake.constraints import ConstraintError, parse_label_constraint, parse_metric_constraint
from gitsched.apis.krake.credentials import report_credentials
from gitsched.apis.krake.names import (
    APPLICATION,
    CLOUD,
    CLUSTER,
    GLOBAL_CLOUD,
    INFRASTRUCTURE,
    KEY_RULE,
    MAGNUM_CLUSTER,
    METRIC_KINDS,
    METRICS_PROVIDER_KINDS,
    NAME_RULE,
    PROJECT,
    VALUE_RULE,
    is_label_key,
    is_label_value,
    is_name,
)
from gitsched.apis.policy_api import DocumentValidator
from gitsched.model.document import Body, as_object, get_field, is_known_group, parse_api_group
from gitsched.model.finding import Issue, Pointer
from gitsched.model.urls import parse_http_url

_GLOBAL_KINDS = ("GlobalCloud", "GlobalInfrastructureProvider", "GlobalMetric", "GlobalMetricsProvider")
_PARSERS: Mapping[str, Callable[[str], object]] = {"labels": parse_label_constraint, "metrics": parse_metric_constraint}
_QUOTING_HINT = " (in a YAML flow sequence a comma ends the item: quote the constraint)"


def validate_metadata(body: Body) -> Iterator[Issue]:
    """Validate names and labels by Krake's rules, which differ from those of Kubernetes."""
    metadata = body["metadata"]
    for part in ("name", "namespace"):
        text = metadata.get(part)
        if text is not None and not is_name(text):
            yield _error(f"invalid-{part}", f"{text!r:.80} is not a valid {part}: {NAME_RULE}", "metadata", part)
    if metadata.get("namespace") and body["kind"] in _GLOBAL_KINDS:
        yield _error("invalid-namespace", f"a {body['kind']} is not namespaced: remove metadata.namespace", "metadata", "namespace")
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        yield _error("invalid-labels", "metadata.labels must be a mapping of strings", "metadata", "labels")
        return
    for key, value in labels.items():
        if not is_label_key(key):
            yield _error("invalid-labels", f"{key!r:.80} is not a valid label key: {KEY_RULE}", "metadata", "labels", key)
        elif not is_label_value(value):
            yield _error("invalid-labels", f"{value!r:.80} is not a valid label value: {VALUE_RULE}", "metadata", "labels", key)


def validate_application(body: Body) -> Iterator[Issue]:
    """Validate an Application."""
    yield from validate_metadata(body)
    spec = body["spec"]
    if not any(spec.get(part) for part in ("manifest", "tosca", "csar")):
        yield _error("missing-field", "one of manifest, tosca and csar is required", "spec")
    yield from _validate_constraints(spec, "cluster")
    yield from _validate_custom_resources(spec)


def validate_cluster(body: Body) -> Iterator[Issue]:
    """Validate a Cluster."""
    yield from validate_metadata(body)
    spec = body["spec"]
    kubeconfig, tosca = spec.get("kubeconfig"), spec.get("tosca")
    if not kubeconfig and not tosca:
        yield _error("missing-field", "one of kubeconfig and tosca is required", "spec")
    for part in ("clusters", "contexts", "users"):
        entries = kubeconfig.get(part) if kubeconfig else [{}]
        if not isinstance(entries, list) or len(entries) != 1:
            count = len(entries) if isinstance(entries, list) else "a value that is not a list"
            message = f"kubeconfig.{part} must have exactly one entry, found {count}"
            yield _error("krake-kubeconfig", message, "spec", "kubeconfig")
    if isinstance(tosca, dict) and tosca and get_field(tosca, "topology_template", "outputs", "kubeconfig") is None:
        message = "the TOSCA template must have topology_template.outputs.kubeconfig"
        yield _error("missing-field", message, "spec", "tosca")
    yield from _validate_constraints(spec, "cloud")


def validate_global_cloud(body: Body) -> Iterator[Issue]:
    """Validate a GlobalCloud, which is not namespaced and cannot refer to namespaced resources."""
    yield from validate_metadata(body)
    yield from _validate_type(body["spec"])
    openstack = body["spec"].get("openstack") or {}
    for index, metric in enumerate(openstack.get("metrics") or ()):
        if metric.get("namespaced"):
            message = "a GlobalCloud cannot refer to a metric in a namespace"
            yield _error("krake-global-reference", message, "spec", "openstack", "metrics", index, "namespaced")
    if get_field(openstack, "infrastructure_provider", "namespaced"):
        message = "a GlobalCloud cannot refer to an infrastructure provider in a namespace"
        yield _error("krake-global-reference", message, "spec", "openstack", "infrastructure_provider", "namespaced")


def validate_magnum_cluster(body: Body) -> Iterator[Issue]:
    """Validate a MagnumCluster."""
    yield from validate_metadata(body)
    yield from _validate_constraints(body["spec"], "project", ("labels",))
    for part, wanted in (get_field(body, "spec", "constraints", "project") or {}).items():
        if part != "labels" and wanted:
            message = f"{part} have no effect here: of a project, only constraints on labels count"
            yield Issue("warning", "krake-project-constraint", message, ("spec", "constraints", "project", part))


def validate_metric(body: Body) -> Iterator[Issue]:
    """Validate a Metric or GlobalMetric."""
    yield from validate_metadata(body)
    minimum, maximum = body["spec"]["min"], body["spec"]["max"]
    if minimum >= maximum:
        message = f"min must be less than max: min is {minimum}, max is {maximum}, so every value is rejected"
        yield Issue("warning", "krake-metric-range", message, ("spec", "min"))


def validate_provider(body: Body) -> Iterator[Issue]:
    """Validate a Cloud, InfrastructureProvider or GlobalInfrastructureProvider."""
    yield from validate_metadata(body)
    yield from _validate_type(body["spec"])


def validate_metrics_provider(body: Body) -> Iterator[Issue]:
    """Validate a MetricsProvider or GlobalMetricsProvider: its type's settings and its URL."""
    yield from validate_provider(body)
    kind = body["spec"]["type"]
    settings = as_object(body["spec"].get(kind))
    url = settings.get("url")
    # Messages never quote the URL, because it may contain a password.
    if isinstance(url, str) and parse_http_url(url) is None:
        yield Issue(
            "warning",
            "krake-provider-url",
            "the url is not an http or https URL, so the provider cannot be queried",
            ("spec", kind, "url"),
        )
    if {"env", "file"} <= as_object(settings.get("tokenFrom")).keys():
        message = "tokenFrom has both env and file: the variable is used and the file is ignored"
        yield Issue("warning", "krake-token-twice", message, ("spec", kind, "tokenFrom"))


def _validate_type(spec: Body) -> Iterator[Issue]:
    kind = spec["type"]
    if not isinstance(spec.get(kind), dict):
        yield _error("missing-field", f"the type is {kind}, so spec.{kind} is required", "spec")


def _validate_constraints(spec: Body, target: str, parts: Iterable[str] = tuple(_PARSERS)) -> Iterator[Issue]:
    constraints = (spec.get("constraints") or {}).get(target) or {}
    for part in parts:
        for index, text in enumerate(constraints.get(part) or ()):
            pointer: Pointer = ("spec", "constraints", target, part, index)
            try:
                constraint: Any = _PARSERS[part](text)
            except ConstraintError as error:
                hint = _QUOTING_HINT if isinstance(text, str) and text.count("(") != text.count(")") else ""
                yield Issue("error", f"krake-{part[:-1]}-constraint", f"{text!r:.100} {error}{hint}", pointer)
                continue
            if part == "metrics" and constraint.bound is None:
                message = f"{constraint.values[0]!r:.80} is not a number, so no value satisfies this constraint"
                yield Issue("warning", "krake-constraint-number", message, pointer)
            elif part == "metrics" and not math.isfinite(constraint.bound):
                which = "every" if constraint.match({constraint.key: 0.0}) else "no"
                message = f"{constraint.values[0]!r:.80} is no finite number, so {which} value satisfies this constraint"
                yield Issue("warning", "krake-constraint-number", message, pointer)


def _validate_custom_resources(spec: Body) -> Iterator[Issue]:
    """Report objects of custom resources that no constraint requires of the cluster, one for each kind."""
    manifest = [as_object(entry) for entry in spec.get("manifest") or ()]
    required = get_field(spec, "constraints", "cluster", "custom_resources") or ()
    # A custom resource is named <plural>.<group>. An Application may also bring the definition itself.
    available = {str(name).partition(".")[2] for name in required}
    available |= {str(get_field(body, "spec", "group")) for body in manifest if body.get("kind") == "CustomResourceDefinition"}
    reported = set()
    for index, body in enumerate(manifest):
        group, kind = parse_api_group(str(body.get("apiVersion"))), str(body.get("kind"))
        if is_known_group(group) or group in available or (group, kind) in reported:
            continue
        reported.add((group, kind))
        message = (
            f"no constraint requires the custom resource of {kind:.80}, so the Application may be scheduled to a cluster without it: add "
            f"its name, <plural>.{group:.80}, to spec.constraints.cluster.custom_resources, and to spec.custom_resources of the clusters"
        )
        yield Issue("warning", "krake-custom-resource", message, ("spec", "manifest", index, "kind"))


def _error(code: str, message: str, *pointer: str | int) -> Issue:
    return Issue("error", code, message, pointer)


def _validate(validate: DocumentValidator, body: Body) -> Iterator[Issue]:
    """Validate a document by the rules of its kind, and report the credentials that it contains."""
    yield from validate(body)
    yield from report_credentials(body)


_RULES: Mapping[tuple[str, str], DocumentValidator] = {
    APPLICATION: validate_application,
    CLUSTER: validate_cluster,
    CLOUD: validate_provider,
    GLOBAL_CLOUD: validate_global_cloud,
    MAGNUM_CLUSTER: validate_magnum_cluster,
    PROJECT: validate_metadata,
    **dict.fromkeys(METRIC_KINDS, validate_metric),
    **dict.fromkeys(METRICS_PROVIDER_KINDS, validate_metrics_provider),
    (INFRASTRUCTURE, "InfrastructureProvider"): validate_provider,
    (INFRASTRUCTURE, "GlobalInfrastructureProvider"): validate_provider,
}
VALIDATORS: Mapping[tuple[str, str], DocumentValidator] = {kind: partial(_validate, rules) for kind, rules in _RULES.items()}


def find_validator(group: str, kind: str) -> DocumentValidator | None:
    """Return the validator of a kind."""
    return VALIDATORS.get((group, kind))
