"""Simulate which objects Flux and Argo CD delete in the clusters while they follow the commits of a repository, by their documented rules.

Flux: a Kustomization labels what it applies, and deletes objects with its labels that left its inventory (`prune`), or all of them when
it is deleted itself, unless it is suspended (kustomize-controller, `finalize`). Argo CD: an Application tracks what it syncs, and deletes
objects with its tracking id that left its source (`automated.prune`), or all of them when it is deleted with the finalizer; an
ApplicationSet owns its Applications.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Manifest = dict[str, Any]
Identity = tuple[str, str, str, str]
"""API group, kind, namespace and name."""
FINALIZER = "resources-finalizer.argocd.argoproj.io"
TOOLS = ("kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "argoproj.io")
"""API groups of the objects that are removed on purpose."""


class State(NamedTuple):
    """What the tools read: a commit of the source, and of the output branch ("" without one)."""

    subject: str
    source: str
    output: str


class Repository:
    """Commits of a repository, and the objects that kustomize builds from them."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self._printed: dict[tuple[str, ...], str] = {}
        self._built: dict[tuple[str, ...], list[Manifest]] = {}
        self._scratch = tempfile.TemporaryDirectory()

    def git(self, *arguments: str) -> str:
        """Return what git prints; it runs once for the same arguments."""
        if arguments not in self._printed:
            done = subprocess.run(["git", *arguments], cwd=self.at, capture_output=True, text=True, check=True)
            self._printed[arguments] = done.stdout.strip()
        return self._printed[arguments]

    def list_states(self, last: str) -> list[State]:
        """Return the states after each commit of the source up to the one with the subject `last`."""
        sources = [line.split(" ", 2) for line in self.git("log", "--reverse", "--format=%H %ct %s", "main").splitlines()]
        outputs = [line.split() for line in self.git("log", "--reverse", "--format=%H %ct", "placements").splitlines()]
        ends = [*(int(date) for _, date, _ in sources[1:]), 1 << 62]
        states = []
        for (commit, _, subject), end in zip(sources, ends, strict=True):
            states.append(State(subject, commit, next((out for out, date in reversed(outputs) if int(date) < end), "")))
            if subject == last:
                return states
        raise AssertionError(f"no commit {last!r}")

    def read(self, commit: str, path: str) -> list[Manifest]:
        """Return the documents of the files below a path, as Flux and Argo CD read a directory without kustomization.yaml."""
        names = self.git("ls-tree", "-r", "--name-only", commit, f"{path}/").splitlines()
        wanted = [name for name in names if name.endswith((".yaml", ".json")) and not name.endswith("kustomization.yaml")]
        return [body for name in wanted for body in yaml.safe_load_all(self.git("show", f"{commit}:{name}")) if body]

    def build(self, commit: str, path: str) -> list[Manifest]:
        """Return what kustomize builds from a directory, or what its files contain. Directories at the root do not refer to each other."""
        path = path.removeprefix("./")
        key = (self.git("rev-parse", f"{commit}:{path.split('/')[0]}"), path)
        if key in self._built:
            return self._built[key]
        if not self.git("ls-tree", commit, f"{path}/kustomization.yaml"):
            self._built[key] = self.read(commit, path)
        else:
            directory = Path(self._scratch.name) / key[0]
            directory.mkdir(exist_ok=True)
            archive = subprocess.run(["git", "archive", commit], cwd=self.at, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x"], cwd=directory, input=archive, check=True)
            done = subprocess.run(["kubectl", "kustomize", directory / path], capture_output=True, text=True, check=True)
            self._built[key] = list(yaml.safe_load_all(done.stdout))
        return self._built[key]


def identify(body: Manifest) -> Identity:
    """Return the identity of an object."""
    metadata = body["metadata"]
    return body["apiVersion"].rpartition("/")[0], body["kind"], metadata.get("namespace", ""), metadata["name"]


def has_option(body: Manifest, annotation: str, option: str) -> bool:
    """Return whether a comma-separated annotation has an option."""
    return option in body["metadata"].get("annotations", {}).get(annotation, "").split(",")


class FluxCluster:
    """A cluster with its own Flux; `flux-system` reads the cluster's directory on main."""

    def __init__(self, name: str, repository: Repository) -> None:
        self.repository = repository
        root = {"path": f"clusters/{name}", "prune": True, "sourceRef": {"name": "flux-system"}}
        self.kustomizations: dict[str, Manifest] = {"flux-system": root}
        self.inventories: dict[str, set[Identity]] = {}
        self.objects: dict[Identity, tuple[str, Manifest]] = {}
        self.deleted: list[str] = []

    def list_actors(self) -> list[str]:
        """Return the names of the Kustomizations."""
        return sorted(self.kustomizations)

    def reconcile(self, name: str, state: State) -> None:
        """Let a Kustomization apply and prune once."""
        spec = self.kustomizations.get(name)
        if spec is None or spec.get("suspend"):
            return
        commit = state.output if spec["sourceRef"]["name"] == "placements" else state.source
        desired = {identify(body): body for body in self.repository.build(commit, spec["path"])}
        for identity, body in desired.items():
            self.objects[identity] = (name, body)
            if identity[:2] == (TOOLS[0], "Kustomization") and identity[3] != "flux-system":
                self.kustomizations[identity[3]] = body["spec"]
        stale, self.inventories[name] = self.inventories.get(name, set()) - desired.keys(), set(desired)
        if spec.get("prune"):
            self._delete(stale, name)

    def _delete(self, identities: set[Identity], owner: str) -> None:
        for identity in sorted(identities):
            found, body = self.objects.get(identity, ("", {}))
            if found != owner or has_option(body, "kustomize.toolkit.fluxcd.io/prune", "disabled"):
                continue
            del self.objects[identity]
            if identity[0] not in TOOLS:
                self.deleted.append("/".join(identity))
            elif identity[1] == "Kustomization":
                spec = self.kustomizations.pop(identity[3])
                if spec.get("prune") and not spec.get("suspend"):
                    self._delete(self.inventories.get(identity[3], set()), identity[3])


class ArgoCD:
    """Argo CD with its clusters. The Application `root` reads the directory of the ApplicationSets."""

    def __init__(self, repository: Repository, root: Manifest) -> None:
        self.repository = repository
        self.applications: dict[str, Manifest] = {"root": root}
        self.sets: dict[str, Manifest] = {}
        self.owners: dict[str, str] = {}
        self.objects: dict[tuple[str, Identity], tuple[str, Manifest]] = {}
        self.deleted: list[str] = []

    def list_actors(self) -> list[str]:
        """Return the names of the Applications and ApplicationSets."""
        return [*sorted(self.sets), *sorted(self.applications)]

    def reconcile(self, name: str, state: State) -> None:
        """Let an Application sync once if that is automatic, or an ApplicationSet update its Applications."""
        if name in self.sets:
            self._generate(name, state)
        application = self.applications.get(name)
        automated = application and application["spec"].get("syncPolicy", {}).get("automated")
        if application is None or automated is None:
            return
        source, cluster = application["spec"]["source"], application["spec"]["destination"]["name"]
        commit = state.source if source["targetRevision"] == "main" else state.output
        desired = {(cluster, identify(body)): body for body in self.repository.build(commit, source["path"])}
        for key, body in desired.items():
            self.objects[key] = (name, body)
            if key[1][:2] == (TOOLS[2], "ApplicationSet"):
                self.sets[key[1][3]] = body
        if automated.get("prune"):
            self._delete(name, "Prune=false", keep=set(desired))

    def _generate(self, name: str, state: State) -> None:
        body = self.sets[name]
        policy = body["spec"].get("syncPolicy", {})
        finalizers = [] if policy.get("preserveResourcesOnDeletion") else [FINALIZER]
        generated = set()
        for values in self._list_parameters(body["spec"]["generators"], state):
            text = re.sub(
                r"\{\{\.([\w.]+)\}\}", lambda match, values=values: values[match[1]], yaml.safe_dump(body["spec"]["template"])
            )
            template = yaml.safe_load(text)
            application = template["metadata"]["name"]
            self.applications[application] = {"spec": template["spec"], "metadata": {"finalizers": finalizers}}
            self.owners[application] = name
            generated.add(application)
        if policy.get("applicationsSync") not in ("create-only", "create-update"):
            for application in [app for app, owner in self.owners.items() if owner == name and app not in generated]:
                self._delete_application(application)

    def _list_parameters(self, generators: Sequence[Manifest], state: State) -> Iterator[dict[str, str]]:
        for generator in generators:
            if elements := generator.get("list", {}).get("elements"):
                yield from elements
                continue
            git = generator["git"]
            commit = state.source if git["revision"] == "main" else state.output
            directories = self.repository.git("ls-tree", "-r", "-d", "--name-only", commit).splitlines()
            for pattern in git.get("directories", []) + git.get("files", []):
                wanted = pattern["path"].removesuffix("/cluster.json")
                for path in fnmatch.filter(directories, wanted):
                    if path.count("/") == wanted.count("/"):
                        name = path.rpartition("/")[2]
                        yield {"path.basename": name, "path.basenameNormalized": name, "path.path": path, "name": name}

    def _delete(self, owner: str, option: str, keep: set[tuple[str, Identity]] = frozenset()) -> None:  # type: ignore[assignment]
        for key in sorted(key for key, (found, _) in self.objects.items() if found == owner and key not in keep):
            if has_option(self.objects[key][1], "argocd.argoproj.io/sync-options", option):
                continue
            del self.objects[key]
            if key[1][1] == "ApplicationSet":
                self._delete_set(key[1][3])
            else:
                self.deleted.append("/".join((key[0], *key[1])))

    def _delete_set(self, name: str) -> None:
        policy = self.sets.pop(name)["spec"].get("syncPolicy", {}).get("applicationsSync")
        for application in [app for app, owner in self.owners.items() if owner == name]:
            if policy in ("create-only", "create-update"):
                del self.owners[application]
            else:
                self._delete_application(application)

    def _delete_application(self, name: str) -> None:
        self.owners.pop(name, None)
        if FINALIZER in self.applications.pop(name)["metadata"]["finalizers"]:
            self._delete(name, "Delete=false")


def follow(make: Callable[[], FluxCluster | ArgoCD], states: Sequence[State]) -> tuple[set[tuple[str, str]], list[str]]:
    """Follow the states in different orders of the actors. Return what is deleted after which commit in any order, and the owners at the
    end."""
    deleted: set[tuple[str, str]] = set()
    owners: list[str] = []
    for turn, reverse in itertools.product(range(5), (False, True)):
        cluster = make()
        for state in states:
            for _ in range(3):  # what one actor applies can be another actor
                actors = cluster.list_actors()
                actors = actors[turn % len(actors) :] + actors[: turn % len(actors)]
                for name in reversed(actors) if reverse else actors:
                    cluster.reconcile(name, state)
            deleted |= {(state.subject, identity) for identity in cluster.deleted}
            cluster.deleted.clear()
        owners = sorted({owner for owner, _ in cluster.objects.values()})
    return deleted, owners


def list_tools(repository: Repository, states: Sequence[State]) -> dict[str, Callable[[], FluxCluster | ArgoCD]]:
    """Return what makes Argo CD, or the Flux of each cluster, in the state before the first commit."""
    first = states[0].source
    if repository.git("ls-tree", first, "root.yaml"):
        root = yaml.safe_load(repository.git("show", f"{first}:root.yaml"))
        root["metadata"]["finalizers"] = []
        return {"argocd": lambda: ArgoCD(repository, root)}
    names = repository.git("ls-tree", "-d", "--name-only", f"{first}:clusters").splitlines()
    return {name: (lambda name=name: FluxCluster(name, repository)) for name in names}


def check_cut_over(at: Path) -> None:
    """Check that no commit of the cut-over, and of the way back, deletes an object, and that commits in another order would."""
    repository = Repository(at)
    states = repository.list_states("Remove the delivery of the output branch")
    subjects = [state.subject for state in states]
    handed_over = next(number for number, subject in enumerate(subjects) if subject.startswith("Remove the")) + 1
    for make in list_tools(repository, states).values():
        deleted, owners = follow(make, states[:handed_over])
        assert deleted == set()
        assert [owner for owner in owners if owner not in ("flux-system", "root")] in (
            ["placed"],
            ["placed-dub-1", "placed-fra-1"],
        ), "the output branch owns everything"
        deleted, owners = follow(make, states)
        assert deleted == set()
        assert {"apps", "infrastructure"} <= set(owners) or {"web-dub-1", "monitoring-fra-1"} <= set(owners), (
            "the old owners are back"
        )
        # Without the steps between, the old owners delete their objects in some order. The exported ApplicationSet does so in none.
        first, between, last = states[0], states[handed_over - 1], states[-1]
        assert follow(make, [first, between])[0]
        assert bool(follow(make, [between, last])[0]) == isinstance(make(), FluxCluster)
