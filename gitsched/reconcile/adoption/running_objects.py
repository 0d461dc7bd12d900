"""Read what runs in a fleet: dumps of a hub, directories and dumps of single clusters, and clusters through kubectl.

Only identities, clusters, numbers of replicas and the decisions of hubs are kept; values of Secrets are never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from gitsched.apis.adoption import HubObjects
from gitsched.apis.gitsched.config import Config
from gitsched.apis.replicas import count_copy_replicas
from gitsched.decide.registry import policy_apis
from gitsched.kubectl.client import KubectlClient
from gitsched.manifests.dump import read_dump
from gitsched.manifests.dumped_object import DumpedObject, DumpEnd
from gitsched.model.adoption import RunningObjects
from gitsched.model.document import Body, Key, get_field, is_namespaced, parse_api_group
from gitsched.model.errors import GitschedError, Permanent
from gitsched.model.finding import Finding, Location, format_count
from gitsched.named_tuples import NamedTuple

MAX_LINE = 1 << 20
"""Bytes of a line that are read at once."""
MAX_FILES = 100_000
"""Files of one directory."""
MAX_FINDINGS = 20
"""Objects of one dump that have a finding each when they cannot be read."""
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
_NO_SUCH_KIND = "the server doesn't have a resource type"
"""How kubectl says that a cluster does not have a kind, so that it has no object of it."""
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class ClusterInput(NamedTuple):
    """A file or directory with the objects of one cluster. One that is listed was found in a directory: nobody has named it, so that it
    must not be a link."""

    cluster: str
    path: Path
    is_listed: bool = False


class _Hub(NamedTuple):
    api: str
    objects: HubObjects


class RunningObjectReader:
    """Collects what runs, from any number of inputs. `config` says where kinds of workloads have their replicas, `not_running` are the
    policy APIs of which objects that are not found run nowhere."""

    def __init__(self, config: Config, not_running: Iterable[str] = ()) -> None:
        self._config = config
        self._records: dict[Key, Body] = {}
        self._clusters: dict[Key, dict[str, int | None]] = {}
        self._hubs = [
            _Hub(api.name, api.commands.load_hub_objects())
            for api in policy_apis.values()
            if api.commands.load_hub_objects is not None
        ]
        self._complete: set[tuple[str, str]] = set()
        self._observed: set[str] = set()
        self._not_running = frozenset(not_running)
        self._has_dumps = self._has_clusters = False
        self.findings: list[Finding] = []
        self.objects = 0

    def read(self) -> RunningObjects:
        """Return everything that was read."""
        partial = {hub.api for hub in self._hubs} - self._not_running if self._has_dumps else set[str]()
        return RunningObjects(
            self._records,
            self._clusters,
            self._not_running,
            frozenset(partial),
            frozenset(self._observed),
            frozenset(self._complete),
            self._has_clusters,
        )

    def add_dump(self, name: str, stream: BinaryIO) -> None:
        """Read a dump of a hub: bindings, decisions and what it delivers to clusters. Other objects are ignored."""
        kinds: dict[tuple[str, str], None] = {}
        last: tuple[str, str] | None = None
        self._has_dumps = True
        for body in self._read_objects(name, stream):
            if body is None:
                self._complete |= kinds.keys() - {last}
                return
            kind = (parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or ""))
            kinds[kind], last = None, kind
            self._add_hub_object(kind, body)
        self._complete |= kinds.keys()

    def add_cluster(self, cluster: ClusterInput) -> None:
        """Read the objects of one cluster from a dump or from the manifests of a directory."""
        self._has_clusters = True
        links = _list_links(cluster)
        paths = list(_list_files(cluster.path)) if cluster.path not in links else []
        complete = not links
        for path in links[:MAX_FINDINGS]:
            message = (
                f"{path.name} is a symbolic link, which is not followed: put its target there, or name the target with --cluster"
            )
            self.findings.append(Finding("warning", "adopt-unread", message, Location(str(path), 1, 1)))
        for path in paths:
            with path.open("rb") as stream:
                for body in self._read_objects(str(path), stream):
                    complete = complete and body is not None
                    if body is not None:
                        self._add_object(body, cluster.cluster)
        complete = self._check_kustomizations(paths) and complete
        if complete:
            self._observed.add(cluster.cluster)

    def add_live(self, cluster: str, client: KubectlClient, wanted: Iterable[tuple[str, Key]]) -> None:
        """Ask a cluster for objects with these API versions and keys. What cannot be read is a finding."""
        self._has_clusters = True
        complete = True
        for keys, found in client.read(wanted):
            if isinstance(found, GitschedError) and _NO_SUCH_KIND in str(found):
                continue
            if isinstance(found, GitschedError):
                complete = False
                message = f"cluster {cluster}: {format_count(len(keys), 'object')} of kind {keys[0].kind} cannot be read: {found}"
                self._add_finding("adopt-unread", message)
            else:
                for key, body in found.items():
                    self._add(key, cluster, count_copy_replicas([body], self._config))
        if complete:
            self._observed.add(cluster)

    def _read_objects(self, name: str, stream: BinaryIO) -> Iterator[Body | None]:
        """Yield the objects of a file; None at the end of one that is cut."""
        lines: Callable[[], bytes] = partial(stream.readline, MAX_LINE)
        problems = 0
        for entry in read_dump(iter(lines, b"")):
            if isinstance(entry, DumpEnd):
                if entry.cut:
                    message = (
                        "the dump is cut: its last object, and what would follow, is missing; adopt again with a complete dump"
                    )
                    self.findings.append(Finding("warning", "adopt-cut", message, Location(name, entry.line, entry.column)))
                    yield None
            elif entry.body is None:
                problems += 1
                self._report_problem(name, entry, problems)
            else:
                self.objects += 1
                yield entry.body
        if problems > MAX_FINDINGS:
            self._add_finding("adopt-unread", f"{name}: {format_count(problems - MAX_FINDINGS, 'more object')} cannot be read")

    def _report_problem(self, name: str, entry: DumpedObject, count: int) -> None:
        if count <= MAX_FINDINGS:
            message = f"an object cannot be read: {entry.problem}"
            self.findings.append(Finding("warning", "adopt-unread", message, Location(name, entry.line, entry.column)))

    def _add_finding(self, code: str, message: str) -> None:
        self.findings.append(Finding("warning", code, message))

    def _add_hub_object(self, kind: tuple[str, str], body: Body) -> None:
        for hub in self._hubs:
            if kind in hub.objects.records:
                reduced = hub.objects.reduce_record(body)
                key = _read_key(reduced)
                if key is not None:
                    self._records[key] = reduced
                placement = hub.objects.read_placement(reduced)
                for cluster, count in placement[1].items() if placement is not None else ():
                    self._add(placement[0] if placement is not None else key, cluster, count)
            elif kind in hub.objects.deliveries:
                delivery = hub.objects.read_delivery(body)
                for manifest in delivery.manifests if delivery is not None else ():
                    self._add_object(manifest, delivery.cluster if delivery is not None else "")

    def _add_object(self, body: Body, cluster: str) -> None:
        key = _read_key(body)
        if key is not None:
            self._add(key, cluster, count_copy_replicas([body], self._config))

    def _add(self, key: Key | None, cluster: str, replicas: int | None) -> None:
        if key is not None:
            clusters = self._clusters.setdefault(key, {})
            clusters[cluster] = replicas if replicas is not None else clusters.get(cluster)

    def _check_kustomizations(self, paths: Iterable[Path]) -> bool:
        """Return whether no file of a directory is built from files outside of it, which are not read."""
        built = [path for path in paths if path.name in _KUSTOMIZATIONS and b"../" in path.read_bytes()[:MAX_LINE]]
        for path in built[:MAX_FINDINGS]:
            message = (
                "it refers to files outside of its directory, which are not read: pass what `kubectl kustomize` prints instead"
            )
            self.findings.append(Finding("warning", "adopt-unread", message, Location(str(path), 1, 1)))
        return not built


def list_cluster_inputs(root: Path) -> list[ClusterInput]:
    """Return the directories in a directory, each with the objects of the cluster of its name."""
    if not root.is_dir():
        raise Permanent(f"{root} is not a directory")
    found = (path for path in sorted(root.iterdir()) if path.is_dir() and not path.name.startswith("."))
    return [ClusterInput(path.name, path, is_listed=True) for path in found]


def _list_links(cluster: ClusterInput) -> list[Path]:
    """Return the links that may lead to manifests of a cluster: its directory, or what is in it."""
    if cluster.is_listed and cluster.path.is_symlink():
        return [cluster.path]
    found = sorted(each for each in cluster.path.rglob("*") if each.is_symlink()) if cluster.path.is_dir() else []
    return [each for each in found if each.suffix in MANIFEST_SUFFIXES or each.is_dir()]


def _list_files(path: Path) -> Iterator[Path]:
    """Yield a file, or the manifests of a directory. Links are not followed."""
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise Permanent(f"{path} does not exist")
    found = (each for each in path.rglob("*") if each.suffix in MANIFEST_SUFFIXES and not each.is_symlink() and each.is_file())
    wanted = list(islice((each for each in found if not any(part.startswith(".") for part in each.parts[-3:])), MAX_FILES + 1))
    if len(wanted) > MAX_FILES:
        raise Permanent(f"{path} has more than {MAX_FILES} files")
    yield from sorted(wanted)


def _read_key(body: Body) -> Key | None:
    """Return the identity of an object; None without a name."""
    version = str(body.get("apiVersion") or body.get("api") or "")
    group, kind, name = parse_api_group(version), body.get("kind"), get_field(body, "metadata", "name")
    if not isinstance(kind, str) or not isinstance(name, str) or not name:
        return None
    namespaced = is_namespaced(group, kind)
    namespace = str(get_field(body, "metadata", "namespace") or ("default" if namespaced else ""))
    return Key(group, kind, "" if namespaced is False else namespace, name)
