"""Build one kustomize root: lay out its files, run kustomize, and separate what it prints into objects with their origins."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from gitsched.build.builder import HELM, Builder
from gitsched.build.closure import Closure, ReplacedReference
from gitsched.build.commit_files import BuildProblem
from gitsched.build.process import DEFAULT_LIMITS, BuildLimits
from gitsched.build.scratch import MAX_SIZE, InputError, run_on_files, select_contents
from gitsched.build.template_calls import check_stable, is_error

_FORMAT = 3
"""Changes with what `BuildResult` means, so that cached results of other versions are not read."""
_WITH_ORIGINS = b"\nbuildMetadata: [originAnnotations]\n"
_DOCUMENT = re.compile(rb"^---\n", re.MULTILINE)
_METADATA = re.compile(rb"^metadata:\n((?: .*\n|\n)+)", re.MULTILINE)
_ANNOTATIONS = re.compile(rb"^  annotations:\n((?:    .*\n|\n)+)", re.MULTILINE)
_ORIGIN_ENTRY = re.compile(rb"^    config\.kubernetes\.io/origin: \|\n((?:      .*\n|\n)+)", re.MULTILINE)
_ORIGIN_FIELD = re.compile(r"^(path|configuredIn): (.+)$", re.MULTILINE)
_ANNOTATION_PATCH = re.compile(rb"/metadata/annotations|metadata\.annotations|annotations=|patch: (?:replace|delete)")
_EMPTY_ANNOTATIONS = re.compile(
    rb"annotations\"?: *(?:\{ *\}|null|~)|^([ -]*)annotations: *(?:#[^\n]*)?\n(?!\1 +[^\s])", re.MULTILINE
)
"""Texts with which a kustomization may read, replace or remove annotations as a whole, in files other than resources, and empty annotations
in any file: origins could change what it builds, so it is built without them."""


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


def build_root(closure: Closure, blobs: Mapping[str, bytes], builder: Builder, limits: BuildLimits = DEFAULT_LIMITS) -> BuildResult:
    """Build a root whose references are resolved. The objects have the bytes that kustomize prints without origins.

    `blobs` are the contents of all files of the closure.
    """
    contents = select_contents(closure.files, blobs)
    if isinstance(contents, str):
        return BuildResult((), f"{closure.root}: {contents}")
    for path, references in closure.replaced.items():
        contents[path] = _replace_references(contents[path], references)
    main = contents[closure.kustomization]
    annotated = (
        not closure.charts
        and _can_annotate(main)
        and not any(
            _EMPTY_ANNOTATIONS.search(data) or (path not in closure.resources and _ANNOTATION_PATCH.search(data))
            for path, data in contents.items()
        )
    )
    if annotated:
        contents[closure.kustomization] = main.rstrip(b"\n") + _WITH_ORIGINS
    done = _run(closure, contents, builder, limits)
    if annotated and not done:  # kustomize rejects an empty kustomization, but not one with buildMetadata
        done = _run(closure, {**contents, closure.kustomization: main}, builder, limits)
    if isinstance(done, str):
        return BuildResult((), done, lasting=isinstance(done, InputError) and not closure.charts)
    problems = []
    if closure.charts:
        charts = {path: contents[path] for path in closure.list_chart_files()}
        name = f"a chart of {closure.kustomization}"
        problems = check_stable(name, charts, done, lambda changed: _run(closure, {**contents, **changed}, builder, limits))
        if any(map(is_error, problems)):
            return BuildResult((), "", tuple(problems))
    texts = [text for text in _DOCUMENT.split(done) if text.strip()]
    return BuildResult(
        tuple(_locate(closure, *_read_origin(text)) if annotated else BuiltObject(text, "", False) for text in texts),
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


def _can_annotate(text: bytes) -> bool:
    """Return whether buildMetadata can be appended to a kustomization: a block mapping in one document without that field."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(b"#")]
    lines = lines[1:] if lines and lines[0].rstrip() == b"---" else lines
    if not lines or b"buildmetadata" in text.lower() or any(line.startswith((b"---", b"...")) for line in lines):
        return False
    return re.match(rb"[A-Za-z]+:", lines[0]) is not None


def _read_origin(text: bytes) -> tuple[bytes, str, bool]:
    """Return a document without its annotation of the origin, the path in it, and whether the object is generated."""
    metadata = _METADATA.search(text)
    annotations = _ANNOTATIONS.search(text, *metadata.span(1)) if metadata else None
    entry = _ORIGIN_ENTRY.search(text, *annotations.span(1)) if annotations else None
    if annotations is None or entry is None:
        return text, "", False
    fields = dict(_ORIGIN_FIELD.findall(re.sub(r"^      ", "", entry[1].decode("utf-8", "replace"), flags=re.MULTILINE)))
    start, end = entry.span()
    if (start, end) == annotations.span(1):
        start = annotations.start()  # there is no other annotation
    generated = "configuredIn" in fields
    return text[:start] + text[end:], fields.get("configuredIn" if generated else "path", ""), generated


def _locate(closure: Closure, text: bytes, path: str, generated: bool) -> BuiltObject:
    path = posixpath.normpath(posixpath.join(closure.root, path)) if path else ""
    return BuiltObject(text, closure.follow_links(path), generated)
