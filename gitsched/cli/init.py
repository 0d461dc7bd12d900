"""gitsched init: write a small fleet that works, or what a repository needs to place the workloads that it has."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from pathlib import Path

import click

from gitsched.apis.policy_api import StarterFiles
from gitsched.cli import LazyCommand, options
from gitsched.decide.registry import policy_apis
from gitsched.layouts.overlay_names import is_cluster_name


def list_starters() -> dict[str, Callable[[], StarterFiles]]:
    """Return the policy APIs that have starter files, by name."""
    return {api.name: api.commands.load_starter for api in policy_apis.values() if api.commands.load_starter is not None}


def read_directories(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return the directories of --cluster with the names of their clusters."""
    found: dict[str, str] = {}
    for value in values:
        directory, _sign, name = value.rpartition("=")
        directory = posixpath.normpath(directory.strip("/")) if directory else ""
        if not directory or directory in (".", "..") or directory.startswith("../") or not is_cluster_name(name):
            raise click.BadParameter(
                f"{value}: write DIR=NAME with a directory of the repository and a name of lower case letters, digits and '-'"
            )
        if found.setdefault(directory, name) != name:
            raise click.BadParameter(f"{directory} is given with two clusters, {found[directory]} and {name}: leave one")
    return found


@click.command(
    "init",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("A small fleet with the policies of Karmada, committed", "init --commit"),
        ("Show the files for a repository with a directory for each cluster", "init --dry-run --cluster sites/paris=eu-1"),
        ("Only what is missing in another repository, with policies of Open Cluster Management", "init --api ocm my-fleet"),
    ),
)
@click.option(
    "--api",
    type=click.Choice(list(list_starters())),
    help="The policy API of the files; by default that of the documents in the repository, else karmada. gitsched reads the policies of "
    "all APIs.",
)
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="DIR=NAME",
    callback=read_directories,
    help="The cluster that gets what DIR has; DIR is a path from the top of the repository. May be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Print the files, and write nothing.")
@click.option("--commit", "commits", is_flag=True, help="Commit the files, after `git init` if there is no repository.")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=".", callback=options.read_location)
def command() -> None:
    """Write a small fleet into DIRECTORY, the top of a repository: clusters, a workload, a policy and gitsched.yaml.

    In a repository with workloads, clusters or policies, write only what is missing. In one with kustomizations, Helm charts, or a layout
    of Flux or Argo CD, write Bundles for what it deploys, a policy that places them as they are deployed now, and the clusters that it
    names. Existing files are not changed, and a directory that does not exist is created.

    For editors, write a schema of all kinds to .gitsched/schema.json, which Git ignores.
    """
