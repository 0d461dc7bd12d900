"""The files of a commit that kustomize reads for one root. Every reference is resolved here, before kustomize runs."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from gitsched.build.chart_files import ChartRequest, list_unusable, resolve_chart
from gitsched.build.commit_files import (
    HIDDEN,
    MAX_FILES,
    SYMLINK_MODE,
    BuildProblem,
    CommitFiles,
    MountedFiles,
    find_blob,
    follow_links,
    is_outside,
    join_path,
)
from gitsched.build.remote_base import REMOTE, RemoteBase, parse_remote_base
from gitsched.manifests.kustomization import list_plugin_paths, parse_plugins, read_chart
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, KustomizeChart, KustomizeReference
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.manifests.yaml_composer import find_unusable_content
from gitsched.model.finding import format_count
from gitsched.named_tuples import NamedTuple

MAX_DIRECTORIES = 2_000
"""Kustomizations of one root."""
MAX_PROBLEMS = 50
"""Problems of one root that are reported."""

Position = tuple[str, int, int]
"""The path of a file, line and column."""
_BUILT_IN = "builtin"
"""The apiVersion of plug-ins that are part of kustomize."""
_PLUGIN_FIELDS = ("generators", "transformers", "validators")


class ReplacedReference(NamedTuple):
    """A reference to another repository, and the path that kustomize gets in place of it."""

    line: int
    column: int
    written: str
    path: str

    def replace(self, lines: list[str]) -> bool:
        """Replace the reference in the lines of a kustomization; return whether it is there."""
        line = lines[self.line - 1] if self.line <= len(lines) else ""
        start = line.find(self.written, self.column - 1)
        if start >= 0:
            lines[self.line - 1] = line[:start] + self.path + line[start + len(self.written) :]
        return start >= 0


class Closure(NamedTuple):
    """All files that a root reads: the path at which kustomize finds each one, and its blob.

    `root` is the directory, `kustomization` the path of its kustomization. `resources` are the files whose objects are built, `charts` the
    directories of the Helm charts that are rendered. `remotes` are the directories with files of other repositories, with the positions
    of the references to them; `replaced` are the references that name them, by the path of the kustomization. `outside` are files that a
    kustomization reads from outside of its own directory, which kustomize does only without its load restrictor. `links` are the symbolic
    links to directories that references pass, and the directories that they lead to; `files` are below the directories themselves. Nothing
    is built if there is a problem.
    """

    root: str
    kustomization: str
    files: Mapping[str, str]
    resources: frozenset[str]
    problems: tuple[BuildProblem, ...]
    charts: tuple[str, ...] = ()
    remotes: Mapping[str, Position] = {}
    replaced: Mapping[str, tuple[ReplacedReference, ...]] = {}
    outside: frozenset[str] = frozenset()
    links: Mapping[str, str] = {}

    def list_chart_files(self) -> list[str]:
        """Return the files of the charts."""
        directories = tuple(f"{chart}/" for chart in self.charts)
        return [path for path in self.files if directories and path.startswith(directories)]

    def list_inputs(self) -> list[str]:
        """Return lines that name everything that a build reads, and from which everything else here follows."""
        files = (f"{blob} {path}" for path, blob in sorted(self.files.items()))
        return [self.root, *files, *(f"{path} -> {target}" for path, target in sorted(self.links.items()))]

    def follow_links(self, path: str) -> str:
        """Return a path without the symbolic links to directories that the root passes."""
        current = "."
        for name in path.split("/") if self.links else ():
            current = join_path(current, name)
            current = self.links.get(current, current)
        return current if self.links else path


def resolve_closure(root: str, commit: CommitFiles) -> Closure:
    """Follow all references of a root. A reference that is not in the commit is a problem and is never passed to kustomize."""
    return _Resolver(root, commit).resolve()


class _Resolver:
    def __init__(self, root: str, commit: CommitFiles) -> None:
        self._root, self._commit = root, MountedFiles(commit)
        self._files: dict[str, str] = {}
        self._resources: set[str] = set()
        self._charts: dict[str, None] = {}
        self._problems: dict[BuildProblem, None] = {}
        self._remotes: dict[str, Position] = {}
        self._outside: set[str] = set()
        self._links: dict[str, str] = {}
        self._replaced: dict[str, list[ReplacedReference]] = {}
        # directory, whether its resources configure plug-ins, and the reference to it: path of the kustomization, line and column
        self._directories: list[tuple[str, bool, Position | None]] = [(root, False, None)]
        self._known_directories = {(root, False)}

    def resolve(self) -> Closure:
        main = ""
        for directory, plugins, referrer in self._directories:
            path = self._read_directory(directory, plugins, referrer)
            main = main or path
            if len(self._directories) > MAX_DIRECTORIES or len(self._files) > MAX_FILES:
                text = f"{self._root} needs more than {MAX_FILES} files or {MAX_DIRECTORIES} kustomizations: it is not built"
                self._problems[BuildProblem("kustomize-build", text, main)] = None
                break
        return Closure(
            self._root,
            main,
            self._files,
            frozenset(self._resources),
            tuple(self._list_problems()),
            tuple(self._charts),
            self._remotes,
            {path: tuple(references) for path, references in self._replaced.items()},
            frozenset(self._outside),
            self._links,
        )

    def _list_problems(self) -> list[BuildProblem]:
        found = list(dict.fromkeys(map(self._locate, self._problems)))
        more = len(found) - MAX_PROBLEMS
        if more > 0:
            last = found[MAX_PROBLEMS]
            found[MAX_PROBLEMS:] = [last._replace(message=f"{last.message}; {self._root} has {format_count(more, 'more problem')}")]
        return found

    def _locate(self, problem: BuildProblem) -> BuildProblem:
        """Return a problem in another repository at the reference to it."""
        scope = self._commit.find_scope(problem.path)
        problem = problem._replace(message=problem.message.replace(f"{REMOTE}/", ""))
        if not scope:
            return problem
        where = f"{problem.path.removeprefix(REMOTE + '/')}:{problem.line}:{problem.column}"
        return BuildProblem(problem.code, f"{problem.message} ({where})", *self._remotes.get(scope, (problem.path, 1, 1)))

    def _read_directory(self, directory: str, plugins: bool, referrer: Position | None) -> str:
        """Follow the references of the kustomization in a directory; return its path."""
        names = [name for name in sorted(KUSTOMIZATION_NAMES) if join_path(directory, name) in self._commit.entries]
        path = join_path(directory, names[0]) if names else join_path(directory, "kustomization.yaml")
        if len(names) != 1:
            found = f"it has {' and '.join(names)}" if names else "it has no kustomization.yaml"
            position = referrer or (path, 1, 1)
            self._problems[BuildProblem("kustomize-missing", f"{directory} cannot be built: {found}", *position)] = None
            return path
        blob = self._find(path, path, 1, 1)
        kustomization = self._commit.read_kustomization(blob, path) if blob else None
        if kustomization is None or not blob:
            self._problems.setdefault(BuildProblem("kustomize-build", f"{path} cannot be read", path))
            return path
        self._files[path] = blob
        for name, line in kustomization.misspelt:
            text = f"{name} is not the spelling of the field: kustomize accepts any case, gitsched only the documented one"
            self._problems[BuildProblem("kustomize-build", text, path, line)] = None
        if kustomization.helm:
            text = "helmChartInflationGenerator is retired, and gitsched does not render its charts: name them in helmCharts"
            self._problems[BuildProblem("kustomize-helm", text, path)] = None
        for chart in kustomization.charts:
            self._read_chart(directory, path, chart)
        for reference in kustomization.references:
            self._follow(directory, path, reference, plugins)
        return path

    def _follow(self, directory: str, path: str, reference: KustomizeReference, plugins: bool) -> None:
        target = self._find_place(resolve_path(directory, reference.path))
        position = reference.line, reference.column
        if target not in self._commit.directories and target not in self._commit.entries:
            remote = self._resolve_remote(directory, path, reference)
            if remote == REMOTE:
                return
            directory, target = (remote, self._find_place(remote)) if remote else (directory, target)
        if self._commit.find_scope(target) != self._commit.find_scope(directory):
            target = "../"
        if is_outside(target):
            text = f"{reference.field} names {reference.path}, which is outside of the repository: it is not read"
            self._problems[BuildProblem("kustomize-escape", text, path, *position)] = None
        elif target in self._commit.directories:
            is_plugin = reference.field in _PLUGIN_FIELDS
            if (reference.role != "input" or is_plugin) and (target, is_plugin) not in self._known_directories:
                self._known_directories.add((target, is_plugin))
                self._directories.append((target, is_plugin, (path, *position)))
        elif blob := self._find(target, path, *position, reference=reference):
            self._files[target] = blob
            unusable = find_unusable_content(self._commit.read_blob(blob))
            if unusable is not None:
                text = f"{reference.field} names {reference.path}: {unusable.message}"
                self._problems[BuildProblem(unusable.code, text, path, *position)] = None
            if directory != "." and not target.startswith(f"{directory}/"):
                self._outside.add(target)
            if reference.role == "resource":
                self._resources.add(target)
            if reference.field in _PLUGIN_FIELDS or plugins:
                self._read_plugins(directory, path, target, blob, reference)

    def _resolve_remote(self, directory: str, path: str, reference: KustomizeReference) -> str:
        """Return the path of a file or directory of another repository in the directory of a run; "" if the reference is no URL, and
        REMOTE if the files cannot be read, which is a problem."""
        base = parse_remote_base(reference.path)
        if base is None:
            return ""
        position = path, reference.line, reference.column
        reason = base if isinstance(base, str) else self._commit.mount(base)
        if reason or isinstance(base, str):
            self._problems[BuildProblem("kustomize-remote", _describe_remote(reference, base, reason), *position)] = None
            return REMOTE
        scope = self._commit.find_scope(path)
        self._remotes.setdefault(base.prefix, self._remotes[scope] if scope else position)
        target = posixpath.normpath(f"{base.prefix}/{base.path}")
        if self._commit.find_scope(target) != base.prefix:
            return "../"
        new = ReplacedReference(reference.line, reference.column, reference.path, posixpath.relpath(target, directory))
        lines = self._commit.read_blob(self._files[path]).decode("utf-8", "replace").split("\n")
        if not new.replace(lines):
            text = f"{reference.field} names {reference.path}: write this URL in one line, so that gitsched can replace it"
            self._problems[BuildProblem("kustomize-remote", text, *position)] = None
        self._replaced.setdefault(path, []).append(new)
        return target

    def _read_plugins(self, directory: str, path: str, file: str, blob: str, reference: KustomizeReference) -> None:
        """Follow the paths in the configuration of built-in plug-ins. Others are refused, as kustomize does without its alpha options."""
        for body in parse_plugins(self._commit.read_blob(blob)):
            if body.get("apiVersion", _BUILT_IN) != _BUILT_IN:
                text = (
                    f"{file} is the configuration of {body.get('kind')} ({body.get('apiVersion')}), which is no built-in plug-in of "
                    "kustomize: gitsched runs no programs of others; commit what it generates, or move it to a root of its own"
                )
                self._problems[BuildProblem("kustomize-plugin", text[:600], path, reference.line, reference.column)] = None
                continue
            if "Helm" in str(body.get("kind")):
                self._read_chart(directory, path, read_chart(body, reference.line))
            for name in list_plugin_paths(body):
                self._follow(directory, path, reference._replace(role="input", field="files", path=name), False)

    def _read_chart(self, directory: str, path: str, chart: KustomizeChart) -> None:
        """Add the files of a chart that the commit has. kustomize would fetch another one from the network."""
        target = self._find_place(resolve_path(directory, chart.path))
        if not chart.name or target.startswith(("../", "/")) or join_path(target, "Chart.yaml") not in self._commit.entries:
            repository, version = chart.repository, f" --version {chart.version}" if chart.version else ""
            oci = repository.startswith("oci://")
            source = f"{repository}/{chart.name}" if oci else f"{chart.name} --repo {repository}" if repository else chart.name
            cure = f"run `helm pull {source}{version} --untar --untardir {posixpath.dirname(target)}`, and commit it"
            if self._commit.find_scope(directory):
                cure = f"copy this base into the repository, with the chart that `helm pull {source}{version} --untar` gets"
            text = f"the Helm chart {chart.name} is not in {target}, and gitsched fetches none: {cure}"
            self._problems[BuildProblem("kustomize-helm", text, path, chart.line)] = None
        elif target not in self._charts:
            self._charts[target] = None
            found = resolve_chart(ChartRequest(target, "release"), self._commit)
            self._files.update(found.files)
            self._problems.update(dict.fromkeys(found.problems))
            contents = {file: self._commit.read_blob(blob) for file, blob in found.files.items()}
            self._problems.update(dict.fromkeys(list_unusable(found, contents)))

    def _find_place(self, path: str) -> str:
        """Return a path without symbolic links to directories on the way to it: kustomize reads a directory where it is itself."""
        directory, name = posixpath.dirname(path) or ".", posixpath.basename(path)
        is_link = self._commit.entries.get(path, ("", 0))[1] == SYMLINK_MODE
        if path in self._commit.directories or (directory in self._commit.directories and not is_link):
            return path
        found = follow_links(self._commit, path)
        if found.path not in self._commit.directories:
            found = follow_links(self._commit, directory)
            if found.path not in self._commit.directories:
                return path
            found = found._replace(path=join_path(found.path, name))
        if self._commit.find_scope(found.path) == self._commit.find_scope(path):
            self._links.update(found.links)
        return found.path

    def _find(self, target: str, path: str, line: int, column: int, *, reference: KustomizeReference | None = None) -> str:
        """Return the blob of a file, of the target of a symlink that stays inside of the commit; "" with a problem otherwise."""
        blob, current = find_blob(self._commit, target)
        if blob and self._commit.find_scope(current) == self._commit.find_scope(target):
            return blob
        code, text = self._describe_missing(target, current, reference)
        self._problems[BuildProblem(code, text, path, line, column)] = None
        return ""

    def _describe_missing(self, target: str, current: str, reference: KustomizeReference | None) -> tuple[str, str]:
        name, field = (reference.path, reference.field) if reference else (target, "resources")
        if self._commit.entries.get(target, ("", 0))[1] == SYMLINK_MODE:
            where = "outside of the repository" if is_outside(current) else "no file of the commit"
            return "kustomize-escape", f"{field} names {name}, a symbolic link to {where}: it is not followed"
        if is_outside(current):
            return (
                "kustomize-escape",
                f"{field} names {name}, to which a symbolic link leads out of the repository: it is not followed",
            )
        if self._commit.is_hidden(target):
            return HIDDEN, f"{field} names {name}, which belongs to others and is not readable here"
        return "kustomize-missing", f"{field} names {name}, which the commit does not have"


def _describe_remote(reference: KustomizeReference, base: RemoteBase | str, reason: str) -> str:
    if isinstance(base, RemoteBase):
        return f"{reference.field} names {reference.path}: {reason}"
    url = reference.path.partition("?")[0]
    if "pinned" not in reason and "no commit" not in reason:
        return f"{reference.field} names {reference.path}, and {reason}: correct the URL, or copy the files into this repository"
    return (
        f"{reference.field} names {reference.path}, and {reason}: append `?ref=` and the 40 digits of a commit id to the URL of the "
        f"repository, as `git ls-remote {url}` prints it, or copy the files into this repository"
    )
