"""Find the program that builds kustomizations: kustomize itself, or the kustomize inside of kubectl."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path

from gitsched.build.process import BuildLimits, run_isolated
from gitsched.model.errors import Permanent
from gitsched.named_tuples import NamedTuple
from gitsched.temporary_directory import TemporaryDirectory

_VERSION_LIMITS = BuildLimits(output=1 << 16)
HELM = ".gitsched/helm"
"""The path of helm in the directory of a run."""
_NO_RESTRICTION = "--load-restrictor=LoadRestrictionsNone"
"""The closure has only files of the commit, also outside of the directory of the root, as Flux builds it."""


_versions: dict[str, str] = {}
"""The versions of the executables that this process has found."""


class Builder(NamedTuple):
    """An executable with its version, such as `kustomize v5.8.1` or `kubectl v1.37.1 (kustomize v5.8.1)`. `helm` renders the charts of
    kustomizations."""

    executable: Path
    version: str
    helm: Builder | None = None

    def make_arguments(self, root: str, *, charts: bool) -> list[str]:
        """Return the arguments that build a root, given its path below the directory of the run. With `charts` it may start HELM."""
        command = "build" if self.version.startswith("kustomize") else "kustomize"
        options = ["--enable-helm", "--helm-command={root}/" + HELM] if charts else []
        return [command, _NO_RESTRICTION, *options, "{root}/" + ("" if root == "." else root)]


def find_builder(known_versions: MutableMapping[str, str]) -> Builder:
    """Return the kubectl of the extra `gitsched[kustomize]`, else kustomize or kubectl on the PATH.

    The extra comes first because it pins the version. `known_versions` has the versions by executable; new ones are added. Raises
    Permanent if there is none.
    """
    for name, path in _list_candidates():
        builder = find_program(name, path, known_versions, _read_version)
        if builder is not None:
            return builder
    raise Permanent(
        "building kustomizations and Bundles needs kustomize, which is not installed: install gitsched[kustomize], or put a static "
        "executable of kustomize or kubectl on the PATH"
    )


def find_program(
    name: str, path: str, known_versions: MutableMapping[str, str], read_version: Callable[[str, Path], str]
) -> Builder | None:
    """Return a program with its version; None if `read_version` returns "" for it, which is called once for each executable."""
    executable = Path(path).resolve()
    status = executable.stat()
    key = f"{name} {executable} {status.st_size} {status.st_mtime_ns}"
    if key not in known_versions:
        known_versions[key] = _versions[key] if key in _versions else read_version(name, executable)
    _versions[key] = known_versions[key]
    return Builder(executable, known_versions[key]) if known_versions[key] else None


def read_program_version(executable: Path, arguments: Sequence[str]) -> str:
    """Return what a program prints; "" if it fails."""
    with TemporaryDirectory("version") as directory:
        try:
            done = run_isolated(executable, arguments, directory, _VERSION_LIMITS)
        except OSError:
            return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.exit_code == 0 else ""


def list_executables(name: str) -> list[str]:
    """Return the executables with a name, that beside the Python interpreter before that on the PATH."""
    beside = Path(sysconfig.get_path("scripts")) / name
    found = shutil.which(name)
    return [*([str(beside)] if os.access(beside, os.X_OK) else []), *([found] if found else [])]


def _list_candidates() -> list[tuple[str, str]]:
    """Return the programs that may build kustomizations. The kubectl beside the interpreter is that of the extra."""
    kubectl = list_executables("kubectl")
    extra = [("kubectl", path) for path in kubectl[:1] if Path(path).parent == Path(sysconfig.get_path("scripts"))]
    return extra + [(name, path) for name in ("kustomize", "kubectl") if (path := shutil.which(name))]


def _read_version(name: str, executable: Path) -> str:
    """Return the version of an executable; "" if it is not one that builds kustomizations."""
    text = read_program_version(executable, ["version"] if name == "kustomize" else ["version", "--client", "--output=json"])
    if name == "kustomize":
        return f"kustomize {text.split()[-1]}" if len(text.split()) == 1 else ""
    try:
        found = json.loads(text)
        return f"kubectl {found['clientVersion']['gitVersion']} (kustomize {found['kustomizeVersion']})"
    except (ValueError, KeyError, TypeError):
        return ""
