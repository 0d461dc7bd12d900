"""What a job executes is named by its content: actions by commit, images by digest, Python packages by hash."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
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
LOCKS = ("run", "build", "release")
_USE = re.compile(r"^\s*-? *uses: *(?P<used>\S+)(?P<comment>.*)$", re.MULTILINE)
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\;]+)(.*(?:\n +--hash=sha256:[0-9a-f]{64}.*)*)", re.MULTILINE)


def find_unpinned_actions(text: str) -> list[str]:
    """Return the actions that are not named by a commit with its version in a comment; local actions are not named by one."""
    return [
        use["used"]
        for use in _USE.finditer(text)
        if not use["used"].startswith("./")
        and not (re.search(r"@[0-9a-f]{40}$", use["used"]) and re.fullmatch(r" # v\d+(\.\d+)*", use["comment"]))
    ]


def read_lock(name: str) -> dict[str, tuple[str, str]]:
    """Return the version and the rest of the entry (markers and hashes) of each package in requirements/NAME.txt."""
    return {canonicalize_name(name): (version, rest) for name, version, rest in _LOCKED.findall(read(f"requirements/{name}.txt"))}


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


@pytest.mark.parametrize("name", LOCKS)
def test_each_locked_package_has_a_hash(name: str) -> None:
    lines = [line for line in read(f"requirements/{name}.txt").splitlines() if line and not line.startswith((" ", "#"))]
    locked = read_lock(name)
    assert len(locked) == len(lines) > 4
    assert [package for package, (_, rest) in locked.items() if "--hash=sha256:" not in rest] == []


def test_the_lock_has_what_pyproject_requires() -> None:
    """`make lock` was run after the last change of the dependencies."""
    project = tomllib.loads(read("pyproject.toml"))
    locked = {name: version for name, (version, _) in read_lock("run").items()}
    direct = [Requirement(text) for text in project["project"]["dependencies"]]
    assert [str(one) for one in direct if not one.specifier.contains(locked.get(canonicalize_name(one.name), "0"))] == []
    pending, reached = [canonicalize_name(one.name) for one in direct], set[str]()
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            needed = [Requirement(text) for text in requires(name) or () if "extra ==" not in text]
            pending += [canonicalize_name(one.name) for one in needed if one.marker is None or one.marker.evaluate()]
    assert reached - set(locked) == set()
    tools = {name: version for name, (version, _) in read_lock("build").items()}
    assert all(Requirement(text).specifier.contains(tools[Requirement(text).name]) for text in project["build-system"]["requires"])
    assert tools.items() <= {name: version for name, (version, _) in read_lock("release").items()}.items()


def test_installs_of_releases_require_hashes() -> None:
    (install,) = (step["run"] for step in yaml.safe_load(read("action.yml"))["runs"]["steps"] if step.get("id") == "install")
    for text in (install, read("Dockerfile"), read(".github/workflows/release.yml")):
        installs = re.findall(r"\bpip[\w\" -]* (?:install|download|wheel) .*", text)
        assert installs
        assert [line for line in installs if not re.search(r"--require-hashes|--no-deps|--no-index", line)] == []


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
