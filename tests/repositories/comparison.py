"""Place every kustomize root of a repository on a cluster of its own, and compare what is delivered with `kubectl kustomize`."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from gitsched.build.builder import find_builder
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES

FLEET = "gitsched-fleet"
"""The directory with the Cluster, Bundle and policy documents. Everything else of the repository stays as it is."""
_CLUSTER = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {syncMode: Pull}\n"
_BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: %s, namespace: default}\nspec: {path: %s}\n"
_POLICY = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: %s, namespace: default}\nspec:\n"
    "  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle, name: %s}]\n"
    "  placement: {clusterAffinity: {clusterNames: [%s]}}\n"
)
_NAME = re.compile(r"^metadata:\n  name: ([a-z0-9.-]+)$(?!\n  labels)", re.MULTILINE)
_MAX_EDITS = 50
_SEPARATOR = re.compile(rb"^---\n", re.MULTILINE)
_READ_BY_GITSCHED = re.compile(
    rb"^apiVersion: (?:gitsched\.io|(?:cluster|work)\.open-cluster-management\.io|(?:policy|cluster|work|apps)\.karmada\.io)/"
    rb"|^kind: Namespace\nmetadata:\n(?:  .*\n)*?  name: (?:default|kube-system|kube-public|kube-node-lease|flux-system|argocd)\n",
    re.MULTILINE,
)
"""Documents that are never delivered: those that gitsched reads from their own files, and protected Namespaces."""
_OWN_FILES = ("cluster.json", "gitsched-placement.yaml", "kustomization.yaml")
_ADDED_NAMESPACE = re.compile(rb"^kind: Namespace$.*^    argocd.argoproj.io/sync-options: ", re.MULTILINE | re.DOTALL)


class Root(NamedTuple):
    """A directory with a kustomization; `cluster` gets what it builds."""

    directory: str
    cluster: str


class Comparison(NamedTuple):
    """What differs, by root: documents that only kubectl prints, and documents that only gitsched delivers."""

    missing: dict[str, list[bytes]]
    surplus: dict[str, list[bytes]]


def list_roots(repository: Path) -> list[Root]:
    """Return the roots that are no components, in the order of their paths."""
    listed = git(repository, "ls-files", "-z").split("\0")
    files = [path for path in listed if path.rpartition("/")[2] in KUSTOMIZATION_NAMES]
    texts = {path: (repository / path).read_text(errors="replace") for path in files if (repository / path).is_file()}
    directories = [
        str(Path(path).parent) for path, text in texts.items() if not re.search(r"^kind: *Component\b", text, re.MULTILINE)
    ]
    return [Root(directory, f"root-{number}") for number, directory in enumerate(sorted(set(directories)))]


def git(repository: Path, *arguments: str) -> str:
    """Run git; return what it prints."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(["git", "-C", str(repository), *identity, *arguments], check=True, capture_output=True, text=True).stdout


def build_with_kubectl(repository: Path, roots: list[Root]) -> dict[Root, bytes]:
    """Return what `kubectl kustomize` prints for each root that it builds without the network, without any other directory."""
    executable = str(find_builder({}).executable)
    nowhere = {
        "PATH": "/nonexistent",
        "HOME": "/nonexistent",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "HTTPS_PROXY": "http://127.0.0.1:1",
    }
    command = [executable, "kustomize", "--load-restrictor=LoadRestrictionsNone"]

    def build(root: Root) -> bytes | None:
        done = subprocess.run(
            [*command, root.directory], check=False, cwd=repository, capture_output=True, env=nowhere, timeout=120
        )
        return done.stdout if done.returncode == 0 else None

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return {root: text for root, text in zip(roots, pool.map(build, roots), strict=True) if text is not None}


def write_fleet(repository: Path, roots: list[Root]) -> None:
    """Commit a cluster, a Bundle and a policy for each root."""
    fleet = repository / FLEET
    fleet.mkdir()
    for root in roots:
        name = root.cluster
        texts = (_CLUSTER % name, _BUNDLE % (name, root.directory), _POLICY % (name, name, name))
        (fleet / f"{name}.yaml").write_text("---\n".join(texts))
    # kubectl does not know the options of Flux and Argo CD, so their documents do not count.
    source = "{ignore: ['!/%s/'], deliveryTools: {ignore: ['*']}}"
    settings = f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {{source: {source}}}\n"
    (repository / "gitsched.yaml").write_text(settings % FLEET)
    git(repository, "add", "--force", "gitsched.yaml")
    git(repository, "add", "--force", FLEET)
    git(repository, "commit", "-q", "-m", "Add a fleet")


def run_gitsched(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run gitsched in a repository."""
    command = [sys.executable, "-m", "gitsched", *arguments, "--cache-dir", str(repository.parent / "cache")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(command, check=False, cwd=repository, capture_output=True, text=True, env=environment)


def read_delivered(repository: Path, root: Root) -> list[bytes]:
    """Return the manifests in the directory of a cluster, without the files about the cluster."""
    directory = f"placements:clusters/{root.cluster}"
    shown = subprocess.run(["git", "-C", str(repository), "archive", directory], check=False, capture_output=True)
    if shown.returncode != 0:
        return []
    found = []
    with tarfile.open(fileobj=io.BytesIO(shown.stdout)) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.isfile() and member.name not in _OWN_FILES else None
            text = file.read() if file is not None else b""
            if text:
                found.append(text)
    return found


def compare(repository: Path, expected: dict[Root, bytes]) -> Comparison:
    """Compare what gitsched delivered with what kubectl printed."""
    missing: dict[str, list[bytes]] = {}
    surplus: dict[str, list[bytes]] = {}
    for root, text in expected.items():
        wanted = Counter(part for part in _SEPARATOR.split(text) if part.strip() and not _READ_BY_GITSCHED.search(part))
        delivered = Counter(read_delivered(repository, root))
        if wanted - delivered:
            missing[root.directory] = list((wanted - delivered).elements())
        more = [part for part in (delivered - wanted).elements() if not _ADDED_NAMESPACE.search(part)]
        more = [part for part in more if not _READ_BY_GITSCHED.search(part)]  # protected, and annotated never to be pruned
        if more:
            surplus[root.directory] = more
    return Comparison(missing, surplus)


def change_base(repository: Path, expected: dict[Root, bytes]) -> tuple[set[str], set[str]]:
    """Change a file that several roots build.

    Return the clusters for which kubectl prints something else, and those whose manifests the plan changes.
    """
    _edit_shared_file(repository, expected)
    git(repository, "commit", "-q", "-a", "-m", "Change a base")
    changed = build_with_kubectl(repository, list(expected))
    planned = run_gitsched(repository, "plan", "-o", "json")
    manifests = json.loads(planned.stdout)["manifests"]
    clusters = {cluster for manifest in manifests for cluster in manifest["clusters"]}
    return {root.cluster for root, text in expected.items() if changed.get(root) != text}, clusters


def _edit_shared_file(repository: Path, expected: dict[Root, bytes]) -> None:
    """Add a label to the object whose name most roots print, and that is in a file which they build."""
    users: dict[str, list[Root]] = {}
    for path in git(repository, "ls-files", "*.yaml").split("\n"):
        file = repository / path
        text = file.read_text(errors="replace") if path and file.is_file() and not path.startswith(FLEET) else ""
        name = _NAME.search(text)
        if name is not None and "\n---" not in text:
            needle = f"\n  name: {name[1]}\n".encode()
            users[path] = [root for root, printed in expected.items() if needle in printed]
    for path, roots in sorted(users.items(), key=lambda entry: (-len(entry[1]), entry[0]))[:_MAX_EDITS]:
        before = (repository / path).read_text()
        (repository / path).write_text(_NAME.sub(r"\g<0>\n  labels: {gitsched-test: changed}", before, count=1))
        if any(build_with_kubectl(repository, [root]).get(root, expected[root]) != expected[root] for root in roots[:3]):
            return
        (repository / path).write_text(before)
