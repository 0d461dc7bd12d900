"""What a job or a command of the Makefile executes is named by its content: actions by commit, images by digest, packages by hash."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections import Counter
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tables import each_row

from .runner import ROOT
from .test_lint import check

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FILES = [
    ROOT / "action.yml",
    *WORKFLOWS,
    *sorted((ROOT / "ci").iterdir()),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "README.md",
]
LOCKS = sorted(path.stem for path in (ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_USE = re.compile(r"^\s*-? *uses: *(?P<used>\S+)(?P<comment>.*)$", re.MULTILINE)
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\;]+)(?: ; ([^\\\n]+))?( \\(?:\n +--hash=sha256:[0-9a-f]{64}.*)*)", re.MULTILINE)


def find_unpinned_actions(text: str) -> list[str]:
    """Return the actions that are not named by a commit with its version in a comment; local actions are not named by one."""
    return [
        use["used"]
        for use in _USE.finditer(text)
        if not use["used"].startswith("./")
        and not (re.search(r"@[0-9a-f]{40}$", use["used"]) and re.fullmatch(r" # v\d+(\.\d+)*", use["comment"]))
    ]


def read_lock(name: str) -> dict[str, str]:
    """Return the version of each package in requirements/NAME.txt that this machine installs."""
    entries = _LOCKED.findall(read(f"requirements/{name}.txt"))
    return {
        canonicalize_name(package): version for package, version, marker, _ in entries if not marker or Marker(marker).evaluate()
    }


def read(path: str) -> str:
    return (ROOT / path).read_text()


@pytest.mark.parametrize(
    "text", ["uses: actions/checkout@v7", "- uses: a/b@main # v1", f"uses: a/b@{'0' * 40}", f"uses: a/b@{'0' * 39} # v1"]
)
def test_an_action_that_can_be_moved_is_found(text: str) -> None:
    assert len(find_unpinned_actions(text)) == 1


@each_row("file", FILES)
def test_actions_are_pinned_by_commit(file: Path) -> None:
    assert find_unpinned_actions(file.read_text()) == []


def test_one_version_of_an_action_has_one_commit() -> None:
    found = {
        (use["used"].rpartition("@")[0], use["comment"], use["used"]) for file in FILES for use in _USE.finditer(file.read_text())
    }
    assert len({(name, version) for name, version, _ in found}) == len(found) >= 8


def test_images_are_pinned_by_digest() -> None:
    text = read("Dockerfile")
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE))
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", text, re.MULTILINE))
    images = [
        re.sub(r"\$\{(\w+)\}", lambda name: arguments[name[1]], image) for image in re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    ]
    images += [image for image in re.findall(r"--from=(\S+)", text) if image not in stages]
    assert len(images) == 3
    assert [image for image in images if not re.search(r":[\w.-]+@sha256:[0-9a-f]{64}$", image)] == []


def list_requirements(group: str) -> list[Requirement]:
    """Return what pyproject.toml names for a lock file: the dependencies for run, else those of the group."""
    if group == "run":
        return [Requirement(text) for text in PROJECT["project"]["dependencies"]]
    named = PROJECT["dependency-groups"][group]
    included = [one for entry in named if isinstance(entry, dict) for one in list_requirements(entry["include-group"])]
    return [*included, *(Requirement(text) for text in named if isinstance(text, str))]


def applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


@pytest.mark.parametrize("name", LOCKS)
def test_each_locked_package_has_a_hash(name: str) -> None:
    text = read(f"requirements/{name}.txt")
    assert len(_LOCKED.findall(text)) == len([line for line in text.splitlines() if line and not line.startswith((" ", "#"))]) > 0
    assert [package for package, _, _, rest in _LOCKED.findall(text) if "--hash=sha256:" not in rest] == []


def test_each_group_has_a_lock() -> None:
    assert {*LOCKS} == {"run", *PROJECT["dependency-groups"]}
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_what_pyproject_requires(name: str) -> None:
    """`make lock` was run after the last change of the dependencies."""
    locked = read_lock(name)
    direct = list_requirements(name)
    assert [
        str(one) for one in direct if applies(one) and not one.specifier.contains(locked.get(canonicalize_name(one.name), "0"))
    ] == []
    if name == "helm":
        return  # .ci/install_helm.py takes a file out of it and leaves its dependencies
    pending, reached = [canonicalize_name(one.name) for one in direct if applies(one)], set[str]()
    while pending:
        package = pending.pop()
        if package not in reached:
            reached.add(package)
            try:
                installed = distribution(package)
            except PackageNotFoundError:  # another command installs it
                continue
            if installed.version == locked.get(package):
                needed = [Requirement(text) for text in installed.requires or ()]
                pending += [canonicalize_name(one.name) for one in needed if applies(one)]
    assert reached - set(locked) == set()


def test_an_older_python_is_refused_before_its_dependencies_are_looked_for() -> None:
    markers = [str(one.marker) for one in list_requirements("run")]
    assert [marker for marker in markers if 'python_version >= "3.11"' not in marker] == []
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_all_locks_can_be_installed_into_one_environment() -> None:
    found = {(package, version) for name in LOCKS for package, version in read_lock(name).items()}
    assert [package for package, count in Counter(package for package, _ in found).items() if count > 1] == []


def test_packages_of_npm_have_hashes_and_no_registry() -> None:
    packages = {path: package for path, package in json.loads(read("requirements/package-lock.json"))["packages"].items() if path}
    assert packages["node_modules/gitlab-ci-local"]
    assert [path for path, package in packages.items() if not package.get("integrity", "").startswith("sha512-")] == []
    assert [path for path, package in packages.items() if "resolved" in package] == []


def test_installs_require_hashes() -> None:
    (install,) = (step["run"] for step in yaml.safe_load(read("action.yml"))["runs"]["steps"] if step.get("id") == "install")
    commands = ["demo", "test", "docs", "fuzz", "lock", "runners"]
    make = ["make", "--dry-run", "--always-make", *commands]
    made = subprocess.run(make, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert made.count("--require-hashes") == len(commands)
    assert re.findall("npm (?!--prefix requirements)[a-z]+", made) == ["npm ci"]
    for text in (install, read("Dockerfile"), read(".github/workflows/release.yml"), made):
        installs = re.findall(r"\bpip[\w\" -]* (?:install|download|wheel) .*", text)
        assert installs
        assert [line for line in installs if not re.search(r"--require-hashes|--no-deps|--no-index", line)] == []
    assert "--require-hashes" in read(".ci/install_helm.py")


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_are_valid_and_have_the_least_permissions(file: Path, tmp_path: Path) -> None:
    check("vendor.github-workflows", file.read_text(), tmp_path)
    workflow = yaml.safe_load(file.read_text())
    assert set(workflow["permissions"].values()) <= {"read"}
    for job in workflow["jobs"].values():
        granted = job.get("permissions", {})
        checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)
        assert not (granted.get("contents") == "write" and checkouts), (
            "a job that writes to the repository executes none of its code"
        )
        assert all("${{" not in step.get("run", "") for step in job["steps"]), "values reach scripts as environment variables"
