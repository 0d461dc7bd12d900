"""Validation of a Cluster, and of label keys, label values and annotations, as Karmada's aggregated API server does it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.apis.karmada.defaulting import DEFAULT_RESOURCE_MODELS
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.finding import Issue, Pointer
from gitsched.model.labels import is_label, is_label_key, is_label_value
from gitsched.model.quantity import MAX_AMOUNT, NANO, parse_quantity
from gitsched.model.time import parse_time

_LABEL_FORMAT = "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"


_MAX_ANNOTATIONS_SIZE = 256 * 1024


def make_error(code: str, message: str, *pointer: str | int) -> Issue:
    return Issue("error", code, message, pointer)


def validate_label_key(value: Any, at: Pointer, code: str) -> Iterator[Issue]:
    if not is_label_key(value):
        yield make_error(code, f"{value!r} is not a valid label key: {_LABEL_FORMAT}", *at)


def validate_label_value(value: Any, at: Pointer, code: str) -> Iterator[Issue]:
    if not is_label_value(value):
        yield make_error(code, f"{value!r} is not a valid label value: empty, or {_LABEL_FORMAT}", *at)


def validate_labels(labels: Mapping[str, str], at: Pointer, code: str) -> Iterator[Issue]:
    for key, value in labels.items():
        if not is_label(key, value):
            yield from validate_label_key(key, (*at, key), code)
            yield from validate_label_value(value, (*at, key), code)


def validate_annotations(annotations: Mapping[str, str], at: Pointer, code: str) -> Iterator[Issue]:
    """Validate annotations: keys in lower case are label keys, values are free, and their total size is limited."""
    for key in annotations:
        yield from validate_label_key(key.lower(), (*at, key), code)
    if sum(len(text.encode(errors="surrogatepass")) for entry in annotations.items() for text in entry) > _MAX_ANNOTATIONS_SIZE:
        yield make_error(code, f"annotations exceed the maximum of {_MAX_ANNOTATIONS_SIZE} bytes", *at)


_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


_MAX_NAME_LENGTH = 48  # Karmada creates a namespace named after the cluster, with a prefix


_URL = re.compile(r"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.ASCII | re.DOTALL)


_HOST = re.compile(
    r"(?:[^\s\x00-\x20\x7f\"<>\[\]^`{}|\\%:]|%[0-9A-Fa-f]{2})*(?::\d*)?|\[[0-9A-Fa-f:.]+(?:%25[^\]\s]*)?\](?::\d*)?", re.ASCII
)


_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")


_ESCAPES = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")


_PROXY_SCHEMES = ("http", "https", "socks5")


def validate_cluster(body: Body) -> Iterator[Issue]:
    spec = body["spec"]
    yield from _validate_metadata(body["metadata"])
    if endpoint := spec.get("apiEndpoint"):
        yield from _validate_api_endpoint(endpoint)
    if proxy := spec.get("proxyURL"):
        yield from _validate_proxy_url(proxy)
    yield from _validate_location(spec)
    if taints := spec.get("taints"):
        yield from validate_taints(taints)
    yield from _validate_resource_models(spec.get("resourceModels", []))
    yield from _validate_conditions(body)
    if body.get("status"):
        yield from _validate_summary(body)


_AMOUNTS = ("allocatable", "allocated", "allocating")


def _validate_summary(body: Body) -> Iterator[Issue]:
    """Yield a warning for each amount of resources that no cluster can have. It counts as it is written."""
    for member in _AMOUNTS:
        at = ("status", "resourceSummary", member)
        for resource, text in as_object(get_field(body, *at)).items():
            amount = parse_quantity(text)
            if amount is not None and not 0 <= amount.nano <= MAX_AMOUNT * NANO:
                what = "is negative" if amount.nano < 0 else f"exceeds {MAX_AMOUNT}, which is the largest one"
                yield Issue("warning", "karmada-summary-amount", f"the amount of {resource} {what}", (*at, resource))


_STATUSES = ("True", "False", "Unknown")


def _validate_conditions(body: Body) -> Iterator[Issue]:
    """Yield a warning for each condition whose status has no meaning, or is a boolean because its quotes are missing."""
    for index, condition in enumerate(list_objects(get_field(body, "status", "conditions"))):
        status = condition.get("status")
        if status not in _STATUSES:
            name = str(condition.get("type"))[:100]
            found = f"is {status!r:.100}" if "status" in condition else "is missing"
            wanted = f'write "{status}" with quotes' if isinstance(status, bool) else f"use one of {', '.join(_STATUSES)}"
            message = f"the status of the condition {name} {found}, which is no text that Kubernetes knows: {wanted}"
            yield Issue("warning", "condition-status", message, ("status", "conditions", index))


def _validate_metadata(metadata: Body) -> Iterator[Issue]:
    name = metadata["name"]
    if len(name) > _MAX_NAME_LENGTH:
        message = f"the name of a Cluster must be no more than {_MAX_NAME_LENGTH} characters"
        yield make_error("karmada-cluster-name", message, "metadata", "name")
    elif not _NAME.fullmatch(name):
        message = f"{name!r} must consist of lower case letters, digits and '-', and begin and end with a letter or digit"
        yield make_error("karmada-cluster-name", message, "metadata", "name")
    if "namespace" in metadata:
        yield make_error("karmada-cluster-namespace", "a Cluster is cluster-scoped: remove the namespace", "metadata", "namespace")
    if labels := metadata.get("labels"):
        yield from validate_labels(labels, ("metadata", "labels"), "karmada-cluster-label")
    if annotations := metadata.get("annotations"):
        yield from validate_annotations(annotations, ("metadata", "annotations"), "karmada-cluster-annotation")


def _validate_api_endpoint(text: str) -> Iterator[Issue]:
    if _PLAIN_ENDPOINT.fullmatch(text):
        return
    at = ("spec", "apiEndpoint")
    url = _split_url(text)
    if url is None:
        yield make_error("karmada-cluster-endpoint", "apiEndpoint must be a valid URL", *at)
        return
    _, authority, query, fragment = url
    user, _, host = authority.rpartition("@")
    if not host:
        yield make_error("karmada-cluster-endpoint", "apiEndpoint: a host must be provided, as in https://host:port", *at)
    if user or authority.startswith("@"):
        yield make_error("karmada-cluster-endpoint", "apiEndpoint: user information is not permitted in the URL", *at)
    if query:
        yield make_error("karmada-cluster-endpoint", "apiEndpoint: query parameters are not permitted in the URL", *at)
    if fragment:
        yield make_error("karmada-cluster-endpoint", "apiEndpoint: fragments are not permitted in the URL", *at)


def _validate_proxy_url(text: str) -> Iterator[Issue]:
    url = _split_url(text)
    if url is None:
        yield make_error("karmada-cluster-proxy", "proxyURL must be a valid URL", "spec", "proxyURL")
    elif url[0] not in _PROXY_SCHEMES:
        message = f"proxyURL: unsupported scheme {url[0]!r}, must be http, https or socks5"
        yield make_error("karmada-cluster-proxy", message, "spec", "proxyURL")


_PLAIN_ENDPOINT = re.compile(r"https?://[a-z0-9.-]+(:[0-9]+)?/?", re.ASCII)
"""The usual form of an endpoint, which has no part that could be wrong."""


def _split_url(text: str) -> tuple[str, str, str, str] | None:
    """Split a URL into scheme, authority, query and fragment; None if Go's net/url reports an error."""
    match = _URL.fullmatch(text)
    if match is None or _CONTROL_CHARACTERS.search(text):
        return None
    scheme, authority, path, query, fragment = (part or "" for part in match.groups())
    host = authority.rpartition("@")[2]
    if not _HOST.fullmatch(host) or not _ESCAPES.fullmatch(path) or not _ESCAPES.fullmatch(fragment):
        return None
    if not scheme and not authority and (text.startswith(":") or ":" in path.partition("/")[0]):
        return None  # "1.2.3.4:6443": the part before the colon is not a scheme
    return scheme.lower(), authority, query, fragment


def _validate_location(spec: Body) -> Iterator[Issue]:
    for name in ("provider", "region"):
        if name in spec and not is_label_value(spec[name]):
            yield from validate_label_value(spec[name], ("spec", name), "karmada-cluster-field")
    if spec.get("zone") and spec.get("zones"):
        yield make_error("karmada-cluster-zones", "zone and zones cannot co-exist", "spec", "zone")
        return
    for index, zone in enumerate(spec.get("zones", [])):
        if not is_label_value(zone):
            yield from validate_label_value(zone, ("spec", "zones", index), "karmada-cluster-field")


def validate_taints(taints: list[Body]) -> Iterator[Issue]:
    """Validate the taints of a Cluster, or of a ClusterTaintPolicy, which have no timeAdded."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = ("spec", "taints", index)
        key, effect = taint["key"], taint["effect"]
        yield from validate_label_key(key, (*at, "key"), "karmada-taint-key")
        yield from validate_label_value(taint.get("value", ""), (*at, "value"), "karmada-taint-value")
        if "timeAdded" in taint and parse_time(taint["timeAdded"]) is None:
            message = f"timeAdded {taint['timeAdded']!r} is not an RFC 3339 time such as 2026-01-12T09:00:00Z"
            yield make_error("karmada-taint-time", message, *at, "timeAdded")
        if (key, effect) in seen:
            yield make_error("karmada-taint-duplicate", f"taints must be unique by key and effect: {key}:{effect}", *at)
        seen.add((key, effect))


def _validate_resource_models(models: list[Body]) -> Iterator[Issue]:
    """Yield the first error only: later ones may follow from it. The models are sorted by grade; the default ones are valid."""
    if models == DEFAULT_RESOURCE_MODELS:
        return
    at = ("spec", "resourceModels")
    before: Body | None = None
    for model in models:
        ranges = model["ranges"]
        if before is not None:
            if before["grade"] == model["grade"]:
                yield make_error("karmada-resource-models", f"more than one model has grade {model['grade']}", *at)
                return
            if [entry["name"] for entry in before["ranges"]] != [entry["name"] for entry in ranges]:
                message = f"grade {model['grade']} must list the same resources as the grade before, in the same order"
                yield make_error("karmada-resource-models", message, *at)
                return
        for index, entry in enumerate(ranges):
            least, most = parse_quantity(entry["min"]), parse_quantity(entry["max"])
            if least is None or most is None or most.nano <= least.nano:
                message = "max must be greater than min"
            # Karmada compares the strings, so 1Gi does not continue 1024Mi.
            elif before is not None and str(before["ranges"][index]["max"]) != str(entry["min"]):
                message = "min must be the max of the grade before, written identically: intervals are contiguous"
            else:
                continue
            yield make_error("karmada-resource-models", f"grade {model['grade']}, {entry['name']}: {message}", *at)
            return
        before = model
