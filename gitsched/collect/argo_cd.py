"""The cluster Secrets of Argo CD: names and labels of clusters, and credentials to observe them, which no output contains."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from gitsched.collect.sources import CLUSTER_NAME, MAX_CLUSTERS, ClusterTarget, FoundClusters
from gitsched.kubectl.client import KubectlOptions
from gitsched.kubectl.proxy import ClusterReader
from gitsched.model.allow_list import is_loopback_host
from gitsched.model.cluster_facts import ClusterFacts, CollectedCluster
from gitsched.model.document import Body, as_object, as_string_map, get_field
from gitsched.model.urls import parse_http_url

NAMESPACE: Final = "argocd"
_TYPE_LABEL: Final = "argocd.argoproj.io/secret-type"
_OWN_SERVER: Final = "https://kubernetes.default.svc"
_MAX_VALUE: Final = 1 << 20
_USER = "argocd"


class UnusableSecretError(ValueError):
    """Why the credentials of a Secret are not used. The message contains no value of the Secret."""


def read_secrets(reader: ClusterReader, origin: str, observed: datetime) -> FoundClusters:
    """Return the clusters of Argo CD in its namespace."""
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    targets: dict[str, ClusterTarget] = {}
    notes: list[str] = []
    for secret in reader.list_objects(path, limit=MAX_CLUSTERS, labelSelector=f"{_TYPE_LABEL}=cluster"):
        labels = as_string_map(get_field(secret, "metadata", "labels"))
        if labels.get(_TYPE_LABEL) != "cluster":
            continue
        where = str(get_field(secret, "metadata", "name") or "")[:253]
        try:
            name = _read_value(secret, "name")
            if not CLUSTER_NAME.fullmatch(name):
                raise UnusableSecretError("its name is no name of a cluster, such as dub-1")
            if name in targets:
                raise UnusableSecretError("another Secret has the same name of a cluster")
            facts = ClusterFacts(name, observed)
            own = CollectedCluster(facts, {key: value for key, value in labels.items() if key != _TYPE_LABEL})
            target = ClusterTarget(name, origin, reader.options, own)
            server = _read_value(secret, "server").rstrip("/")
            if server != _OWN_SERVER:
                config = make_kubeconfig(server, _parse_config(_read_value(secret, "config")))
                target = target._replace(options=_strip(reader.options), kubeconfig=config)
            targets[name] = target
        except UnusableSecretError as error:
            notes.append(f"the Secret {where} of {origin} is left out: {error}")
    return FoundClusters((), tuple(targets.values()), tuple(notes))


def _strip(options: KubectlOptions) -> KubectlOptions:
    return options._replace(context="", kubeconfig="")


def _read_value(secret: Body, key: str) -> str:
    """Return a decoded value of a Secret."""
    text = get_field(secret, "data", key)
    if not isinstance(text, str) or len(text) > _MAX_VALUE:
        raise UnusableSecretError(f"it has no value {key}, or one that is too long")
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        raise UnusableSecretError(f"its value {key} is no text in base64") from None  # the cause contains the value


def _parse_config(text: str) -> Mapping[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        raise UnusableSecretError("its value config is no JSON") from None
    if not isinstance(config, dict):
        raise UnusableSecretError("its value config is no JSON object")
    return config


def make_kubeconfig(server: str, config: Mapping[str, Any]) -> str:
    """Return a kubeconfig with the credentials of a Secret. A program that it names is not run: who may write the Secret chooses it.

    Raises UnusableSecretError. Source of the members: argo-cd/pkg/apis/application/v1alpha1, ClusterConfig.
    """
    url = parse_http_url(server)
    if url is None or url.username or (url.scheme != "https" and not is_loopback_host(url.hostname or "")):
        raise UnusableSecretError("its server is no https URL")
    for member in ("execProviderConfig", "awsAuthConfig"):
        if config.get(member):
            raise UnusableSecretError(
                f"it has {member}, and programs that a Secret names are not run: observe the cluster by --context"
            )
    tls = as_object(config.get("tlsClientConfig"))
    cluster = {
        "server": server,
        "insecure-skip-tls-verify": True if tls.get("insecure") is True else None,
        "certificate-authority-data": tls.get("caData"),
        "tls-server-name": tls.get("serverName"),
    }
    user = {
        "token": config.get("bearerToken"),
        "username": config.get("username"),
        "password": config.get("password"),
        "client-certificate-data": tls.get("certData"),
        "client-key-data": tls.get("keyData"),
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _USER, "cluster": _keep_set(cluster)}],
            "users": [{"name": _USER, "user": _keep_set(user)}],
            "contexts": [{"name": _USER, "context": {"cluster": _USER, "user": _USER}}],
            "current-context": _USER,
        }
    )


def _keep_set(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is True or (isinstance(value, str) and value)}
