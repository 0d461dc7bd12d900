"""A small Kubernetes API server over HTTP for a real kubectl: discovery, GET and merge PATCH of objects in memory, RBAC by verb."""

from __future__ import annotations

import copy
import json
import sys
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Body = dict[str, Any]
RESOURCES = {
    "sources.knative.dev/v1beta1": {"KafkaSource": ("kafkasources", ("status",))},
    "apps/v1": {"StatefulSet": ("statefulsets", ("status", "scale")), "Deployment": ("deployments", ("status", "scale"))},
}


def merge(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a client that closes the connection; clients do so when an answer is too long."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ApiServer:
    """`objects` by "resource/namespace/name". `denied` are "verb resource" pairs that RBAC denies. `failures` are HTTP codes with which the
    next requests for objects are answered. `requests` are the requests for objects, as "VERB path" without the prefix of the API."""

    def __init__(self) -> None:
        self.objects: dict[str, Body] = {}
        self.denied: set[str] = set()
        self.failures: list[int] = []
        self.requests: list[str] = []
        self.managers: set[str] = set()
        self._server = _Server(("127.0.0.1", 0), _make_handler(self))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def add(self, *bodies: Body) -> None:
        """Store objects; their kinds must be in RESOURCES."""
        for body in bodies:
            resource = RESOURCES[body["apiVersion"]][body["kind"]][0]
            self.objects[f"{resource}/{body['metadata']['namespace']}/{body['metadata']['name']}"] = copy.deepcopy(body)

    def placements(self, name: str, namespace: str = "shop") -> list[Body] | None:
        found: list[Body] | None = self.objects[f"kafkasources/{namespace}/{name}"].get("status", {}).get("placements")
        return found

    def patched(self) -> list[str]:
        """Return the paths that were patched, in order."""
        return [request.removeprefix("PATCH ") for request in self.requests if request.startswith("PATCH ")]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def write_kubeconfig(self, path: Path) -> Path:
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
                    "users": [{"name": "fake", "user": {"token": "t"}}],
                    "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
                    "current-context": "fake",
                }
            )
        )
        return path

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, verb: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        """Return the code and the body of an answer; bytes are sent as they are."""
        parts = [part for part in path.split("/") if part]
        if parts == ["api"]:
            return 200, {"kind": "APIVersions", "versions": ["v1"]}
        if parts == ["api", "v1"]:
            return 200, _list_resources("v1", {})
        if parts == ["apis"]:
            return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(map(_make_group, RESOURCES))}
        if len(parts) == 3 and parts[0] == "apis":
            version = "/".join(parts[1:])
            return (200, _list_resources(version, RESOURCES[version])) if version in RESOURCES else _fail(404, "NotFound", path)
        if len(parts) < 7 or parts[3] != "namespaces":
            return _fail(404, "NotFound", path)
        return self._answer_object(verb, parts[4:], query, body)

    def _answer_object(self, verb: str, parts: list[str], query: dict[str, list[str]], body: Any) -> tuple[int, Body]:
        namespace, resource, name, *subresource = parts
        path = "/".join((resource, namespace, name, *subresource))
        self.requests.append(f"{verb} {path}")
        what = "/".join((resource, *subresource))
        if f"{verb.lower()} {what}" in self.denied:
            return _fail(403, "Forbidden", f"{what} is forbidden: User cannot {verb.lower()}")
        if self.failures:
            return _fail(self.failures.pop(0), "ServiceUnavailable", "overloaded")
        key = f"{resource}/{namespace}/{name}"
        found = self.objects.get(key)
        if found is None:
            return _fail(404, "NotFound", f'{resource} "{name}" not found')
        if verb == "PATCH":
            merged = merge(found, body)
            if subresource == ["status"]:
                merged = {**found, "status": merged.get("status", {})}
            self.managers |= set(query.get("fieldManager", []))
            if "dryRun" not in query:
                self.objects[key] = merged
            return 200, merged
        return 200, found


def _make_group(version: str) -> Body:
    group, name = version.split("/")
    entry = {"groupVersion": version, "version": name}
    return {"name": group, "versions": [entry], "preferredVersion": entry}


def _list_resources(version: str, kinds: dict[str, tuple[str, Iterable[str]]]) -> Body:
    resources = []
    for kind, (plural, subresources) in kinds.items():
        entry = {"singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": ["get", "list", "patch"]}
        resources.append({"name": plural, **entry})
        resources += [{"name": f"{plural}/{subresource}", **entry, "singularName": ""} for subresource in subresources]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _fail(code: int, reason: str, message: str) -> tuple[int, Body]:
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code}


def _make_handler(server: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            address = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            code, answer = server.answer(self.command, address.path, parse_qs(address.query), body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PATCH = _serve

        def log_message(self, *_: object) -> None:
            pass

    return Handler
