"""gitsched init: write gitsched.yaml and an example policy for the chosen policy API."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.apis.policy_api import StarterFiles
from gitsched.cli import exit_codes, options, output
from gitsched.cli.validate import find_worktree_root
from gitsched.decide.registry import policy_apis

if TYPE_CHECKING:
    from gitsched.reconcile.repository_layout import RecognizedLayout

SCHEMA_DIRECTORY = "../gitsched/schemas"
"""Relative path of a clone of gitsched next to the repository; an absolute path would be wrong on other machines."""
_CONFIG = """\
# yaml-language-server: $schema={schemas}/gitsched.io/v1alpha1/Config.json
# Settings of gitsched. All settings have defaults, so this file may be empty or missing.
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata:
  name: gitsched
spec:
{source}  output:
    branch: placements # where decisions are committed; never the source branch
  guard:
    holdStateful: true # workloads with volumes stay in their clusters until they are released
"""


def list_starters() -> dict[str, Callable[[], StarterFiles]]:
    """Return the policy APIs that have starter files, by name."""
    return {api.name: api.load_starter for api in policy_apis.values() if api.load_starter is not None}


MAX_VALIDATIONS = 3
"""How often a proposal is validated."""
NEXT_STEPS = """
Next:
{git}  {action:<24}  {describe}
  gitsched validate         list all mistakes with file, line and column
  gitsched plan --worktree  show the planned placements without writing anything
  git add . && git commit   gitsched schedules from commits
  gitsched reconcile        commit the decisions to the branch `placements`

See {page} of gitsched. For policies of {others}, use --api.
"""


@click.command("init")
@click.option(
    "--api",
    type=click.Choice(list(list_starters())),
    default=next(iter(list_starters())),
    show_default=True,
    help="The policy API of the example; gitsched reads the policies of all APIs.",
)
@click.argument("directory", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".")
def command(api: str, directory: Path) -> int:
    """Write gitsched.yaml and example policies into DIRECTORY, the top of a repository. Existing files are not changed.

    In a repository with kustomizations, Helm charts, or a layout of Flux or Argo CD, write Bundles for what it deploys, a policy that
    places them as they are deployed now, and the clusters that it names.
    """
    from gitsched.model.errors import Permanent

    root = find_worktree_root(str(directory))
    if root is not None and root != directory.resolve():
        raise click.UsageError(
            f"{directory} is inside of the repository {root}, and gitsched.yaml belongs at its top: gitsched init {root}"
        )
    starter = list_starters()[api]()
    try:
        found = _recognize(root, api)
    except Permanent as error:
        raise click.ClickException(str(error)) from error
    files, text = _propose(found, starter)
    written = {name: write_new_file(directory / name, content) for name, content in files.items()}
    if found is not None and all(written.values()):
        files, text = _leave_out_errors(directory, found, starter, files)
    lines = [f"{'wrote' if written.get(name, True) else 'kept '} {name}" for name in files]
    git = "" if root is not None else "  git init                  gitsched reads the commits of a repository\n"
    *others, last = (name for name in list_starters() if name != api)
    described = "fleet/clusters.yaml" in files
    output.show(
        text
        + "\n".join(lines)
        + "\n"
        + NEXT_STEPS.format(
            git=git,
            action="edit fleet/clusters.yaml" if described else "describe the fleet",
            describe="name your clusters and their labels" if described else starter.fleet_hint,
            page=starter.docs_page,
            others=f"{', '.join(others)} and {last}",
        )
    )
    return exit_codes.DONE


def _recognize(root: Path | None, api: str) -> RecognizedLayout | None:
    """Return the layout of a repository; None without a repository or a layout."""
    if root is None:
        return None
    from gitsched.reconcile.repository_layout import recognize_worktree  # loads libgit2

    topology = policy_apis[api].topology
    found = recognize_worktree(root, (topology.group, topology.kind) if topology is not None else None)
    return found if found.layout.recognitions or found.layout.build else None


def _leave_out_errors(
    directory: Path, found: RecognizedLayout, starter: StarterFiles, files: Mapping[str, str]
) -> tuple[Mapping[str, str], str]:
    """Validate the files that were written, and write them again without bundles that have errors. Return the files and the text."""
    from datetime import UTC, datetime

    from gitsched.layouts.proposal import BUNDLES
    from gitsched.model.errors import Permanent
    from gitsched.reconcile import RunSettings, validate_source
    from gitsched.reconcile.repository_layout import leave_out_errors

    settings = RunSettings(
        datetime.now(UTC),
        options.find_cache_directory(),
        str(directory),
        worktree=True,
        observations="recorded",
        findings_only=True,
    )
    for _ in range(MAX_VALIDATIONS):
        try:
            with output.show_progress("Validating the proposal"):
                findings = list(validate_source(settings))
        except Permanent:
            break  # such as a repository without a program that builds it: the next command says so
        left = leave_out_errors(found, files.get(BUNDLES, ""), findings)
        if left.layout == found.layout:
            break
        found = left
        changed, _text = _propose(found, starter)
        for name in files.keys() - changed.keys():
            (directory / name).unlink()
        for name, content in changed.items():
            if name in files:
                (directory / name).write_text(content, encoding="utf-8")
            else:
                write_new_file(directory / name, content)
        files = changed
    return files, _propose(found, starter)[1]


def _propose(found: RecognizedLayout | None, starter: StarterFiles) -> tuple[Mapping[str, str], str]:
    """Return the files to write, by path, and the text about the layout."""
    if found is None:
        return {"gitsched.yaml": _CONFIG.format(schemas=SCHEMA_DIRECTORY, source="") + starter.settings, **starter.files}, ""
    from gitsched.layouts.proposal import (
        BUNDLES,
        CLUSTERS,
        POLICIES,
        describe_layout,
        list_cluster_metadata,
        write_bundles,
        write_source_settings,
    )

    layout, bundles = found.layout, starter.bundles
    source = write_source_settings(layout, found.hidden)
    files = {"gitsched.yaml": _CONFIG.format(schemas=SCHEMA_DIRECTORY, source=source) + starter.settings}
    text = describe_layout(layout) + "\n\n"
    if layout.bundles and bundles is None:
        supported = " or ".join(f"--api {name}" for name, load in list_starters().items() if load().bundles is not None)
        text += f"Policies of this API do not place bundles, so no file is written for them; use {supported}.\n\n"
    if not layout.bundles or bundles is None:
        files |= starter.files
    else:
        files[BUNDLES] = write_bundles(layout, bundles.annotations, found.label)
        files[POLICIES] = bundles.policies
    if bundles is not None and layout.bundles:  # the example policy chooses clusters by labels that these do not have
        clusters = list_cluster_metadata(layout, found.label, found.described)
        if clusters:
            files[CLUSTERS] = bundles.write_clusters(clusters)
    return files, text


def write_new_file(path: Path, text: str) -> bool:
    """Write a file and return whether it was written; an existing file, even a dangling link, is not changed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return True
