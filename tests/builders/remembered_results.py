"""Remember what tests compute more than once: what kustomize prints, what a file parses to, and the digest of gitsched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from gitsched.build.process import BuildLimits, ProcessResult
from gitsched.decide import registry
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.manifests.parsed_file import ParsedFile
from gitsched.reconcile import package_digest

Run = Callable[[Path, Sequence[str], Path, BuildLimits], ProcessResult]
Digest = Callable[[Path, Path | None], str]
MAX_FILES = 20_000
"""Parsed files that are remembered: most are as small as one Deployment."""


def remember_builds(run: Run) -> Run:
    """Return a function as `run_isolated` that runs a program once for the same arguments, limits and files.

    Failures are not remembered, because they name the directory, nor runs that write files.
    """
    results: dict[bytes, ProcessResult] = {}

    def run_once(executable: Path, arguments: Sequence[str], directory: Path, limits: BuildLimits) -> ProcessResult:
        if limits.written:
            return run(executable, arguments, directory, limits)
        program = executable.stat()
        parts = [executable, program.st_size, program.st_mtime_ns, *arguments, limits]
        for path in sorted(directory.rglob("*")):
            content = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
            parts += [path.relative_to(directory), content]
        key = sha256(repr(parts).encode()).digest()
        if key in results:
            return results[key]
        done = run(executable, arguments, directory, limits)
        if done.exit_code == 0 and not done.exceeded:
            results[key] = done
        return done

    return run_once


def remember_digest(digest: Digest) -> Digest:
    """Return a function as `digest_package` that reads the files of the running gitsched once, not once for each cache directory."""
    running = Path(package_digest.__file__).parents[1]
    known: list[str] = []

    def digest_once(package: Path, directory: Path | None = None) -> str:
        if package != running or directory is None:
            return digest(package, directory)
        known[:] = known or [digest(package, directory)]
        return known[0]

    return digest_once


class RememberedFiles:
    """A function as `parse_file` that parses a file once for the same content and rules, also for other repositories.

    It does so while it is `active`: a test that replaces functions of gitsched parses its files itself.
    """

    def __init__(self, parse: Callable[..., ParsedFile]) -> None:
        self._parse = parse
        self._files: dict[object, ParsedFile] = {}
        self.active = True

    def __call__(self, data: bytes, *, path: str, validate: Any, shared: Any = None, **rules: Any) -> ParsedFile:
        if not self.active or shared is not None:
            return self._parse(data, path=path, validate=validate, shared=shared, **rules)
        name = path.rpartition("/")[2]
        validator = (getattr(validate, "func", validate), *sorted(getattr(validate, "keywords", {}).items()))
        apis = tuple(map(id, registry.policy_apis.values()))
        key = (data, name if name in KUSTOMIZATION_NAMES else name.rpartition(".")[2], validator, apis, *sorted(rules.items()))
        if (found := self._files.get(key)) is None:
            if len(self._files) >= MAX_FILES:
                self._files.clear()
            found = self._files[key] = self._parse(data, path=path, validate=validate, **rules)
        return found
