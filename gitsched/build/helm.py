"""Render a Helm chart: lay out its files, run helm, and separate what it prints into objects with their templates."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, MutableMapping
from hashlib import sha256
from pathlib import Path

from gitsched.build.builder import Builder, find_program, list_executables, read_program_version
from gitsched.build.chart_files import ChartFiles, list_unusable
from gitsched.build.chart_stability import ChartSources, check_stable, is_error
from gitsched.build.commit_files import BuildProblem
from gitsched.build.process import DEFAULT_LIMITS, BuildLimits
from gitsched.build.scratch import run_on_files, select_contents
from gitsched.manifests.kubectl_values import find_kubectl_value
from gitsched.model.errors import Permanent
from gitsched.named_tuples import NamedTuple
from gitsched.render.yaml import dump

_FORMAT = 7
"""Changes with what `ChartResult` means, so that cached results of other versions are not read."""
_DOCUMENT = re.compile(rb"^---[ \t]*\n", re.MULTILINE)
_KEPT_BLOCK = re.compile(rb"[|>][0-9]?\+")
"""The header of a block scalar to which empty lines at the end belong."""
_SOURCE = re.compile(rb"\A(?:[ \t]*\n)*# Source: ([^\n]*)\n")
_ERROR_POSITION = re.compile(r"([^\s:()\"]+/templates/[^\s:()\"]+):(\d+)(?::(\d+))?")
_INVALID_OUTPUT = re.compile(r"YAML parse error on ([^\s:]+/templates/[^\s:]+):")
"""How helm names a template that renders invalid YAML. The line is that of what it renders."""
_INVALID_VALUES = re.compile(r"(?:failed to parse|cannot load) ([^\s:]+): .*?(?:yaml: line (\d+)|$)")
"""How helm names a file of values that it cannot read; values.yaml is that of the chart."""
_ADVICE = "Use --debug flag to render out invalid YAML"
"""What helm advises, which gitsched has no option for."""


class RenderedObject(NamedTuple):
    """A document as helm prints it, without the comment that names its template. `path` is the template, "" if unknown: a file of the
    commit, or the archive that it is in. An object without a namespace belongs to that of the release."""

    text: bytes
    path: str


class ChartResult(NamedTuple):
    """What a chart renders, and problems; nothing is rendered if one of them is an error. See `is_error`."""

    objects: tuple[RenderedObject, ...]
    problems: tuple[BuildProblem, ...] = ()


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
    rows += [f"{blob} {path}" for path, blob in sorted(chart.files.items())]  # no path has a NUL
    return sha256("\0".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


def render_chart(chart: ChartFiles, blobs: Mapping[str, bytes], helm: Builder, limits: BuildLimits = DEFAULT_LIMITS) -> ChartResult:
    """Render a chart whose files are resolved. `blobs` are the contents of all its files.

    A chart that renders something else in each run is an error: its objects would change without a change of the source.
    """
    main = f"{chart.request.chart}/Chart.yaml".removeprefix("./")
    contents = select_contents(chart.files, blobs)
    if isinstance(contents, str):
        return ChartResult((), (BuildProblem("helm-build", f"{chart.request.chart}: {contents}", main),))
    if unusable := list(list_unusable(chart, contents)):
        return ChartResult((), tuple(unusable))
    contents |= chart.list_inline_files()
    done = _run(chart, contents, helm, limits)
    if isinstance(done, str):
        return ChartResult((), (_locate_error(chart, f"helm cannot render this: {done}", main),))
    sources = ChartSources(
        chart.request.chart, (chart.request.chart,), {path: contents[path] for path in chart.files}, chart.list_inline_files()
    )
    problems = check_stable(sources, done, lambda changed: _run(chart, {**contents, **changed}, helm, limits))
    if any(map(is_error, problems)):
        return ChartResult((), tuple(problems))
    objects = [_read_as_kubectl(rendered, main) for rendered in _split(chart, done)]
    problems += dict.fromkeys(problem for _, found in objects for problem in found)
    return ChartResult(tuple(rendered for rendered, _ in objects), tuple(problems))


def _read_as_kubectl(rendered: RenderedObject, main: str) -> tuple[RenderedObject, list[BuildProblem]]:
    """Return an object whose text all readers of Kubernetes read as Argo CD and Flux do, who read what helm prints with that of kubectl,
    and a warning for each key and value that kustomize reads differently."""
    try:
        reading = find_kubectl_value(rendered.text.decode("utf-8"))
    except UnicodeDecodeError:
        return rendered, []
    if reading is None:
        return rendered, []
    path = rendered.path or main
    problems = [BuildProblem(one.code, f"{one.message}; delivered as kubectl reads it", path) for one in reading.differences]
    return rendered._replace(text=dump(reading.value).encode("utf-8")), problems


def _run(chart: ChartFiles, contents: Mapping[str, bytes], helm: Builder, limits: BuildLimits) -> bytes | str:
    return run_on_files(helm.executable, helm.version, chart.make_arguments(), contents, limits)


def _split(chart: ChartFiles, output: bytes) -> Iterator[RenderedObject]:
    """Yield the documents of helm's output. A file of crds/ may have several after one comment."""
    path = ""
    for text in _DOCUMENT.split(output):
        source = _SOURCE.match(text)
        if source is not None:
            path, text = _find_template(chart, source[1].decode("utf-8", "replace").strip()), text[source.end() :]
        text = text.lstrip(b"\n") if _KEPT_BLOCK.search(text) else text.strip(b"\n").rstrip() + b"\n"
        if any(line.strip() and not line.lstrip().startswith(b"#") for line in text.splitlines()):
            yield RenderedObject(text, path)


def _find_template(chart: ChartFiles, name: str) -> str:
    """Return the file of the commit for a template as helm names it, such as `web/charts/db/templates/a.yaml`."""
    parts = name.split("/")
    for count in range(len(parts) - 1, 0, -1):
        found = chart.names.get("/".join(parts[:count]))
        if found is not None:
            path = os.path.normpath("/".join((found, *parts[count:])))
            return chart.find_source(path) if path in chart.files else found if found in chart.files else ""
    return ""


def _locate_error(chart: ChartFiles, text: str, main: str) -> BuildProblem:
    """Return an error of helm at the template or the values that it names, else at Chart.yaml."""
    text = text.replace(_ADVICE, "").rstrip()
    found, values = _ERROR_POSITION.search(text), _INVALID_VALUES.search(text)
    output = _INVALID_OUTPUT.search(text)
    path = _find_template(chart, (found or output)[1]) if found or output else ""  # type: ignore[index]
    if path and found:
        return BuildProblem("helm-build", text, path, int(found[2]) if not path.endswith(".tgz") else 1, int(found[3] or 0) + 1)
    if values is not None:
        name = values[1].lstrip("/")
        own = os.path.normpath(f"{chart.request.chart}/{name}")
        path = next((one for one in (name, own) if one in chart.files), "")
        return BuildProblem("helm-build", text, path or main, int(values[2] or 1) if path else 1)
    return BuildProblem("helm-build", text, path or main)
