"""An API server for kubectl: discovery, lists, create, apply and delete of objects, and the subresource `status`.

As for a CustomResourceDefinition with `subresources: {status: {}}`, a status in a request for the object is dropped, and a request
for the status changes nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess
from http.server import BaseHTTPRequestHandler
from typing import Any

import yaml

from tests.local import LocalServer

Body = dict[str, Any]
KINDS = {
    "v1": ["ConfigMap"],
    "rbac.authorization.k8s.io/v1": ["Role", "RoleBinding"],
    "cluster.open-cluster-management.io/v1beta1": ["Placement", "PlacementDecision"],
    "work.open-cluster-management.io/v1alpha1": ["ManifestWorkReplicaSet"],
    "work.open-cluster-management.io/v1": ["ManifestWork"],
    "argoproj.io/v1alpha1": ["ApplicationSet"],
}
PATH = re.compile(
    r"/apis?/(?P<version>[^/]+(?:/v[^/]+)?)/namespaces/(?P<namespace>[^/]+)/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+)(?P<status>/status)?)?"
)


class ApiServer(LocalServer):
    """`objects` are the stored objects by kind, namespace and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Body] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def respond(self) -> None:
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                found = outer.respond(self.command, self.path.partition("?")[0], text, self.headers.get("Content-Type", ""))
                self.send_response(200 if found is not None else 404)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
                self.wfile.write(json.dumps(missing if found is None else found).encode())

            do_GET = do_POST = do_PATCH = do_DELETE = respond

            def log_message(self, *_: Any) -> None: ...

        super().__init__(Handler)

    def kubectl(self, *words: str, text: str) -> str:
        """Run kubectl with `text` on stdin and return what it prints."""
        command = ["kubectl", "--server", self.url, *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def respond(self, method: str, path: str, text: str, media: str) -> Body | None:
        """Return the response to a request; None for 404."""
        found = PATH.fullmatch(path)
        if found is None:
            return self.discover(path)
        kind = next(kind for kind in KINDS[found["version"]] if f"{kind.lower()}s" == found["plural"])
        if method == "GET" and not found["name"]:
            items = [body for key, body in self.objects.items() if key[:2] == (kind, found["namespace"])]
            return {"apiVersion": found["version"], "kind": f"{kind}List", "items": items}
        body = yaml.safe_load(text) if method in ("POST", "PATCH") else {}
        key = (kind, found["namespace"], found["name"] or body["metadata"]["name"])
        stored = self.objects.get(key)
        if method == "DELETE":
            self.objects.pop(key)
        if method in ("GET", "DELETE"):
            return stored
        if found["status"]:
            if stored is None:
                return None
            self.objects[key] = {**stored, "status": body["status"]}
            return self.objects[key]
        if "merge-patch" in media:
            body = merge(stored, body)
        status = {"status": stored["status"]} if stored is not None and "status" in stored else {}
        body["metadata"].setdefault("uid", f"uid-{len(self.objects)}")
        self.objects[key] = {name: value for name, value in body.items() if name != "status"} | status
        return self.objects[key]

    def discover(self, path: str) -> dict[str, Any] | None:
        groups = [version for version in KINDS if "/" in version]
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            entries = {}
            for version in groups:
                name = version.partition("/")[0]
                entry = entries.setdefault(name, {"name": name, "versions": []})
                entry["versions"].append({"groupVersion": version, "version": version.partition("/")[2]})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(entries.values())}
        version = re.sub("^/apis?/", "", path)
        if version not in KINDS:
            return None
        resources = [
            {
                "name": f"{kind.lower()}s{part}",
                "namespaced": True,
                "kind": kind,
                "verbs": ["create", "delete", "get", "list", "patch"],
            }
            for kind in KINDS[version]
            for part in ("", "/status")
        ]
        return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


def merge(stored: Any, patch: Any) -> Any:
    """Return the result of a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(stored) if isinstance(stored, dict) else {}
    for name, value in patch.items():
        merged[name] = merge(merged.get(name), value)
    return {name: value for name, value in merged.items() if value is not None}
