"""Remember what tests compute more than once: what kustomize and helm print, what a file parses to, and the digest of gitsched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from gitsched.build import process, scratch
from gitsched.build.process import BuildLimits
from gitsched.decide import registry
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.manifests.parsed_file import ParsedFile
from gitsched.reconcile import package_digest

Run = Callable[..., bytes | str]
Digest = Callable[[Path, Path | None], str]
MAX_FILES = 20_000
"""Parsed files that are remembered: most are as small as one Deployment."""


def remember_builds(run: Run) -> Run:
    """Return a function as `run_on_files` that runs a program once for the same arguments, limits and files.

    Failures of which the files are not the cause are not remembered. A test that replaces `run_isolated` runs its programs itself.
    """
    results: dict[bytes, bytes | str] = {}

    def run_once(
        executable: Path,
        version: str,
        arguments: Sequence[str],
        contents: Mapping[str, bytes],
        limits: BuildLimits,
        *more: Any,
        **named: Any,
    ) -> bytes | str:
        if scratch.run_isolated is not process.run_isolated:
            return run(executable, version, arguments, contents, limits, *more, **named)
        program = (executable, executable.stat().st_size, executable.stat().st_mtime_ns, version)
        key = sha256(repr((*program, arguments, sorted(contents.items()), limits, more, named)).encode()).digest()
        if (found := results.get(key)) is not None:
            return found
        done = run(executable, version, arguments, contents, limits, *more, **named)
        if isinstance(done, bytes | scratch.InputError):
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
