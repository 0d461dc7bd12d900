"""Render a Helm chart: lay out its files, run helm, and separate what it prints into objects with their templates."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, MutableMapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from gitsched.build.builder import Builder, find_program, list_executables, read_program_version
from gitsched.build.chart_files import ChartFiles
from gitsched.build.closure import BuildProblem
from gitsched.build.process import DEFAULT_LIMITS, BuildLimits
from gitsched.build.scratch import run_on_files, select_contents
from gitsched.model.errors import Permanent

_FORMAT = 1
"""Changes with what `ChartResult` means, so that cached results of other versions are not read."""
_DOCUMENT = re.compile(rb"^---[ \t]*\n", re.MULTILINE)
_SOURCE = re.compile(rb"\A(?:[ \t]*\n)*# Source: ([^\n]*)\n")
_ACTION = re.compile(rb"\{\{(?!-?\s*/\*).*?\}\}", re.DOTALL)
_RANDOM = re.compile(
    rb"(?<![\w.$\"])(?:rand(?:AlphaNum|Alpha|Ascii|Numeric|Bytes|Int)|gen(?:PrivateKey|CA|CAWithKey|SelfSignedCert|SelfSignedCertWithKey|"
    rb"SignedCert|SignedCertWithKey)|uuidv4|shuffle|bcrypt|htpasswd|encryptAES|now|ago)(?![\w.\"])"
)
"""Functions of Helm's templates that return something else each time."""
_LOOKUP = re.compile(rb"(?<![\w.$\"])lookup(?=\s)")
_NOW = re.compile(rb"(?<![\w.$\"])now(?![\w.\"])")
_ANOTHER_TIME = b'(toDate "2006-01-02" "2001-02-03")'
_ERROR_POSITION = re.compile(r"(?:\(|template: |parse error at \()([^\s:()]+/templates/[^\s:()]+):(\d+)(?::(\d+))?")
_MAX_ARCHIVE = 64 << 20
"""Bytes of an archive with a chart that are searched for functions."""


class RenderedObject(NamedTuple):
    """A document as helm prints it, without the comment that names its template. `path` is the template, "" if unknown: a file of the
    commit, or the archive that it is in. An object without a namespace belongs to that of the release."""

    text: bytes
    path: str


class ChartResult(NamedTuple):
    """What a chart renders, and problems; nothing is rendered if one of them is an error. See `is_error`."""

    objects: tuple[RenderedObject, ...]
    problems: tuple[BuildProblem, ...] = ()


def is_error(problem: BuildProblem) -> bool:
    """Return whether nothing is rendered because of a problem."""
    return problem.code != "helm-lookup"


def find_helm(known_versions: MutableMapping[str, str]) -> Builder:
    """Return the helm beside the Python interpreter, else that on the PATH.

    `known_versions` has the versions by executable; new ones are added. Raises Permanent if there is none.
    """
    for path in list_executables("helm"):
        helm = find_program("helm", path, known_versions, _read_version)
        if helm is not None:
            return helm
    raise Permanent("a Helm chart needs helm, which is not installed: put a static executable of helm 3.14 or newer on the PATH")


def _read_version(_: str, executable: Path) -> str:
    text = read_program_version(executable, ["version", "--template", "{{.Version}}"])
    return f"helm {text}" if re.fullmatch(r"v\d[\w.+-]*", text) else ""


def compute_chart_key(chart: ChartFiles, helm: Builder) -> str:
    """Return a digest of everything that rendering depends on: the files by path and content, the request, and the version of helm."""
    inline = [data.decode("utf-8", "surrogatepass") for data in chart.list_inline_files().values()]
    rows = [f"helm {_FORMAT}", helm.version, json.dumps([chart.make_arguments(), inline])]
    rows += [f"{blob} {path}" for path, blob in sorted(chart.files.items())]
    return sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


def render_chart(chart: ChartFiles, blobs: Mapping[str, bytes], helm: Builder, limits: BuildLimits = DEFAULT_LIMITS) -> ChartResult:
    """Render a chart whose files are resolved. `blobs` are the contents of all its files.

    A chart whose output is random or depends on the time is an error: it would change without a change of the source.
    """
    main = f"{chart.request.chart}/Chart.yaml".removeprefix("./")
    contents = select_contents(chart.files, blobs)
    if isinstance(contents, str):
        return ChartResult((), (BuildProblem("helm-build", f"{chart.request.chart}: {contents}", main),))
    contents |= chart.list_inline_files()
    done = _run(chart, contents, helm, limits)
    if isinstance(done, str):
        return ChartResult((), (_locate_error(chart, f"helm cannot render this: {done}", main),))
    problems: list[BuildProblem] = []
    calls = list(_list_calls(chart, contents))
    random = [(path, line, name) for path, line, name in calls if name != "lookup"]
    if random:
        changed = {path: _replace_calls(data, _NOW, _ANOTHER_TIME) for path, data in contents.items() if _is_template(path)}
        if _run(chart, contents | changed, helm, limits) != done:
            path, line, name = random[0]
            text = f"{chart.request.chart} renders something else each time, as with {name} here: set the value that it makes up"
            return ChartResult((), (BuildProblem("helm-random", text, path, line),))
    lookups = [(path, line) for path, line, name in calls if name == "lookup"]
    if lookups:
        changed = {path: _replace_calls(data, _LOOKUP, b"dict") for path, data in contents.items() if _is_template(path)}
        if _run(chart, contents | changed, helm, limits) != done:
            text = f"{chart.request.chart} uses lookup, which finds nothing here: it is rendered as for a cluster without these objects"
            problems.append(BuildProblem("helm-lookup", text, *lookups[0]))
    return ChartResult(tuple(_split(chart, done)), tuple(problems))


def _run(chart: ChartFiles, contents: Mapping[str, bytes], helm: Builder, limits: BuildLimits) -> bytes | str:
    return run_on_files(helm.executable, helm.version, chart.make_arguments(), contents, limits)


def _split(chart: ChartFiles, output: bytes) -> Iterator[RenderedObject]:
    """Yield the documents of helm's output. A file of crds/ may have several after one comment."""
    path = ""
    for text in _DOCUMENT.split(output):
        source = _SOURCE.match(text)
        if source is not None:
            path, text = _find_template(chart, source[1].decode("utf-8", "replace").strip()), text[source.end() :]
        text = text.strip(b"\n").rstrip()
        if any(line.strip() and not line.lstrip().startswith(b"#") for line in text.splitlines()):
            yield RenderedObject(text + b"\n", path)


def _find_template(chart: ChartFiles, name: str) -> str:
    """Return the file of the commit for a template as helm names it, such as `web/charts/db/templates/a.yaml`."""
    parts = name.split("/")
    for count in range(len(parts) - 1, 0, -1):
        found = chart.names.get("/".join(parts[:count]))
        if found is not None:
            path = os.path.normpath("/".join((found, *parts[count:])))
            return path if path in chart.files else found if found in chart.files else ""
    return ""


def _locate_error(chart: ChartFiles, text: str, main: str) -> BuildProblem:
    """Return an error of helm at the template that it names, else at Chart.yaml."""
    found = _ERROR_POSITION.search(text)
    path = _find_template(chart, found[1]) if found else ""
    if found is None or not path:
        return BuildProblem("helm-build", text, main)
    return BuildProblem("helm-build", text, path, int(found[2]) if not path.endswith(".tgz") else 1, int(found[3] or 0) + 1)


def _is_template(path: str) -> bool:
    return "/templates/" in f"/{path}" and not path.endswith("/NOTES.txt")


def _list_calls(chart: ChartFiles, contents: Mapping[str, bytes]) -> Iterator[tuple[str, int, str]]:
    """Yield the calls of random functions and of lookup in the chart's templates: path, line, and name."""
    for path in sorted(chart.files):
        data = contents[path]
        if _is_template(path):
            for action in _ACTION.finditer(data):
                for call in (*_RANDOM.finditer(action[0]), *_LOOKUP.finditer(action[0])):
                    line = data.count(b"\n", 0, action.start() + call.start()) + 1
                    yield path, line, call[0].decode()
        elif path in chart.names.values():
            call_in_archive = _RANDOM.search(_decompress(data))
            if call_in_archive:
                yield path, 1, call_in_archive[0].decode()


def _decompress(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(data, _MAX_ARCHIVE)
    except zlib.error:
        return b""


def _replace_calls(data: bytes, call: re.Pattern[bytes], replacement: bytes) -> bytes:
    return _ACTION.sub(lambda action: call.sub(replacement, action[0]), data)
