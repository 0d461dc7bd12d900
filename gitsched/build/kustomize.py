"""Build one kustomize root: lay out its files, run kustomize, and separate what it prints into objects with their origins."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

from gitsched.build.builder import HELM, Builder
from gitsched.build.chart_stability import ChartSources, check_stable, is_error, is_repeatable
from gitsched.build.closure import Closure, ReplacedReference
from gitsched.build.commit_files import BuildProblem
from gitsched.build.object_origins import (
    ORIGIN_OPTION,
    AnnotatedOrigin,
    ObjectSources,
    can_annotate,
    find_source,
    may_change_identities,
    may_lose_annotations,
    read_origin,
)
from gitsched.build.process import DEFAULT_LIMITS, BuildLimits
from gitsched.build.scratch import MAX_SIZE, InputError, run_on_files, select_contents
from gitsched.named_tuples import NamedTuple

_FORMAT = 4
"""Changes with what `BuildResult` means, so that cached results of other versions are not read."""
_DOCUMENT = re.compile(rb"^---\n", re.MULTILINE)


class BuiltObject(NamedTuple):
    """An object as kustomize prints it. `path` is the file that it comes from, or the kustomization that `generated` it; "" if unknown."""

    text: bytes
    path: str
    generated: bool


class BuildResult(NamedTuple):
    """What a root builds, or why it fails. `problems` are those of its charts; if one is an error, nothing is built. `lasting`: it fails in
    each run with the same files and programs."""

    objects: tuple[BuiltObject, ...]
    error: str = ""
    problems: tuple[BuildProblem, ...] = ()
    lasting: bool = False

    @property
    def failed(self) -> bool:
        """Whether nothing is built."""
        return bool(self.error) or any(map(is_error, self.problems))

    def describe_failure(self) -> str:
        """Return why nothing is built."""
        return self.error or next((problem.message for problem in self.problems if is_error(problem)), "")


def compute_build_key(closure: Closure, builder: Builder) -> str:
    """Return a digest of everything that a build depends on: the files by path and content, the root, and the version of the builder."""
    rows = [f"{_FORMAT}\n{builder.version}", *closure.list_inputs()]
    if closure.charts and builder.helm is not None:
        rows.append(builder.helm.version)
    return sha256("\0".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


def build_root(
    closure: Closure,
    blobs: Mapping[str, bytes],
    builder: Builder,
    limits: BuildLimits = DEFAULT_LIMITS,
    sources: ObjectSources | None = None,
) -> BuildResult:
    """Build a root whose references are resolved. The objects have the bytes that kustomize prints without origins.

    `blobs` are the contents of all files of the closure. With `sources`, the files of its objects by kind and name, kustomize need not say
    where they come from, which takes it a third of its time, unless the root makes objects or changes their names.
    """
    contents = select_contents(closure.files, blobs)
    if isinstance(contents, str):
        return BuildResult((), f"{closure.root}: {contents}")
    for path, references in closure.replaced.items():
        contents[path] = _replace_references(contents[path], references)
    if sources is not None and not may_change_identities(contents[path] for path in contents if path not in closure.resources):
        done = _run(closure, contents, builder, limits)
        if isinstance(done, str):
            return BuildResult((), done, lasting=isinstance(done, InputError))
        texts = _split_documents(done)
        paths = [find_source(text, sources) for text in texts]
        if all(paths):
            return BuildResult(tuple(BuiltObject(text, path, False) for text, path in zip(texts, paths, strict=True)))
    main = contents[closure.kustomization]
    annotated = (
        not closure.charts
        and can_annotate(main)
        and not any(may_lose_annotations(data, is_resource=path in closure.resources) for path, data in contents.items())
    )
    if annotated:
        contents[closure.kustomization] = main.rstrip(b"\n") + ORIGIN_OPTION
    done = _run(closure, contents, builder, limits)
    if annotated and not done:  # kustomize rejects an empty kustomization, but not one with buildMetadata
        done = _run(closure, {**contents, closure.kustomization: main}, builder, limits)
    if isinstance(done, str):
        return BuildResult((), done, lasting=isinstance(done, InputError) and not closure.charts)
    problems = []
    if closure.charts:
        files = {path: contents[path] for path in closure.list_chart_files()}
        others = {path: data for path, data in contents.items() if path not in files}
        rendered = ChartSources(f"a chart of {closure.kustomization}", closure.charts, files, others)
        problems = check_stable(rendered, done, lambda changed: _run(closure, {**contents, **changed}, builder, limits))
        if any(map(is_error, problems)):
            return BuildResult((), "", tuple(problems), lasting=all(map(is_repeatable, problems)))
    texts = _split_documents(done)
    return BuildResult(
        tuple(_locate(closure, read_origin(text)) if annotated else BuiltObject(text, "", False) for text in texts),
        "",
        tuple(problems),
    )


def _run(closure: Closure, contents: Mapping[str, bytes], builder: Builder, limits: BuildLimits) -> bytes | str:
    arguments = builder.make_arguments(closure.root, charts=bool(closure.charts))
    if closure.charts and builder.helm is not None:
        limits = limits._replace(written=MAX_SIZE)  # kustomize writes the values of charts to files
        programs = {HELM: builder.helm.executable}
        return run_on_files(builder.executable, builder.version, arguments, contents, limits, programs, closure.links)
    return run_on_files(builder.executable, builder.version, arguments, contents, limits, links=closure.links)


def _replace_references(text: bytes, references: Iterable[ReplacedReference]) -> bytes:
    lines = text.decode("utf-8", "replace").split("\n")
    # From the right, so that the columns of the references before it stay as they are.
    for reference in sorted(references, key=lambda reference: -reference.column):
        reference.replace(lines)
    return "\n".join(lines).encode("utf-8")


def _split_documents(text: bytes) -> list[bytes]:
    return [part for part in _DOCUMENT.split(text) if part.strip()]


def _locate(closure: Closure, origin: AnnotatedOrigin) -> BuiltObject:
    path = posixpath.normpath(posixpath.join(closure.root, origin.path)) if origin.path else ""
    return BuiltObject(origin.text, closure.follow_links(path), origin.generated)
