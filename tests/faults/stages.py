"""Let each function that handles a single document fail for one document, and check that this stops nothing else:
`python -m tests.faults.stages`.

The functions are found by running a command with a profiler, so a new one is tried as well.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import gitsched
from gitsched.cli import main as run_command
from gitsched.model.document import Key
from tests.builders import knative, ocm
from tests.faults.__main__ import PEOPLE
from tests.scenarios.conftest import UNGUARDED, Fleet, at_hour, cluster, deployment, policy

BAD = "bad"
COMMANDS = ("reconcile", "plan", "explain", "simulate", "validate")
_PACKAGE = str(Path(gitsched.__file__).parent)
_FRAME = ("cli/", "git/", "reconcile/fetch.py", "reconcile/output/output_records.py")
"""Modules whose functions are the frame of a run: without the previous output nothing can be kept."""
_METADATA = ("README.md", "gitsched.json", "hydrator.metadata")
_CACHES = (
    "manifests/parsed_file.py",
    "reconcile/cache/",
    "decide/incremental/plan_state.py",
    "apis/knative/continuation.py",
    "decide/incremental/changed_documents.py",
    "model/template_index.py",
)
"""Modules of caches and of incremental plans alone: what fails there costs work, and changes nothing."""
_NOT_STORED = "while the plan was stored for the next run"
"""What a run logs when its caches called a function of another module that failed: this costs work, too."""
_UNREADABLE = ("make_raw_document", "make_origin")
"""What fails here leaves a file without any document that is known, so placements are frozen."""
_NAMES = (
    "relative_path",
    "placement_path",
    "status_path",
    "strip_record",
    "get_field",
    "Key.__str__",
    "Key.resource",
    "matches_name",
)
"""What names objects, reads records, and names the files that stay. Nothing can stand in for these."""
_IDENTITIES = ("key", "outcome", "template", "document", "subject", "workload")


class Stage(NamedTuple):
    """A function that handles one document: the path of its module and its name."""

    module: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.name}"


def _make_karmada(image: str) -> dict[str, str]:
    template = "  template: {{metadata: {{labels: {{app: {}, v: {}}}}}}}\n"
    workloads = {f"{name}.yaml": deployment(name) + template.format(name, image) for name in (BAD, "good")}
    clusters = {f"{name}.yaml": cluster(name) for name in ("ash", "bru")}
    return {"gitsched.yaml": UNGUARDED, **clusters, **workloads, "policy.yaml": policy("", name="all")}


def _make_application(name: str, image: str) -> str:
    objects = f"[{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}, data: {{v: {image}}}}}]"
    return f"api: kubernetes\nkind: Application\nmetadata: {{name: {name}, namespace: default}}\nspec: {{manifest: {objects}}}\n"


def _make_krake(image: str) -> dict[str, str]:
    clusters = {
        f"{name}.yaml": f"api: kubernetes\nkind: Cluster\nmetadata: {{name: {name}, namespace: default}}\n"
        "spec: {kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}}\nstatus: {state: ONLINE}\n"
        for name in ("ash", "bru")
    }
    return {"gitsched.yaml": UNGUARDED, **clusters, **{f"{name}.yaml": _make_application(name, image) for name in (BAD, "good")}}


def _make_ocm(image: str) -> dict[str, str]:
    shared = ocm.to_yaml(ocm.managed_cluster("ash"), ocm.managed_cluster("bru"), *ocm.bound_global_set("default"))
    files = {
        "gitsched.yaml": UNGUARDED,
        "fleet.yaml": shared,
        "p.yaml": ocm.to_yaml(ocm.placement("all", "default", numberOfClusters=2)),
    }
    for name in (BAD, "good"):
        files[f"{name}.yaml"] = ocm.to_yaml({**ocm.placed_config_map(name, "default", "all"), "data": {"v": image}})
    return files


def _make_knative(image: str) -> dict[str, str]:
    sources = {f"{name}.yaml": knative.source(name, 2) + f"  image: {image}\n" for name in (BAD, "good")}
    return {"gitsched.yaml": knative.settings(), "a.yaml": knative.adapter(2), "n.yaml": knative.node("node-1", "z"), **sources}


def _make_policies(image: str) -> dict[str, str]:
    """Return three workloads with a policy each, of which that of `web` cannot be handled."""
    files = _make_karmada(image)
    web = files.pop(f"{BAD}.yaml").replace(BAD, "web")
    selectors = {BAD: "web", "good": "good", "new": "new"}
    policies = {
        f"policy-{name}.yaml": policy("", name=name).replace("kind: Deployment}", f"kind: Deployment, name: {selected}}}")
        + f"# {image}\n"
        for name, selected in selectors.items()
    }
    return {**files, "policy.yaml": "", "web.yaml": web, **policies}


def _make_clusters(image: str) -> dict[str, str]:
    files = _make_karmada(image)
    web = files.pop(f"{BAD}.yaml").replace(BAD, "web")
    return {**files, "web.yaml": web, f"{BAD}.yaml": cluster(BAD) + f"# {image}\n"}


SUBJECTS: dict[str, tuple[Callable[[str], dict[str, str]], str, str]] = {
    "karmada": (_make_karmada, "deployment", "ash"),
    "krake": (_make_krake, "application", "default.ash"),
    "ocm": (_make_ocm, "configmap", "ash"),
    "knative": (_make_knative, "kafkasource", "node/node-1"),
    "policy": (_make_policies, "", "ash"),
    "cluster": (_make_clusters, "", "ash"),
}
"""For each API: the files, the kind of the documents of which one fails, and what a simulation loses."""
_CONCERN_OTHERS = ("policy", "cluster")
"""Workloads depend on the document that cannot be handled: they keep what they have."""


class Scene:
    """A fleet with one reconciled commit and another one; each trial starts from a copy of it.

    `old` and `new` are the files of the output before and after a run that nothing disturbs.
    """

    def __init__(self, name: str, root: Path) -> None:
        self.name, self._root = name, root
        make, self._kind, self._lost = SUBJECTS[name]
        self._template = Fleet(root / "template", root / "cache")
        self._template.commit(make("one"))
        self._template.reconcile()
        self.old = self._template.files()
        self._template.commit({**make("two"), "new.yaml": make("two")["good.yaml"].replace("good", "new")}, hour=1)
        self.fleet = Fleet(root / "fleet", root / "cache")
        self.restore()
        code, said = self.run("reconcile")
        assert code == 0, said
        self.new = self._list_content()

    def restore(self) -> None:
        shutil.rmtree(self.fleet.path if hasattr(self, "fleet") else self._root / "fleet", ignore_errors=True)
        shutil.copytree(self._template.path, self.fleet.path, symlinks=True)

    def _list_content(self) -> dict[str, str]:
        """Return the output without the metadata of the run."""
        return {path: blob for path, blob in self.fleet.files().items() if path not in _METADATA}

    def run(self, command: str) -> tuple[int, str]:
        """Run a command in this process; return its exit code and what it prints."""
        options = ["-C", str(self.fleet.path), "--now", at_hour(2).isoformat()]
        options += ["--cache-dir", str(self._root / "cache")] if command != "validate" else []
        arguments = {
            "explain": ["explain", f"{self._kind}/{BAD}", *options, *(["-n", "shop"] if self.name == "knative" else [])],
            "simulate": ["simulate", "--lose", self._lost, *options],
            "validate": ["validate", "-C", str(self.fleet.path)],
        }.get(command, [command, *options])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = run_command(arguments)
        return code, printed.getvalue()

    def list_stages(self, command: str) -> list[Stage]:
        """Return the functions that the command calls with the bad document."""
        self.restore()
        found: dict[CodeType, None] = {}
        known: set[CodeType] = set()

        def watch(frame: FrameType, event: str, _: Any) -> None:
            code = frame.f_code
            if event != "call" or code in known or not code.co_filename.startswith(_PACKAGE):
                return
            count = code.co_argcount + code.co_kwonlyargcount
            if any(_concerns(frame.f_locals.get(name)) for name in code.co_varnames[:count]):
                known.add(code)
                found[code] = None

        sys.setprofile(watch)
        try:
            self.run(command)
        finally:
            sys.setprofile(None)
        hidden = _UNREADABLE if self.name == "knative" else ()  # no manifest is delivered that a freeze of placements would keep
        stages = [Stage(code.co_filename[len(_PACKAGE) + 1 :], code.co_qualname, code.co_firstlineno) for code in found]
        return sorted(
            stage
            for stage in stages
            if not stage.module.startswith(_FRAME)
            and stage.name not in (*_NAMES, *hidden)
            and "<" not in stage.name.rpartition(".")[2]
        )

    def check(self, command: str, stage: Stage) -> list[str]:
        """Let a stage fail for the bad document, and return what is wrong then."""
        self.restore()
        with failing(stage) as failures:
            code, said = self.run(command)
        if not failures:
            return []
        if code == 0 and (stage.module.startswith(_CACHES) or _NOT_STORED in said):
            return [] if command != "reconcile" or self._list_content() == self.new else ["the output depends on a cache"]
        problems = [] if code == 1 else [f"exit code {code}: {said[-600:]}"]
        if "internal-error" not in said and "internal error" not in said:
            problems.append(f"no finding: {said[-300:]}")
        if command != "reconcile":
            return problems
        files = self._list_content()
        if self.name in _CONCERN_OTHERS:
            manifests = [path for path in self.old if path.startswith("clusters/") and "/default/" in path]
            lost = [path for path in manifests if files.get(path) not in (self.old[path], self.new.get(path))]
            return [*problems, *([f"lost: {', '.join(lost)}"] if lost else [])]
        for path in sorted({*files, *self.new}):
            allowed = {self.new.get(path), *([self.old.get(path)] if BAD in path else [])}
            may_explain = BAD in path and path.startswith(("placements/", "status/")) and path in files
            if stage.name in _UNREADABLE:
                allowed.add(self.old.get(path))
            if files.get(path) not in allowed and not may_explain:
                problems.append(f"{path} is {files.get(path, 'missing')}, and not one of {allowed}")
        code, said = self.run(command)
        if code or self._list_content() != self.new:
            problems.append(f"the next run does not heal: {code} {said[-300:]}")
        return problems


def _concerns(value: Any) -> bool:
    """Return whether a value is the bad document, or its identity, decision or files."""
    if isinstance(value, Key):
        return value.name == BAD
    if isinstance(value, dict):
        metadata = value.get("metadata")
        return isinstance(metadata, dict) and metadata.get("name") == BAD
    if isinstance(getattr(value, "body", None), dict) and _concerns(value.body):
        return True
    return any(_concerns(part) for name in _IDENTITIES if (part := getattr(value, name, None)) is not None and part is not value)


@contextlib.contextmanager
def failing(stage: Stage) -> Iterator[list[Stage]]:
    """Let a function fail for the bad document; yield a list that gets an entry for each failure."""
    failures: list[Stage] = []
    functions = [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType)
        and each.__code__.co_qualname == stage.name
        and each.__code__.co_firstlineno == stage.line
        and each.__code__.co_filename == f"{_PACKAGE}/{stage.module}"
    ]
    kept = [(function, function.__code__, function.__defaults__, function.__kwdefaults__) for function in functions]
    for function in functions:
        _replace_code(function, stage, failures)
    try:
        yield failures
    finally:
        for function, code, defaults, options in kept:
            function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, options


def _replace_code(function: FunctionType, stage: Stage, failures: list[Stage]) -> None:
    original = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    original.__kwdefaults__ = function.__kwdefaults__
    number = len(_CALLS)
    free = function.__code__.co_freevars

    def call(*arguments: Any, **options: Any) -> Any:
        if any(map(_concerns, (*arguments, *options.values()))):
            failures.append(stage)
            raise RuntimeError("secret-value")
        return original(*arguments, **options)

    _CALLS.append(call)
    function.__globals__.setdefault("_calls_of_tests", _CALLS)
    names = ", ".join(free)
    lines = [
        "def outer():",
        *([f"    {' = '.join(free)} = None"] if free else []),
        "    def wrapper(*arguments, **options):",
        *([f"        if False: {names}"] if free else []),
        f"        return _calls_of_tests[{number}](*arguments, **options)",
        "    return wrapper",
    ]
    scope: dict[str, Any] = {}
    exec(compile("\n".join(lines), f"{_PACKAGE}/tests", "exec"), scope)
    wrapper = scope["outer"]()
    function.__code__ = wrapper.__code__
    function.__defaults__ = function.__kwdefaults__ = None


_CALLS: list[Callable[..., Any]] = []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.stages", description=__doc__)
    parser.add_argument("scenes", nargs="*", choices=[*SUBJECTS, []])
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=COMMANDS)
    parser.add_argument("--only", default="", help="a part of the names of the stages to try")
    options = parser.parse_args()
    os.environ.update(PEOPLE, GIT_CONFIG_NOSYSTEM="1")
    failed, counts, start = 0, Counter[str](), time.monotonic()
    for name in options.scenes or SUBJECTS:
        with tempfile.TemporaryDirectory(prefix="stages-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as directory:
            scene = Scene(name, Path(directory))
            for command in {"reconcile"}.intersection(options.commands) if name in _CONCERN_OTHERS else options.commands:
                for stage in scene.list_stages(command):
                    if options.only not in str(stage):
                        continue
                    counts[command] += 1
                    if problems := scene.check(command, stage):
                        failed += 1
                        print(f"{name}, {command}, {stage}", *problems, sep="\n    ", flush=True)
    total = ", ".join(f"{count} of {command}" for command, count in counts.items())
    print(f"{counts.total()} trials ({total}) in {time.monotonic() - start:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
