"""Read a dump of a hub: a file or a directory of files, with the documents that decisions are made from and the records of the hub.

Values of Secrets and ConfigMaps are dropped before anything is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from gitsched.apis.hub_comparison import HubComparison
from gitsched.decide.registry import apis_by_group
from gitsched.manifests.dump import read_dump
from gitsched.manifests.dumped_object import DumpedObject, DumpEnd
from gitsched.model.document import Body, Key, as_object, get_field, get_text, is_namespaced, list_objects, parse_api_group
from gitsched.model.finding import Finding, Location, format_count
from gitsched.model.hub_comparison import HubDump, HubState, Resource
from gitsched.model.time import parse_time
from gitsched.named_tuples import NamedTuple

MAX_LINE = 1 << 20
"""Bytes of a line that are read at once."""
MAX_FILES = 10_000
"""Files of one dump."""
MAX_OBJECTS = 1_000_000
"""Objects of one dump."""
MAX_FINDINGS = 20
"""Objects of one dump that have a finding each when they cannot be read."""
DUMP_SUFFIXES = (".yaml", ".yml", ".json")
_TIME_FIELDS = ("lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime", "timeAdded", "creationTimestamp")


class ObjectVersion(NamedTuple):
    """The identity and the version of an object on a hub: its uid, "" if unknown, and its resourceVersion, -1 if that is no number."""

    uid: str
    version: int


class ReadDump(NamedTuple):
    """A dump with what was found while reading it. `versions` are those of all its objects."""

    path: Path
    dump: HubDump
    versions: Mapping[Key, ObjectVersion]
    findings: tuple[Finding, ...]


class HubDumpReader:
    """Reads one dump of a hub. `name` says which dump it is in findings, such as "first"."""

    def __init__(self, name: str, path: Path, comparisons: Mapping[str, HubComparison]) -> None:
        self._name, self._path, self._comparisons = name, path, comparisons
        self._documents: dict[Key, Body] = {}
        self._records: dict[Key, Body] = {}
        self._locations: dict[Resource, Location] = {}
        self._versions: dict[Key, ObjectVersion] = {}
        self._findings: list[Finding] = []
        self._time: datetime | None = None
        self._problems = 0

    def read(self) -> ReadDump:
        """Read all files."""
        for path in self._list_files():
            self._read_file(path)
            if len(self._versions) >= MAX_OBJECTS:
                self._add(
                    "shadow-unread",
                    f"it has more than {MAX_OBJECTS:,} objects, and the others are not read",
                    Location(str(path), 1, 1),
                )
                break
        if self._problems > MAX_FINDINGS:
            more = format_count(self._problems - MAX_FINDINGS, "more object")
            self._add("shadow-unread", f"{more} cannot be read", Location(str(self._path), 1, 1))
        for comparison in self._comparisons.values():
            for body in comparison.list_templates(self._records):
                key = _read_key(body)
                if key is not None:
                    self._documents.setdefault(key, body)
        state = HubState(self._documents, self._records)
        return ReadDump(self._path, HubDump(state, self._locations, self._time), self._versions, tuple(self._findings))

    def _add(self, code: str, message: str, location: Location) -> None:
        self._findings.append(Finding("error", code, f"the {self._name} dump: {message}", location))

    def _list_files(self) -> Iterator[Path]:
        """Yield the file, or the files of the directory. Links in it are not followed."""
        if not self._path.is_dir():
            yield self._path
            return
        files = (
            each for each in self._path.rglob("*") if each.suffix in DUMP_SUFFIXES and not each.is_symlink() and each.is_file()
        )
        found = list(islice(files, MAX_FILES + 1))
        if len(found) > MAX_FILES:
            message = f"it has more than {MAX_FILES:,} files, and the others are not read; write a few files with Lists"
            self._add("shadow-unread", message, Location(str(self._path), 1, 1))
        if not found:
            message = f"the directory has no file that ends with {', '.join(DUMP_SUFFIXES)}; write the dump there"
            self._add("shadow-unread", message, Location(str(self._path), 1, 1))
        yield from sorted(found[:MAX_FILES])

    def _read_file(self, path: Path) -> None:
        try:
            with path.open("rb") as stream:
                lines: Callable[[], bytes] = partial(stream.readline, MAX_LINE)
                count = 0
                for entry in read_dump(iter(lines, b"")):
                    count += isinstance(entry, DumpedObject)
                    self._take(path, entry)
                    if len(self._versions) >= MAX_OBJECTS:
                        return
        except OSError as error:
            self._add("shadow-unread", f"it cannot be read: {error.strerror}", Location(str(path), 1, 1))
            return
        if not count:
            self._add("shadow-unread", "the file has no object; dump the hub again", Location(str(path), 1, 1))

    def _take(self, path: Path, entry: DumpedObject | DumpEnd) -> None:
        location = Location(str(path), entry.line, entry.column)
        if isinstance(entry, DumpEnd):
            if entry.cut:
                self._add(
                    "shadow-cut", "it is cut here: its last object, and what would follow, is missing; dump the hub again", location
                )
            return
        key = _read_key(entry.body) if entry.body is not None else None
        if entry.body is not None and key is not None:
            self._keep(key, entry.body, location)
            return
        self._problems += 1
        if self._problems <= MAX_FINDINGS:
            problem = entry.problem or "it has no apiVersion, kind and name"
            self._add("shadow-unread", f"an object cannot be read: {problem}; dump the hub again", location)

    def _keep(self, key: Key, body: Body, location: Location) -> None:
        version = read_version(body)
        known = self._versions.get(key)
        if known is not None and known.version > version.version:  # files of a dump may overlap: the later object counts
            return
        self._versions[key] = version
        self._locations[key.resource] = location
        self._time = max(filter(None, (self._time, _find_latest_time(body))), default=None)
        api = apis_by_group.get(key.group)
        comparison = self._comparisons.get(api.name) if api is not None else None
        if comparison is None:
            self._documents[key] = body
            return
        for kept, part in zip((self._documents, self._records), comparison.split(body), strict=True):
            if part is not None:
                kept[key] = part


def _read_key(body: Body) -> Key | None:
    """Return the identity of an object; None without a name."""
    group, kind, name = parse_api_group(get_text(body, "apiVersion")), get_text(body, "kind"), get_text(body, "metadata", "name")
    if not (kind and name and "apiVersion" in body):
        return None
    namespaced = is_namespaced(group, kind)
    namespace = get_text(body, "metadata", "namespace") or ("default" if namespaced else "")
    return Key(group, kind, "" if namespaced is False else namespace, name)


def read_version(body: Body) -> ObjectVersion:
    """Return the identity and version that the API server has given an object."""
    text = get_text(body, "metadata", "resourceVersion")
    return ObjectVersion(get_text(body, "metadata", "uid"), int(text) if text.isdecimal() and len(text) < 20 else -1)


def _find_latest_time(body: Body) -> datetime | None:
    """Return the latest time at which something was observed or done; no field that may be about the future."""
    spec, status = as_object(body.get("spec")), as_object(body.get("status"))
    entries: list[Any] = [as_object(body.get("metadata"))]
    for value in (status.get("conditions"), spec.get("taints"), spec.get("gracefulEvictionTasks")):
        entries += list_objects(value)
    times = [parse_time(entry.get(name)) for entry in entries for name in _TIME_FIELDS]
    times += [parse_time(get_field(body, *path)) for path in (("status", "lastScheduledTime"), ("spec", "rescheduleTriggeredAt"))]
    return max(filter(None, times), default=None)
