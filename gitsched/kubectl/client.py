"""Run kubectl with a time limit, and classify its errors as permanent, temporary or missing objects."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from gitsched.model.document import Body, Key, parse_api_group
from gitsched.model.errors import GitschedError, Permanent, Temporary
from gitsched.model.merge_patch import MergePatch
from gitsched.named_tuples import NamedTuple

FIELD_MANAGER = "gitsched"
BATCH_SIZE = 100
"""Objects that one kubectl process reads."""
MAX_OUTPUT = 256 * 1024 * 1024
"""Maximum bytes of one answer."""
_MAX_ERROR = 500
_EXIT_TIMEOUT = 30
"""Seconds after the timeout of the request in which kubectl must exit."""
_STDIN = "/dev/stdin"
"""kubectl reads a patch from here, because the placements of a large source are longer than an argument may be."""

_TEMPORARY = re.compile(
    r"\((ServiceUnavailable|TooManyRequests|InternalError|Timeout|ServerTimeout|Conflict)\)|connection (refused|reset)|i/o timeout"
    r"|TLS handshake timeout|Unable to connect to the server|no such host|context deadline exceeded|unexpected EOF|: EOF"
    r"|the server is currently unable|etcdserver|was refused",
    re.IGNORECASE,
)
_LOG_LINE = re.compile(r"[EWIF]\d{4} ")
"""A line of kubectl's log, such as `E1122 10:00:00.000000 memcache.go: ...`; the error message follows."""
_MISSING = re.compile(r"\(NotFound\)")


class MissingObject(GitschedError):
    """The object does not exist in the cluster."""


class KubectlOptions(NamedTuple):
    """How kubectl reaches the cluster; "" means kubectl's default. `timeout` is in seconds, for each request."""

    context: str = ""
    kubeconfig: str = ""
    timeout: float = 30.0
    executable: str = "kubectl"


class KubectlClient:
    """Reads and patches objects of one cluster. Every method raises Permanent or Temporary, with what kubectl printed."""

    def __init__(self, options: KubectlOptions) -> None:
        self._options = options

    def read(self, targets: Iterable[tuple[str, Key]]) -> Iterator[tuple[list[Key], dict[Key, Body] | GitschedError]]:
        """Yield the objects with the given API versions and keys, in batches by kind and namespace: the keys, and the objects that exist.

        An error concerns its batch only, because a namespace or a kind may be forbidden.
        """
        ordered = sorted(targets, key=lambda target: (target[0], target[1]))
        for (api_version, group, kind, namespace), entries in groupby(ordered, key=lambda entry: (entry[0], *entry[1][:3])):
            keys = [key for _, key in entries]
            for start in range(0, len(keys), BATCH_SIZE):
                batch = keys[start : start + BATCH_SIZE]
                try:
                    bodies = self._get(_name_resource(api_version, kind), namespace, [key.name for key in batch])
                except GitschedError as error:
                    yield batch, error
                else:
                    yield batch, {Key(group, kind, namespace, _read_name(body)): body for body in bodies}

    def patch(self, patch: MergePatch, *, dry_run: bool = False) -> None:
        """Apply a patch; with `dry_run` the API server checks it without storing it. Raise MissingObject if there is no such object."""
        key = patch.target
        subresource = [f"--subresource={patch.subresource}"] if patch.subresource else []
        body = json.dumps(patch.body, separators=(",", ":"))
        self._run(
            [
                *("patch", _name_resource(patch.api_version, key.kind), *_select_namespace(key.namespace), *subresource),
                *("--type=merge", f"--patch-file={_STDIN}", f"--field-manager={FIELD_MANAGER}", "--output=name"),
                *(["--dry-run=server"] if dry_run else []),
                *("--", key.name),
            ],
            body,
        )

    def list_contexts(self) -> list[str]:
        """Return the contexts of the kubeconfig, sorted."""
        return sorted(filter(None, self._run(["config", "get-contexts", "--output=name"]).splitlines()))

    def check_context(self) -> None:
        """Raise Permanent if the context names no server: kubectl would then query localhost:8080, whatever answers there."""
        server = self._run(["config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}"])
        if not server.strip():
            raise Permanent(f"the context {self._options.context} has no server: correct its cluster in the kubeconfig")

    def _get(self, resource: str, namespace: str, names: Sequence[str]) -> list[Body]:
        where = _select_namespace(namespace)
        output = self._run(["get", resource, *where, "--ignore-not-found", "--output=json", "--", *names])
        if not output.strip():
            return []
        try:
            found = json.loads(output)
        except (ValueError, RecursionError) as error:
            raise Temporary(f"kubectl get {resource} printed no JSON: {output[:100]!r}") from error
        items = found.get("items") if isinstance(found, dict) and found.get("kind") == "List" else [found]
        return [item for item in items or [] if isinstance(item, dict)]

    def _run(self, arguments: Sequence[str], data: str = "") -> str:
        """Run kubectl with `data` on stdin and return its output."""
        options = self._options
        where = [f"--{name}={value}" for name, value in (("context", options.context), ("kubeconfig", options.kubeconfig)) if value]
        command = [options.executable, *where, f"--request-timeout={options.timeout:g}s", *arguments]
        try:
            done = subprocess.run(
                command, input=data, capture_output=True, timeout=options.timeout + _EXIT_TIMEOUT, check=False, encoding="utf-8",
                errors="backslashreplace",
            )  # fmt: skip
        except FileNotFoundError as error:
            raise Permanent(f"{options.executable} is not on the PATH: install kubectl, or name it with --kubectl") from error
        except (PermissionError, NotADirectoryError) as error:
            raise Permanent(f"{options.executable} cannot be run: {error.strerror}") from error
        except OSError as error:
            raise Temporary(f"kubectl {arguments[0]} cannot be run: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise Temporary(f"kubectl {arguments[0]} did not finish within {error.timeout:g} s") from error
        if len(done.stdout) > MAX_OUTPUT:
            raise Permanent(f"kubectl {arguments[0]} printed more than {MAX_OUTPUT} bytes")
        if done.returncode != 0:
            raise classify_error(arguments[0], done.stderr)
        return done.stdout


def classify_error(verb: str, text: str) -> GitschedError:
    """Return the error for what kubectl printed."""
    lines = [line for line in text.strip().splitlines() if not _LOG_LINE.match(line)] or text.strip().splitlines()
    message = f"kubectl {verb}: {(lines[-1] if lines else 'no output')[:_MAX_ERROR]}"
    if _MISSING.search(text):
        return MissingObject(message)
    return Temporary(message) if _TEMPORARY.search(text) else Permanent(message)


def _name_resource(api_version: str, kind: str) -> str:
    """Return kubectl's argument for a kind in one API version, such as kafkasource.v1beta1.sources.knative.dev."""
    group, version = parse_api_group(api_version), api_version.rpartition("/")[2]
    return f"{kind.lower()}.{version}.{group}" if group else kind.lower()


def _select_namespace(namespace: str) -> list[str]:
    return [f"--namespace={namespace}"] if namespace else []


def _read_name(body: Body) -> str:
    metadata: Any = body.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""
