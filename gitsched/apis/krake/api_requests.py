"""Bindings as requests to Krake's API, or to Magnum's API, which create the clusters.

Paths and bodies as in upstream's krake/api/kubernetes.py, krake/api/openstack.py and krake/data/infrastructure.py. Applications are not
exported: their manifests are delivered from the output branch, and Krake would deliver them a second time.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.export import ExportInput, ExportResult
from gitsched.apis.krake.names import CLUSTER, MAGNUM_CLUSTER, PROJECT, ResourceRef, make_ref, read_ref
from gitsched.apis.krake.pending_clusters import PendingCluster, find_pending_cluster, has_binding
from gitsched.model.document import Body, Document, Key, as_object, get_field, read_labels
from gitsched.model.finding import Finding, locate_document
from gitsched.model.urls import parse_http_url
from gitsched.named_tuples import NamedTuple

KRAKE_VARIABLE, MAGNUM_VARIABLE = "KRAKE_API", "OS_AUTH_URL"
_PLURALS = {CLUSTER: "clusters", MAGNUM_CLUSTER: "magnumclusters"}


class ApiRequest(NamedTuple):
    """An HTTP request with a JSON body. It is sent only if a GET of `unless` fails, except if that is ""."""

    method: str
    path: str
    body: Body
    unless: str = ""


def make_export(found: ExportInput) -> ExportResult:
    """Return the requests to the API in the option `for`, as shell commands and as a RequestList."""
    projects = {make_ref(document.key): document.body for document in found.documents.get(PROJECT, ())}
    every = list(_list_pending_clusters(found))
    findings = tuple(_list_findings(found, every, projects))
    pending = [one for one in every if _has_template(one, projects)]
    if found.options["for"] == "magnum":
        clusters = [one for one in pending if one.document.key.kind == "MagnumCluster"]
        text = "".join(_format_magnum_command(one, projects.get(one.target, {})) for one in clusters)
        requests = [_make_magnum_request(one, projects.get(one.target, {})) for one in clusters]
        return ExportResult(text, _make_request_list(requests), findings)
    records = dict(found.records)
    requests = [request for one in pending for request in _make_krake_requests(one, records.get(one.document.key, {}), projects)]
    return ExportResult(_format_curl_commands(requests), _make_request_list(requests), findings)


def _list_pending_clusters(found: ExportInput) -> Iterator[PendingCluster]:
    """Yield the bound clusters that do not exist, in the order of their keys, without those that Krake bound itself."""
    records = dict(found.records)
    for kind, name in ((CLUSTER, "scheduled_to"), (MAGNUM_CLUSTER, "project")):
        for document in found.documents.get(kind, ()):
            status = get_field(records.get(document.key, document.body), "status", name)  # a binding in a document needs no record
            pending = find_pending_cluster(document, read_ref(status))
            if pending is not None and not has_binding(pending):
                yield pending


def _has_template(pending: PendingCluster, projects: Mapping[ResourceRef, Body]) -> bool:
    """Return whether the project of a MagnumCluster names the template that the cluster is created from, and other values that
    fit into a command on one line; True for other kinds."""
    if pending.document.key.kind != "MagnumCluster":
        return True
    spec = as_object(projects.get(pending.target, {}).get("spec"))
    values = spec.get("template"), spec.get("url"), get_field(spec, "auth", "password", "project", "id")
    return bool(values[0]) and all(str(value).isprintable() and "##" not in str(value) for value in values)


def _list_findings(
    found: ExportInput, pending: Iterable[PendingCluster], projects: Mapping[ResourceRef, Body]
) -> Iterator[Finding]:
    """Yield the findings about clusters that cannot be exported."""
    documents = {document.key for document in found.documents.get(CLUSTER, ())}
    for key, record in found.records:
        if (key.group, key.kind) == CLUSTER and key not in documents and get_field(record, "spec", "auto_generated") is True:
            message = f"{key} is not exported: an Application requested it, and it has no TOSCA template; commit its record with spec.tosca"
            yield Finding("warning", "krake-not-exported", message, resource=key.resource)
    for one in pending:
        if not _has_template(one, projects):
            project = one.target.name
            message = (
                f"{one.document.key} is not exported: its Project {project} has no template, or a value with a line break or ##"
            )
            yield _warn_not_exported(one.document, message)
    if found.options["for"] == "magnum":
        for one in pending:
            if one.document.key.kind != "MagnumCluster":
                message = f"{one.document.key} is not exported: Magnum does not create clusters from TOSCA; use --for krake"
                yield _warn_not_exported(one.document, message)


def _warn_not_exported(document: Document, message: str) -> Finding:
    return Finding("warning", "krake-not-exported", message, locate_document(document), document.key.resource)


def _make_krake_requests(pending: PendingCluster, record: Body, projects: Mapping[ResourceRef, Body]) -> Iterator[ApiRequest]:
    """Yield the request that creates the object, unless it exists, and the one that binds it."""
    key = pending.document.key
    objects = f"/{key.group}/namespaces/{key.namespace}/{_PLURALS[key.group, key.kind]}"
    own = f"{objects}/{key.name}"
    if not get_field(pending.document.body, "metadata", "uid"):
        yield ApiRequest("POST", objects, _make_object(pending.document, record), unless=own)
    binding: Body
    if key.kind == "MagnumCluster":
        template = get_field(projects.get(pending.target, {}), "spec", "template")
        binding = {"api": key.group, "kind": "MagnumClusterBinding", "project": pending.target.body, "template": template}
    else:
        binding = {"api": pending.target.group, "kind": "CloudBinding", "cloud": pending.target.body}
    yield ApiRequest("PUT", f"{own}/binding", binding)


def _make_object(document: Document, record: Body) -> Body:
    """Return the object as a user would create it; a MagnumCluster with what it inherits from its project, as in its record."""
    key, spec = document.key, dict(document.body["spec"])
    labels = read_labels(document.body)
    if key.kind == "MagnumCluster":
        labels = read_labels(record) or labels
        spec["metrics"] = get_field(record, "spec", "metrics") or []
    elif not spec.get("kubeconfig"):
        spec.pop("kubeconfig", None)
    metadata: Body = {"name": key.name, "namespace": key.namespace, "labels": labels}
    if get_field(document.body, "metadata", "inherit_labels") is True:
        metadata["inherit_labels"] = True
    return {"api": key.group, "kind": key.kind, "metadata": metadata, "spec": spec}


def _format_curl_commands(requests: Iterable[ApiRequest]) -> str:
    """Return one line for each request, for a shell in which the variable KRAKE_API is the URL of Krake's API."""
    lines = []
    for request in requests:
        body = shlex.quote(_format_body(request.body))
        send = f"curl --silent --show-error --fail --output /dev/null --request {request.method} {_format_url(request.path)}"
        send += f" --header 'Content-Type: application/json' --data {body}"
        check = f"curl --silent --fail --output /dev/null {_format_url(request.unless)} || " if request.unless else ""
        lines.append(f"{check}{send}\n")
    return f"set -eu\n{''.join(lines)}" if lines else ""


def _format_body(body: Body) -> str:
    """Return JSON in which a CI runner finds no command, such as `##[group]`."""
    return json.dumps(body, separators=(",", ":")).replace("##", "\\u0023\\u0023")


def _format_url(path: str) -> str:
    return f'"${KRAKE_VARIABLE}"{shlex.quote(path)}'


def _make_magnum_request(pending: PendingCluster, project: Body) -> ApiRequest:
    spec = pending.document.body["spec"]
    body = {"name": _format_magnum_name(pending.document.key), "cluster_template_id": get_field(project, "spec", "template")}
    counts = {name: spec[name] for name in ("master_count", "node_count") if spec.get(name) is not None}
    return ApiRequest("POST", "/v1/clusters", {**body, **counts}, unless=f"/v1/clusters/{body['name']}")


def _format_magnum_command(pending: PendingCluster, project: Body) -> str:
    """Return the command that creates the cluster in its project, unless it exists. Credentials are in the shell's environment."""
    access = as_object(project.get("spec"))
    words = ["openstack"]
    url, identifier = access.get("url"), get_field(access, "auth", "password", "project", "id")
    words += [f"--os-auth-url={_remove_credentials(str(url))}"] if url else []
    words += [f"--os-project-id={identifier}"] if identifier else []
    body = _make_magnum_request(pending, project).body
    create = [*words, "coe", "cluster", "create", f"--cluster-template={body['cluster_template_id']}"]
    create += [f"--{name.replace('_', '-')}={body[name]}" for name in ("master_count", "node_count") if name in body]
    show = [*words, "coe", "cluster", "show", body["name"]]
    return f"{shlex.join(show)} >/dev/null 2>&1 || {shlex.join([*create, body['name']])}\n"


def _remove_credentials(url: str) -> str:
    """Return a URL without a user name and password: the command must not print what the environment has."""
    address = parse_http_url(url)
    return url if address is None else address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()


def _format_magnum_name(key: Key) -> str:
    """Return the name in Magnum, which has no namespaces."""
    return f"{key.namespace}-{key.name}"


def _make_request_list(requests: Iterable[ApiRequest]) -> Body:
    """Return the requests as a RequestList document."""
    return {
        "apiVersion": "gitsched.io/v1alpha1",
        "kind": "RequestList",
        "items": [request._asdict() for request in requests],
    }
