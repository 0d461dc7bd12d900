"""What stands around the code: the image, the hook and the first two commands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from gitsched import __version__

ROOT = Path(__file__).parents[2]


def test_the_image_has_git_and_runs_gitsched_without_root() -> None:
    last_stage = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    instructions = re.findall(r"^([A-Z]+) (.+)$", last_stage, re.MULTILINE)
    assert ("ENTRYPOINT", '["gitsched"]') in instructions
    assert [value for name, value in instructions if name == "USER"] == ["10001:10001"], (
        "Kubernetes sees by the number that it is not root"
    )
    assert re.search(r"apt-get install .*\bgit\b.*\bopenssh-client\b", last_stage)


def test_only_the_user_of_the_image_and_group_0_can_write_its_cache() -> None:
    """A platform such as OpenShift assigns a user, in group 0. Others name another directory."""
    text = (ROOT / "Dockerfile").read_text()
    (cache,) = re.findall(r"XDG_CACHE_HOME=(/\S+)", text.rpartition("\nFROM ")[2])
    assert f"install --directory --owner=10001 --group=0 --mode=0770 {cache}\n" in text
    modes = re.findall(r"--mode=0?(\d+)|chmod\s+(?:-\S+\s+)*0?(\d+)", text)
    assert [mode for pair in modes for mode in pair if mode and int(mode, 8) & 0o002] == []
    assert not re.search(r"chmod\s[^&\n]*[ao]\+\S*w|umask 0+\b", text)


def test_the_image_contains_every_path_that_the_wheel_needs() -> None:
    shipped = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["only-include"], "README.md", *project["project"]["license-files"]}
    assert shipped >= needed | {"pyproject.toml", "requirements"}


@pytest.mark.parametrize(
    ("file", "pattern", "count"),
    [
        ("deploy/helm/gitsched/Chart.yaml", r"^(?:version|appVersion): (.+)$", 2),
        ("deploy/kustomize/base/deployment.yaml", r"image: .*/gitsched:(.+)$", 1),
        ("deploy/kustomize/components/reconcile/cron-job.yaml", r"image: .*/gitsched:(.+)$", 1),
        ("deploy/kustomize/example/kustomization.yaml", r"newTag: (.+)$", 1),
        ("ci/tekton.yaml", r"app.kubernetes.io/version: (.+)$|default: .*/gitsched:(.+)$", 6),
        ("ci/gitlab.yml", r"GITSCHED_IMAGE: .*/gitsched:(.+)$", 1),
        ("docs/ci.md", r"uses: gitsched/gitsched@[0-9a-f]{40} # v(.+)$", 8),
        ("docs/deploy.md", r"--?t(?:ag)? .*/gitsched:(\S+) ", 1),
        ("docs/hardening.md", r"gitsched-([\d.]+)-py3-none-any.whl", 3),
    ],
)
def test_every_file_names_the_version_of_the_package(file: str, pattern: str, count: int) -> None:
    found = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    versions = [next(filter(None, one)) if isinstance(one, tuple) else one for one in found]
    assert versions == [__version__] * count


def test_others_can_run_validate_as_a_pre_commit_hook() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["entry"], hook["language"]) == ("gitsched-validate", "gitsched validate", "python")
    # A commit may only delete files, or change a Kustomization, a template or JSON, of which the result depends as well.
    assert (hook["always_run"], hook["pass_filenames"], "files" in hook, "types" in hook) == (True, False, False, False)


def test_make_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    promised = set(re.findall(r"^make ([a-z]+)$", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert promised == {"demo", "test"}
    assert promised <= targets
