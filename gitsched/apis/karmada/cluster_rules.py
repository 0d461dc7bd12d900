"""What Karmada's aggregated API server demands of a Cluster beyond its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitsched.apis.karmada.label_rules import error, judge_annotations, judge_label_key, judge_label_value, judge_labels
from gitsched.model.document import Body
from gitsched.model.issue import Issue
from gitsched.model.quantity import parse_quantity
from gitsched.model.time import parse_time

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_NAME_LENGTH = 48  # Karmada makes a namespace of the name, with a prefix
_URL = re.compile(r"(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.ASCII | re.DOTALL)
_HOST = re.compile(
    r"(?:[^\s\x00-\x20\x7f\"<>\[\]^`{}|\\%:]|%[0-9A-Fa-f]{2})*(?::\d*)?|\[[0-9A-Fa-f:.]+(?:%25[^\]\s]*)?\](?::\d*)?", re.ASCII
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPES = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")
_PROXIES = ("http", "https", "socks5")


def judge_cluster(body: Body) -> Iterator[Issue]:
    spec = body["spec"]
    yield from _judge_metadata(body["metadata"])
    if endpoint := spec.get("apiEndpoint"):
        yield from _judge_endpoint(endpoint)
    if proxy := spec.get("proxyURL"):
        yield from _judge_proxy(proxy)
    yield from _judge_places(spec)
    yield from _judge_taints(spec.get("taints", []))
    yield from _judge_models(spec.get("resourceModels", []))


def _judge_metadata(metadata: Body) -> Iterator[Issue]:
    name = metadata["name"]
    if len(name) > _NAME_LENGTH:
        message = f"the name of a Cluster must be no more than {_NAME_LENGTH} characters"
        yield error("karmada-cluster-name", message, "metadata", "name")
    elif not _NAME.fullmatch(name):
        message = f"{name!r} must consist of lower case letters, digits and '-', and begin and end with a letter or digit"
        yield error("karmada-cluster-name", message, "metadata", "name")
    if "namespace" in metadata:
        yield error("karmada-cluster-namespace", "a Cluster is in no namespace", "metadata", "namespace")
    yield from judge_labels(metadata.get("labels", {}), ("metadata", "labels"), "karmada-cluster-label")
    yield from judge_annotations(metadata.get("annotations", {}), ("metadata", "annotations"), "karmada-cluster-annotation")


def _judge_endpoint(text: str) -> Iterator[Issue]:
    at = ("spec", "apiEndpoint")
    url = _split_url(text)
    if url is None:
        yield error("karmada-cluster-endpoint", "apiEndpoint must be a valid URL", *at)
        return
    _, authority, query, fragment = url
    user, _, host = authority.rpartition("@")
    if not host:
        yield error("karmada-cluster-endpoint", "apiEndpoint: a host must be provided, as in https://host:port", *at)
    if user or authority.startswith("@"):
        yield error("karmada-cluster-endpoint", "apiEndpoint: user information is not permitted in the URL", *at)
    if query:
        yield error("karmada-cluster-endpoint", "apiEndpoint: query parameters are not permitted in the URL", *at)
    if fragment:
        yield error("karmada-cluster-endpoint", "apiEndpoint: fragments are not permitted in the URL", *at)


def _judge_proxy(text: str) -> Iterator[Issue]:
    url = _split_url(text)
    if url is None:
        yield error("karmada-cluster-proxy", "proxyURL must be a valid URL", "spec", "proxyURL")
    elif url[0] not in _PROXIES:
        message = f"proxyURL: unsupported scheme {url[0]!r}, must be http, https or socks5"
        yield error("karmada-cluster-proxy", message, "spec", "proxyURL")


def _split_url(text: str) -> tuple[str, str, str, str] | None:
    """Scheme, authority, query and fragment, or None where Go's net/url reports an error."""
    match = _URL.fullmatch(text)
    if match is None or _CONTROL.search(text):
        return None
    scheme, authority, path, query, fragment = (part or "" for part in match.groups())
    host = authority.rpartition("@")[2]
    if not _HOST.fullmatch(host) or not _ESCAPES.fullmatch(path) or not _ESCAPES.fullmatch(fragment):
        return None
    if not scheme and not authority and (text.startswith(":") or ":" in path.partition("/")[0]):
        return None  # "1.2.3.4:6443": what is before the colon is no scheme
    return scheme.lower(), authority, query, fragment


def _judge_places(spec: Body) -> Iterator[Issue]:
    for name in ("provider", "region"):
        yield from judge_label_value(spec.get(name, ""), ("spec", name), "karmada-cluster-field")
    if spec.get("zone") and spec.get("zones"):
        yield error("karmada-cluster-zones", "zone and zones cannot co-exist", "spec", "zone")
        return
    for index, zone in enumerate(spec.get("zones", [])):
        yield from judge_label_value(zone, ("spec", "zones", index), "karmada-cluster-field")


def _judge_taints(taints: list[Body]) -> Iterator[Issue]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = ("spec", "taints", index)
        key, effect = taint["key"], taint["effect"]
        yield from judge_label_key(key, (*at, "key"), "karmada-taint-key")
        yield from judge_label_value(taint.get("value", ""), (*at, "value"), "karmada-taint-value")
        if "timeAdded" in taint and parse_time(taint["timeAdded"]) is None:
            message = f"timeAdded {taint['timeAdded']!r} is no RFC 3339 time such as 2026-01-12T09:00:00Z"
            yield error("karmada-taint-time", message, *at, "timeAdded")
        if (key, effect) in seen:
            yield error("karmada-taint-duplicate", f"taints must be unique by key and effect: {key}:{effect}", *at)
        seen.add((key, effect))


def _judge_models(models: list[Body]) -> Iterator[Issue]:
    """The first mistake only: what follows from it would tell nothing new. The models are in order of their grades."""
    at = ("spec", "resourceModels")
    before: Body | None = None
    for model in models:
        ranges = model["ranges"]
        if before is not None:
            if before["grade"] == model["grade"]:
                yield error("karmada-resource-models", f"grade {model['grade']} is there twice", *at)
                return
            if [entry["name"] for entry in before["ranges"]] != [entry["name"] for entry in ranges]:
                message = f"grade {model['grade']} must list the same resources as the grade before, in the same order"
                yield error("karmada-resource-models", message, *at)
                return
        for index, entry in enumerate(ranges):
            least, most = parse_quantity(entry["min"]), parse_quantity(entry["max"])
            if least is None or most is None or most.nano <= least.nano:
                message = "max must be greater than min"
            # Karmada compares the text here, so 1Gi does not continue 1024Mi.
            elif before is not None and str(before["ranges"][index]["max"]) != str(entry["min"]):
                message = "min must be the max of the grade before, written the same way: intervals are contiguous"
            else:
                continue
            yield error("karmada-resource-models", f"grade {model['grade']}, {entry['name']}: {message}", *at)
            return
        before = model
