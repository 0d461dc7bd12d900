"""Advice of `gitsched init`, in its texts and in the files that it writes, is carried out as it is printed."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_init import OVERLAYS, WEB
from tests.scenarios.advice_texts import list_advice

ROOT = Path(__file__).parents[2]
MODULES = ("gitsched/cli/init.py", "gitsched/cli/commands/init.py", "gitsched/reconcile/adoption/repository_layout.py")
PARIS = {"db/overlays/paris/kustomization.yaml": "resources: [db.yaml]\n", "db/overlays/paris/db.yaml": WEB.replace("web", "db")}
Make = Callable[[Mapping[str, str]], Path]


class Shell:
    """Carries out commands of gitsched and git as they are printed, and returns what the last one prints."""

    def __init__(self, gitsched: Run, git: Callable[..., str], place: Path) -> None:
        self._gitsched, self._git, self._place = gitsched, git, place

    def run(self, line: str) -> str:
        printed = ""
        for command in line.split(" && "):
            program, *arguments = shlex.split(command)
            if program == "git":
                printed = self._git(*arguments, at=self._place)
                continue
            assert program == "gitsched"
            done = self._gitsched(*arguments, at=self._place)
            assert done.returncode == 0, done.stderr or done.stdout
            printed = done.stdout
        return printed


def list_steps(text: str) -> list[str]:
    """Return the steps below "Next:"."""
    lines = text.partition("\nNext:\n")[2].partition("\n\n")[0].splitlines()
    return [re.split(r" {2,}", line.strip())[0] for line in lines]


def follow_steps(shell: Shell, place: Path, text: str) -> None:
    steps = [step for step in list_steps(text) if not step.startswith("see ")]
    assert steps[-3:] == ["gitsched plan", "gitsched reconcile", "git show placements:README.md"]
    for step in steps:
        if step.startswith("edit "):
            path = place / step.removeprefix("edit ")
            path.write_text(re.sub(r"(?m)^  name: (?!cost)(\S+)$", r"  name: my-\1", path.read_text()))
            continue
        printed = shell.run(step)
    assert re.search(r"^\| `.+ \|$", printed, re.MULTILINE), printed
    assert ("`my-" in printed) == steps[0].startswith("edit ")


@pytest.mark.parametrize("api", ["karmada", "ocm", "krake", "knative"])
def test_the_next_steps_place_the_example_of_each_policy_api(
    gitsched: Run, git: Callable[..., str], tmp_path: Path, api: str
) -> None:
    place = tmp_path / "new"
    place.mkdir()
    done = gitsched("init", "--api", api, at=place)
    assert list_steps(done.stdout)[0] == "git init"
    follow_steps(Shell(gitsched, git, place), place, done.stdout)
    (page,) = re.findall(r"See (\S+) of gitsched", done.stdout)
    assert (ROOT / page).is_file()
    (others,) = re.findall(r"For policies of (.+), use --api\.", done.stdout)
    assert sorted([api, *re.split(r", | and ", others)]) == ["karmada", "knative", "krake", "ocm"]


@pytest.mark.parametrize(("files", "api"), [(OVERLAYS, "karmada"), (OVERLAYS, "ocm"), ({"web.yaml": WEB}, "karmada")])
def test_the_next_steps_place_what_a_repository_has(
    gitsched: Run, git: Callable[..., str], make: Make, files: Mapping[str, str], api: str
) -> None:
    place = make(files)
    done = gitsched("init", "--api", api, at=place)
    assert list_steps(done.stdout)[0] == "edit fleet/clusters.yaml"
    follow_steps(Shell(gitsched, git, place), place, done.stdout)


def test_another_bundle_policy_places_a_bundle_elsewhere(gitsched: Run, git: Callable[..., str], make: Make) -> None:
    place = make(OVERLAYS)
    gitsched("init", at=place)
    text = (place / "fleet/policies.yaml").read_text()
    assert "To place one elsewhere, give it a\n# policy of its own that selects it by name." in text
    own = text.replace("name: bundles", "name: web").replace("      kind: Bundle\n", "      kind: Bundle\n      name: web\n")
    (place / "fleet/web.yaml").write_text(own.replace("clusterAffinity: {}", "clusterAffinity: {clusterNames: [staging]}"))
    Shell(gitsched, git, place).run('git add . && git commit -m "Describe the fleet" && gitsched reconcile')
    delivered = git("ls-tree", "-r", "--name-only", "placements", "clusters", at=place)
    assert "clusters/staging/shop/deployment-web.yaml" in delivered
    assert "clusters/production/shop/deployment-web.yaml" not in delivered


@pytest.mark.parametrize("api", ["krake", "knative"])
def test_the_named_policy_apis_place_bundles(gitsched: Run, make: Make, api: str) -> None:
    place = make(OVERLAYS)
    done = gitsched("init", "--dry-run", "--api", api, at=place)
    (options,) = re.findall(r"so no file is written for them; use (.+)\.\n", done.stdout)
    assert "fleet/bundles.yaml" not in done.stdout
    for option in options.split(" or "):
        assert "would write fleet/bundles.yaml" in gitsched("init", "--dry-run", *option.split(), at=place).stdout


def test_the_command_that_looks_at_a_choice_proposes_it(gitsched: Run, git: Callable[..., str], make: Make) -> None:
    place = make({**OVERLAYS, **PARIS})
    done = gitsched("init", "--dry-run", at=place)
    (command,) = re.findall(r"To look at what a choice proposes: (.+)\n", done.stdout)
    shown = Shell(gitsched, git, place).run(command.replace("=NAME", "=eu-1"))
    assert "db: db/overlays/paris for eu-1" in shown
    assert git("status", "--porcelain", "--ignored", at=place) == ""


def test_the_lines_that_kept_files_lack_are_what_they_lack(gitsched: Run, make: Make) -> None:
    place = make({**OVERLAYS, **PARIS})
    gitsched("init", at=place)
    choice = ("init", "--cluster", "db/overlays/paris=eu-1")
    printed = gitsched(*choice, at=place).stdout
    assert printed.endswith("Nothing was written: add these lines, and commit them.\n")
    for name, lines in re.findall(r"(?m)^(\S+) exists and lacks this: add\n((?:  .*\n)+)", printed):
        (place / name).write_text(f"{(place / name).read_text()}---\n{textwrap.dedent(lines)}")
    assert "exists and lacks" not in gitsched(*choice, at=place).stdout
    assert gitsched("validate", at=place).returncode == 0


def test_the_comment_about_the_schema_names_the_command_that_writes_it(
    gitsched: Run, git: Callable[..., str], tmp_path: Path
) -> None:
    place = tmp_path / "new"
    place.mkdir()
    gitsched("init", at=place)
    found = re.findall(r"`(gitsched schemas .+?)` writes the schema, which Git ignores", (place / "gitsched.yaml").read_text())
    schema = place / ".gitsched/schema.json"
    before = schema.read_text()
    schema.unlink()
    Shell(gitsched, git, place).run(f"git init && {found[0]}")
    assert schema.read_text() == before
    assert ".gitsched" not in git("status", "--porcelain", at=place)


def test_manifests_without_a_repository_are_read_after_git_init(gitsched: Run, git: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    refused = gitsched("init", at=tmp_path)
    (command,) = re.findall(r"run `(.+?)` there first", " ".join(refused.stderr.split()))
    done = Shell(gitsched, git, tmp_path).run(f"{command} && gitsched init")
    assert "Recognized documents of 1 kind of workload; what is missing is written." in done


def test_a_directory_below_the_top_is_refused_with_the_command_for_the_top(
    gitsched: Run, git: Callable[..., str], make: Make
) -> None:
    place = make(OVERLAYS)
    refused = gitsched("init", at=place / "web")
    (command,) = re.findall(r"belongs at its top: (gitsched init \S+)", re.sub(r"\s+", " ", refused.stderr))
    assert "wrote gitsched.yaml" in Shell(gitsched, git, place / "web").run(command)


@pytest.mark.parametrize(
    ("wrong", "message", "right"),
    [
        (["web/overlays/staging"], "write DIR=NAME", ["web/overlays/staging=eu-1"]),
        (["web/overlays/staging=EU_1"], "a name of lower case letters, digits and '-'", ["web/overlays/staging=eu-1"]),
        (
            ["web/overlays/staging=a", "web/overlays/staging=eu-1"],
            "with two clusters, a and eu-1: leave one",
            ["web/overlays/staging=eu-1"],
        ),
    ],
)
def test_a_wrong_cluster_is_corrected_as_the_message_says(
    gitsched: Run, make: Make, wrong: list[str], message: str, right: list[str]
) -> None:
    place = make(OVERLAYS)
    refused = gitsched("init", "--dry-run", *(f"--cluster={one}" for one in wrong), at=place)
    assert refused.returncode == 2
    assert message in re.sub(r"[\s│]+", " ", refused.stderr)
    assert "web/overlays/staging for eu-1" in gitsched("init", "--dry-run", *(f"--cluster={one}" for one in right), at=place).stdout


def test_files_of_git_lfs_are_read_once_they_are_committed_themselves(gitsched: Run, make: Make) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 100\n"
    place = make({**OVERLAYS, **PARIS, "web/overlays/production/web.yaml": pointer})
    assert "commit the files themselves, without LFS" in gitsched("init", "--dry-run", at=place).stdout
    (place / "web/overlays/production/web.yaml").write_text(WEB)
    done = gitsched("init", "--dry-run", at=place).stdout
    assert "LFS" not in done
    assert "web: web/overlays/production" in done


CARRIED_OUT = (
    "write DIR=NAME with a directory",
    "with two clusters, ",
    "For policies of",
    "Policies of this API do not place bundles",
    "run `git init` there first",
    "commit the files themselves, without LFS",
    "Print the files, and write nothing",  # a help text
    "Nothing was written: add these lines",
)
"""Parts of the texts whose advice the tests above carry out."""


def test_every_advice_of_init_is_carried_out() -> None:
    found = [text for path in MODULES for text, _ in list_advice(ROOT / path)]
    assert [text for text in found if not any(part in text for part in CARRIED_OUT)] == []
    assert [part for part in CARRIED_OUT if not any(part in text for text in found)] == []
