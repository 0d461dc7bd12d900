"""Tell whether a source that a delivery tool reads is this repository, and which of its files the tool sees there."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from gitsched.build.flux import BOOTSTRAP_SOURCE
from gitsched.decide.catalog import RawDocument
from gitsched.git.urls import identify_repository
from gitsched.manifests.flux_ignore import FluxIgnore
from gitsched.manifests.sourceignore import IGNORE_FILE
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.builds.tool_documents import choose_nearest
from gitsched.reconcile.source.commit_tree import CommitTree
from gitsched.reconcile.source.ignore_files import MAX_IGNORE_SIZE

MAX_ARTIFACT_FILES = 50_000
"""Files of one artifact that an ArtifactGenerator makes."""

ARTIFACT_KINDS = frozenset(("ExternalArtifact", "OCIRepository", "Bucket"))
"""Sources that may have the files of one directory of this repository."""
NO_ROOT = "it is not known of which directory of this repository that is: name the directory in source.deliveryTools.roots of gitsched.yaml"

ObjectName = tuple[str, str, str]
"""Kind, namespace and name."""


class SourceIdentity:
    """The sources of this repository.

    A source is this repository if settings name it; if it has the URL of the remote `origin`; if it is called flux-system, as
    `flux bootstrap` names it; or if its URL is unknown, or ends with the name of this repository, and the commit has the directory that
    the tool reads. Where the source flux-system reads a branch of a repository, a source with another branch of it is another tree.
    `declared` are the sources in the commit, by kind, namespace and name.
    """

    def __init__(
        self, named: Iterable[str], own_url: str | None, declared: Mapping[ObjectName, Sequence[RawDocument]], output_branch: str
    ) -> None:
        names = list(named)
        self._named = frozenset((*names, *(identify_repository(name) for name in names if "/" in name)))
        self._own = identify_repository(own_url) if own_url else ""
        self._declared, self._output_branch = dict(declared), output_branch

    def declare(self, document: RawDocument) -> None:
        """Add a source that a build prints, in place of the one that its file has."""
        name, path = (document.kind, document.namespace, document.name), document.origin and document.origin.path
        others = [known for known in self._declared.get(name, ()) if (known.origin and known.origin.path) != path]
        self._declared[name] = [*others, document]
        vars(self).pop("_bootstrap_branches", None)

    def find_source(self, source: ObjectName, file: str) -> RawDocument | None:
        """Return the document of a source of Flux, for a document in a file that names it; None if there is none, or several."""
        return choose_nearest(self._declared.get(source, ()), file)

    def is_flux_source(self, source: ObjectName, path: str, commit: CommitTree, file: str) -> bool:
        """Return whether a source of Flux is this repository, for a document in a file that names it."""
        document = choose_nearest(self._declared.get(source, ()), file)
        body = document.body if document is not None else {}
        if _read_branch(body) == self._output_branch:
            return False
        if source[2] in self._named:
            return True
        if self._reads_other_branch(body):
            return False
        url = get_field(body, "spec", "url")
        return self._is_own(url if isinstance(url, str) else "", path, commit, source[2] == BOOTSTRAP_SOURCE)

    def describe_flux_source(self, source: ObjectName, file: str) -> str:
        """Describe a source of Flux that is not this repository, for a document in a file that names it."""
        document = choose_nearest(self._declared.get(source, ()), file)
        body = document.body if document is not None else {}
        url, branch = get_field(body, "spec", "url"), _read_branch(body)
        details = ", ".join([*([str(url)] if url else []), *([f"branch {branch}"] if branch else [])])
        return f"{source[0]} {source[1]}/{source[2]}{f' ({details})' if details else ''}"

    def _reads_other_branch(self, body: Body) -> bool:
        """Return whether a source has another branch than those that `flux bootstrap` reads of the same repository."""
        branch, url = _read_branch(body), get_field(body, "spec", "url")
        if not branch or not isinstance(url, str):
            return False
        return bool(self._bootstrap_branches) and branch not in self._bootstrap_branches.get(identify_repository(url), {branch})

    @cached_property
    def _bootstrap_branches(self) -> dict[str, set[str]]:
        """The branches of the sources called flux-system, by repository. Different clusters may read different ones."""
        found: dict[str, set[str]] = {}
        for (kind, _, name), documents in self._declared.items():
            for document in documents if (kind, name) == ("GitRepository", BOOTSTRAP_SOURCE) else ():
                branch, url = _read_branch(document.body), get_field(document.body, "spec", "url")
                if branch and isinstance(url, str):
                    found.setdefault(identify_repository(url), set()).add(branch)
        return found

    def is_own_url(self, url: str, path: str, commit: CommitTree) -> bool:
        """Return whether a URL is that of this repository; `path` is "" if it says nothing."""
        return self._is_own(url, path or ".", commit, False)

    def _is_own(self, url: str, path: str, commit: CommitTree, bootstrap: bool) -> bool:
        known = identify_repository(url) if url else ""
        if self._named:
            return known in self._named
        if known and known == self._own:
            return True
        same_name = not known or not self._own or posixpath.basename(known) == posixpath.basename(self._own)
        return bootstrap or (same_name and path != "." and path in commit.directories)

    def find_generator(self, namespace: str, name: str, file: str) -> RawDocument | None:
        """Return the ArtifactGenerator that makes an ExternalArtifact for a document in a file that names it."""
        found = [
            document
            for (kind, where, _), documents in self._declared.items()
            for document in documents
            if kind == "ArtifactGenerator" and where == namespace and _find_artifact(document.body, name) is not None
        ]
        return choose_nearest(found, file)


def _read_branch(source: Body) -> str:
    """Return the branch of a GitRepository; "" for a tag, a commit or a default. A tag or a commit overrules the branch."""
    reference = as_object(get_field(source, "spec", "ref"))
    if any(reference.get(field) for field in ("name", "semver", "tag", "commit")):
        name = str(reference.get("name") or "")
        return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else ""
    return str(reference.get("branch") or "")


class Artifact(NamedTuple):
    """The files of an ExternalArtifact: the path in the commit of each one by its path in the artifact. `problem` says why they are not
    known, or is ""."""

    files: Mapping[str, str]
    problem: str = ""


def _find_artifact(generator: Body, name: str) -> Body | None:
    artifacts = list_objects(as_object(generator.get("spec")).get("artifacts"))
    return next((entry for entry in artifacts if entry.get("name") == name), None)


def read_artifact(
    generator: RawDocument, name: str, identity: SourceIdentity, commit: CommitTree, list_roots: Callable[[str, str], list[str]]
) -> Artifact:
    """Return the files that an ArtifactGenerator copies into an artifact. `list_roots` returns the directories of the commit that an
    artifact may be of, given a path in it and the file that names it. Source: fluxcd/source-watcher."""
    namespace, file = generator.namespace, generator.path
    spec = as_object(generator.body.get("spec"))
    own = {
        f"@{source.get('alias')}": str(source.get("kind"))
        for source in list_objects(spec.get("sources"))
        if identity.is_flux_source(
            (str(source.get("kind")), str(source.get("namespace") or namespace), str(source.get("name"))), ".", commit, file
        )
    }
    files: dict[str, str] = {}
    for copy in list_objects((_find_artifact(generator.body, name) or {}).get("copy")):
        source, _, pattern = str(copy.get("from") or "").partition("/")
        alias, _, target = str(copy.get("to") or "").partition("/")
        if source not in own or alias != "@artifact" or copy.get("exclude") or copy.get("strategy") not in (None, "", "Overwrite"):
            return Artifact({}, f"the artifact {name} is copied from another source, or with options that gitsched does not know")
        recursive = pattern == "**" or pattern.endswith("/**")
        base = posixpath.normpath(pattern.removesuffix("**").rstrip("/") or ".")
        if any(character in base for character in "*?[]"):
            return Artifact({}, f"the artifact {name} is copied by the pattern {pattern}, which gitsched does not know")
        if own[source] in ARTIFACT_KINDS and base not in commit.entries:
            roots = list_roots(base, file)
            if len(roots) > 1 or not roots[0]:
                return Artifact({}, f"the artifact {name} is copied from {base} of another artifact, and {NO_ROOT}")
            base = posixpath.normpath(posixpath.join(roots[0], base))
        if base in commit.entries:
            place = posixpath.join(target, posixpath.basename(base)) if target == "" or target.endswith("/") else target
            files[posixpath.normpath(place)] = base
        prefix = "" if base == "." else f"{base}/"
        inside = target if recursive else posixpath.join(target, posixpath.basename(base))
        below = (path for path in commit.entries if path.startswith(prefix))
        files.update((posixpath.normpath(posixpath.join(inside, path[len(prefix) :])), path) for path in below)
        if len(files) > MAX_ARTIFACT_FILES:
            return Artifact({}, f"the artifact {name} has more than {MAX_ARTIFACT_FILES} files")
    return Artifact(files)


def read_flux_exclusions(commit: CommitTree, more: str = "") -> FluxIgnore:
    """Return the rules of the files that Flux leaves out of its copy of this repository; `more` are those of the source, the last ones."""
    texts = {
        posixpath.dirname(path): commit.read_blob(blob).decode("utf-8", "replace")
        for path, (blob, _) in commit.entries.items()
        if posixpath.basename(path) == IGNORE_FILE and commit.repository.blob_size(blob) <= MAX_IGNORE_SIZE
    }
    return FluxIgnore(texts, more)
