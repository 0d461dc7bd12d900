"""Validation of Krake documents beyond their JSON Schemas: names, labels, constraints, kubeconfigs, metrics providers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gitsched.apis.krake import names
from gitsched.apis.krake.constraints import ConstraintError, parse_label_constraint, parse_metric_constraint
from gitsched.model.document import Body, as_object, get_field
from gitsched.model.finding import Issue, Pointer
from gitsched.model.urls import parse_http_url

_GLOBAL_KINDS = ("GlobalCloud", "GlobalInfrastructureProvider", "GlobalMetric", "GlobalMetricsProvider")
_QUOTING_HINT = " (between brackets YAML ends it at a comma: quote it)"
DocumentValidator = Callable[[Body], Iterator[Issue]]


def validate_metadata(body: Body) -> Iterator[Issue]:
    """Names and labels, by Krake's rules and not by those of Kubernetes."""
    metadata = body["metadata"]
    for part in ("name", "namespace"):
        text = metadata.get(part)
        if text is not None and not names.is_name(text):
            yield _error(f"invalid-{part}", f"{text!r:.80} is no {part}: {names.NAME_RULE}", "metadata", part)
    if metadata.get("namespace") and body["kind"] in _GLOBAL_KINDS:
        yield _error("invalid-namespace", f"a {body['kind']} is in no namespace", "metadata", "namespace")
    labels = metadata.get("labels") or {}
    if not isinstance(labels, dict):
        yield _error("invalid-labels", "metadata.labels must be a mapping of strings", "metadata", "labels")
        return
    for key, value in labels.items():
        if not names.is_label_key(key):
            yield _error("invalid-labels", f"{key!r:.80} cannot be a label: {names.KEY_RULE}", "metadata", "labels", key)
        elif not names.is_label_value(value):
            yield _error(
                "invalid-labels", f"{value!r:.80} cannot be a label's value: {names.VALUE_RULE}", "metadata", "labels", key
            )


def validate_application(body: Body) -> Iterator[Issue]:
    """An Application."""
    yield from validate_metadata(body)
    spec = body["spec"]
    if not any(spec.get(part) for part in ("manifest", "tosca", "csar")):
        yield _error("missing-field", "one of manifest, tosca and csar must say what the application is", "spec")
    yield from _validate_constraints(spec, "cluster")


def validate_cluster(body: Body) -> Iterator[Issue]:
    """A Cluster."""
    yield from validate_metadata(body)
    spec = body["spec"]
    kubeconfig, tosca = spec.get("kubeconfig"), spec.get("tosca")
    if not kubeconfig and not tosca:
        yield _error("missing-field", "one of kubeconfig and tosca must say what the cluster is", "spec")
    for part in ("clusters", "contexts", "users"):
        entries = kubeconfig.get(part) if kubeconfig else [{}]
        if not isinstance(entries, list) or len(entries) != 1:
            count = len(entries) if isinstance(entries, list) else "something else"
            message = f"a kubeconfig has exactly one of its {part} here, not {count}"
            yield _error("krake-kubeconfig", message, "spec", "kubeconfig")
    if isinstance(tosca, dict) and tosca and get_field(tosca, "topology_template", "outputs", "kubeconfig") is None:
        message = "the TOSCA template must have topology_template.outputs.kubeconfig"
        yield _error("missing-field", message, "spec", "tosca")
    yield from _validate_constraints(spec, "cloud")


def validate_global_cloud(body: Body) -> Iterator[Issue]:
    """A GlobalCloud, which is in no namespace and so cannot refer into one."""
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
    """A MagnumCluster."""
    yield from validate_metadata(body)
    yield from _validate_constraints(body["spec"], "project")


def validate_metric(body: Body) -> Iterator[Issue]:
    """A Metric or GlobalMetric."""
    yield from validate_metadata(body)
    least, most = body["spec"]["min"], body["spec"]["max"]
    if least >= most:
        message = f"min is {least} and max is {most}: no value can be used"
        yield Issue("warning", "krake-metric-range", message, ("spec", "min"))


def validate_provider(body: Body) -> Iterator[Issue]:
    """A Cloud, InfrastructureProvider or GlobalInfrastructureProvider: what its type needs is there."""
    yield from validate_metadata(body)
    yield from _validate_type(body["spec"])


def validate_metrics_provider(body: Body) -> Iterator[Issue]:
    """A MetricsProvider or GlobalMetricsProvider: what its type needs is there, and it can be asked."""
    yield from validate_provider(body)
    kind = body["spec"]["type"]
    said = as_object(body["spec"].get(kind))
    url, address = said.get("url"), parse_http_url(str(said.get("url")))
    # What may hold a password is never told as it stands.
    if isinstance(url, str) and address is None:
        yield Issue(
            "warning", "krake-provider-url", "the url is no http or https URL: nobody can be asked there", ("spec", kind, "url")
        )
    secrets = {"url": address.password if address else None, "token": said.get("token")}
    for name in (name for name, secret in secrets.items() if secret):
        message = f"everybody who can read this repository can use the secret in {name}; with tokenFrom it stays with the operator"
        yield Issue("info", "krake-secret-in-git", message, ("spec", kind, name))
    if {"env", "file"} <= as_object(said.get("tokenFrom")).keys():
        message = "tokenFrom has both env and file: the variable counts, the file is never read"
        yield Issue("warning", "krake-token-twice", message, ("spec", kind, "tokenFrom"))


def _validate_type(spec: Body) -> Iterator[Issue]:
    kind = spec["type"]
    if not isinstance(spec.get(kind), dict):
        yield _error("missing-field", f"the type is {kind}, so {kind} must say the rest", "spec")


def _validate_constraints(spec: Body, target: str) -> Iterator[Issue]:
    wanted = (spec.get("constraints") or {}).get(target) or {}
    for part, parse in (("labels", parse_label_constraint), ("metrics", parse_metric_constraint)):
        for index, text in enumerate(wanted.get(part) or ()):
            at: Pointer = ("spec", "constraints", target, part, index)
            try:
                constraint: Any = parse(text)
            except ConstraintError as error:
                hint = _QUOTING_HINT if isinstance(text, str) and text.count("(") != text.count(")") else ""
                yield Issue("error", f"krake-{part[:-1]}-constraint", f"{text!r:.100} {error}{hint}", at)
                continue
            if part == "metrics" and constraint.bound is None:
                message = f"{constraint.values[0]!r:.80} is no number: nothing satisfies this constraint"
                yield Issue("warning", "krake-constraint-number", message, at)


def _error(code: str, message: str, *pointer: str | int) -> Issue:
    return Issue("error", code, message, pointer)


VALIDATORS: Mapping[tuple[str, str], DocumentValidator] = {
    names.APPLICATION: validate_application,
    names.CLUSTER: validate_cluster,
    names.CLOUD: validate_provider,
    names.GLOBAL_CLOUD: validate_global_cloud,
    names.MAGNUM_CLUSTER: validate_magnum_cluster,
    names.PROJECT: validate_metadata,
    **dict.fromkeys(names.METRIC_KINDS, validate_metric),
    **dict.fromkeys(names.METRICS_PROVIDER_KINDS, validate_metrics_provider),
    (names.INFRASTRUCTURE, "InfrastructureProvider"): validate_provider,
    (names.INFRASTRUCTURE, "GlobalInfrastructureProvider"): validate_provider,
}
