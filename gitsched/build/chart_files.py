"""The files of a commit that helm reads to render a chart. Every file is resolved here, before helm runs."""

from __future__ import annotations

import json
import posixpath
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.build.commit_files import HIDDEN, MAX_FILES, SYMLINK_MODE, BuildProblem, CommitFiles, find_blob, join_path
from gitsched.manifests.kustomization import parse_plugins
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.manifests.yaml_composer import find_stored_form
from gitsched.model.document import Body, list_objects
from gitsched.named_tuples import NamedTuple

DEFAULT_KUBE_VERSION = "1.35.0"
"""The version of Kubernetes that charts are rendered for. It is fixed, so that another version of helm does not change it."""
MAX_SUBCHARTS = 200
MAX_LINKS = 100
"""Symbolic links to directories of one chart."""
_ARCHIVES = (".tgz", ".tar.gz")
_PARSED = re.compile(r"(^|/)(Chart\.yaml|values\.yaml|values\.schema\.json|(templates|crds)/.*|charts/[^/]+\.(tgz|tar\.gz))$")
"""The files of a chart that helm always reads."""
_VALUES = ".gitsched-values.json"
"""The path of inline values in the directory of a run."""


class ChartRequest(NamedTuple):
    """A chart to render. `chart` is a directory of the commit; `values_files` are paths of the commit.

    Later values files overrule earlier ones, and `values` (JSON) overrule all files. `kube_version` "" is DEFAULT_KUBE_VERSION;
    `api_versions` are added to those of helm, such as `monitoring.coreos.com/v1`. `sets`, `text_sets` and `file_sets` are what helm's
    options --set, --set-string and --set-file have, which overrule all values; the last ones are names with paths of the commit.
    `checks_schema`: values must be as values.schema.json says.
    """

    chart: str
    release: str
    namespace: str = "default"
    values_files: tuple[str, ...] = ()
    values: Mapping[str, Any] = {}
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    crds: bool = True
    hooks: bool = True
    sets: tuple[str, ...] = ()
    text_sets: tuple[str, ...] = ()
    file_sets: tuple[tuple[str, str], ...] = ()
    checks_schema: bool = True

    def list_files(self) -> tuple[str, ...]:
        """Return the paths of the files besides those of the chart."""
        return *self.values_files, *(path for _, path in self.file_sets)

    def list_set_names(self) -> list[str]:
        """Return the names of the values that options of helm set, with dots between the names of nested ones."""
        texts = (*self.sets, *self.text_sets, *(f"{name}=" for name, _ in self.file_sets))
        return [re.sub(r"\[.*", "", text.partition("=")[0]).replace("\\.", ".") for text in texts]


class ChartFiles(NamedTuple):
    """All files that rendering a chart reads: the path at which helm finds each one, and its blob. Nothing is rendered if there is a
    problem that is an error.

    `names` maps the paths of charts as helm prints them, such as `web/charts/db`, to directories or archives of the commit. `links` are
    symbolic links to directories of the chart, whose files count as those of these directories and of the links.
    """

    request: ChartRequest
    files: Mapping[str, str]
    names: Mapping[str, str]
    problems: tuple[BuildProblem, ...] = ()
    links: Mapping[str, str] = {}

    def find_source(self, path: str) -> str:
        """Return the path in the commit of a file that helm may find by a link to a directory."""
        link = max((link for link in self.links if path.startswith(f"{link}/")), key=len, default="")
        return f"{self.links[link]}{path[len(link) :]}" if link else path

    def make_arguments(self) -> list[str]:
        """Return the arguments of helm. `{root}` is the directory with the files."""
        request = self.request
        chart = "{root}" if request.chart == "." else "{root}/" + request.chart
        arguments = ["template", request.release, chart, "--namespace", request.namespace, "--skip-tests"]
        arguments += ["--kube-version", request.kube_version or DEFAULT_KUBE_VERSION, *(["--include-crds"] if request.crds else [])]
        arguments += [] if request.hooks else ["--no-hooks"]
        for version in request.api_versions:
            arguments += ["--api-versions", version]
        for path in (*request.values_files, *([_VALUES] if request.values else [])):
            arguments += ["--values", "{root}/" + path]
        arguments += [f"--set={text}" for text in request.sets]
        arguments += [f"--set-string={text}" for text in request.text_sets]
        arguments += [f"--set-file={name}={{root}}/{_escape_commas(path)}" for name, path in request.file_sets]
        return arguments if request.checks_schema else [*arguments, "--skip-schema-validation"]

    def list_inline_files(self) -> dict[str, bytes]:
        """Return the files that are not in the commit, by path."""
        values = self.request.values
        return {_VALUES: json.dumps(values, sort_keys=True, default=str).encode("utf-8", "surrogatepass")} if values else {}


def resolve_chart(request: ChartRequest, commit: CommitFiles) -> ChartFiles:
    """Find the files of a chart, of its values files and of the charts that it depends on, which must be in its `charts/`."""
    return _ChartResolver(request, commit).resolve()


class _ChartResolver:
    def __init__(self, request: ChartRequest, commit: CommitFiles) -> None:
        self._request, self._commit = request, commit
        self._files: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._problems: dict[BuildProblem, None] = {}
        self._links: dict[str, str] = {}

    def resolve(self) -> ChartFiles:
        request = self._request
        main = join_path(request.chart, "Chart.yaml")
        outside = next((path for path in (request.chart, *request.list_files()) if _is_outside(path)), None)
        if outside is not None:
            self._add("helm-missing", f"{outside} is outside of the repository: it is not read", main)
        elif main not in self._commit.entries:
            self._add("helm-missing", f"{request.chart} is no Helm chart: it has no Chart.yaml", main)
        elif invalid := next((text for text in _list_texts(request) if text.startswith("-") or "\0" in text), None):
            self._add("helm-build", f"{invalid!r} is not a release name, namespace or version", main)
        else:
            self._read_files(main)
            self._read_dependencies(request.chart, "", "")
        return ChartFiles(request, self._files, self._names, tuple(self._problems), self._links)

    def _add(self, code: str, message: str, path: str, line: int = 1) -> None:
        self._problems[BuildProblem(code, message, path, line)] = None

    def _read_files(self, main: str) -> None:
        prefix = "" if self._request.chart == "." else f"{self._request.chart}/"
        wanted = [path for path in self._commit.entries if path.startswith(prefix)]
        if len(wanted) > MAX_FILES:
            self._add("helm-build", f"{self._request.chart} has more than {MAX_FILES} files: it is not rendered", main)
            return
        left = deque((path, path) for path in (*wanted, *self._request.list_files()))
        while left:
            path, source = left.popleft()
            blob, found = find_blob(self._commit, source)
            if blob:
                self._files[path] = blob
            elif path in self._request.list_files():
                hidden = self._commit.is_hidden(path)
                why = "belongs to others and is not readable here" if hidden else "is not in the commit"
                self._add(HIDDEN if hidden else "helm-missing", f"the values file {path} {why}", main)
            elif problem := self._find_link_problem(source, found):
                self._add("helm-missing", f"{path} is {problem}: it is not followed", main)
            else:
                self._links[path] = found
                below = (entry for entry in wanted if entry.startswith(f"{found}/"))
                left.extend((f"{path}{entry[len(found) :]}", entry) for entry in below)
            if len(self._files) + len(left) > MAX_FILES or len(self._links) > MAX_LINKS:
                text = f"the symbolic links of {self._request.chart} lead to more than {MAX_FILES} files or {MAX_LINKS} directories"
                self._add("helm-build", f"{text}: it is not rendered", main)
                return

    def _find_link_problem(self, source: str, found: str) -> str:
        """Return why helm does not get what an entry that is no file leads to, or "": only links to directories of the chart are followed,
        which do not contain the link."""
        if self._commit.entries[source][1] != SYMLINK_MODE or found not in self._commit.directories:
            return f"a symbolic link to {found} or a submodule, which is no file of the commit"
        if f"{source}/".startswith(f"{found}/") or found == ".":
            return f"a symbolic link to {found}, which contains the link"
        if self._request.chart != "." and not found.startswith(f"{self._request.chart}/"):
            return f"a symbolic link to {found}, which is outside of the chart"
        return ""

    def _read_dependencies(self, directory: str, parent: str, alias: str) -> None:
        """Follow the charts of a chart. `parent` and `alias` are its path and name as helm prints them."""
        path = join_path(directory, "Chart.yaml")
        body = self._read_yaml(path)
        name = f"{parent}{alias or body.get('name')}"
        self._names[name] = directory
        if len(self._names) > MAX_SUBCHARTS:
            self._add("helm-build", f"{self._request.chart} has more than {MAX_SUBCHARTS} charts: it is not rendered", path)
            return
        charts = join_path(directory, "charts")
        vendored: dict[str, list[str]] = {}
        for chart in self._list_charts(charts):
            is_archive = chart.endswith(_ARCHIVES)
            title = posixpath.basename(chart) if is_archive else str(self._read_yaml(join_path(chart, "Chart.yaml")).get("name"))
            vendored.setdefault(title, []).append(chart)
        aliases: dict[str, list[str]] = {}
        for dependency in self._list_dependencies(directory, body):
            wanted, also = str(dependency.get("name")), dependency.get("alias")
            found = next((title for title in sorted(vendored) if title == wanted or title.startswith(f"{wanted}-")), None)
            if found is None:
                repository = dependency.get("repository")
                origin = f" of {repository}" if repository else ""
                text = (
                    f"{directory} depends on the chart {wanted}{origin}, which is not in {charts}: run `helm dependency build "
                    f"{directory}` and commit {charts}"
                )
                self._add("helm-missing", text, path)
                continue
            aliases.setdefault(found, []).append(str(also) if isinstance(also, str) and also else wanted)
        for title, found_charts in vendored.items():
            for chart in found_charts:
                for known in aliases.get(title) or [""]:
                    if chart.endswith(_ARCHIVES):
                        self._names[f"{name}/charts/{known or title}"] = chart
                    else:
                        self._read_dependencies(chart, f"{name}/charts/", known)

    def _list_charts(self, directory: str) -> Iterator[str]:
        """Yield the directories and archives of the charts that a directory `charts` has."""
        depth = directory.count("/") + 1
        for path in sorted(self._files):
            if path.startswith(f"{directory}/"):
                levels = path.count("/") - depth
                if levels == 0 and path.endswith(_ARCHIVES):
                    yield path
                elif levels == 1 and path.endswith("/Chart.yaml"):
                    yield posixpath.dirname(path)

    def _list_dependencies(self, directory: str, body: Body) -> list[Body]:
        legacy = self._read_yaml(join_path(directory, "requirements.yaml")) if body.get("apiVersion") == "v1" else {}
        return [*list_objects(body.get("dependencies")), *list_objects(legacy.get("dependencies"))]

    def _read_yaml(self, path: str) -> Body:
        blob = self._files.get(path)
        bodies = parse_plugins(self._commit.read_blob(blob)) if blob else []
        return bodies[0] if bodies else {}


def _list_texts(request: ChartRequest) -> tuple[str, ...]:
    sets = (f"set {text}" for text in (*request.sets, *request.text_sets))
    return request.release, request.namespace, request.kube_version, *request.api_versions, *sets


def _escape_commas(text: str) -> str:
    return text.replace(",", r"\,")


def _is_outside(path: str) -> bool:
    return not path or resolve_path(".", path) != path or path.startswith(("/", "../")) or path == ".."


def list_unusable(chart: ChartFiles, contents: Mapping[str, bytes]) -> Iterator[BuildProblem]:
    """Yield a problem for each file that helm reads and of which Git has a pointer or an encrypted form.

    Files that are no values, templates or definitions are read if a template reads files.
    """
    stored = {path: form for path, data in contents.items() if (form := find_stored_form(data)) is not None}
    reads_files = bool(stored) and any(b".Files" in data for path, data in contents.items() if "templates/" in path)
    for path, form in stored.items():
        if reads_files or path in chart.request.list_files() or _PARSED.search(path):
            yield BuildProblem(form.code, form.message, path)
