"""gitsched init: write a small fleet that works, or what a repository needs to place the workloads that it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from gitsched.apis.policy_api import StarterFiles
from gitsched.cli import LazyCommand, options
from gitsched.decide.registry import policy_apis


def list_starters() -> dict[str, Callable[[], StarterFiles]]:
    """Return the policy APIs that have starter files, by name."""
    return {api.name: api.load_starter for api in policy_apis.values() if api.load_starter is not None}


@click.command(
    "init",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("A small fleet with the policies of Karmada, committed", "init --commit"),
        ("Only what is missing in another repository, with policies of Open Cluster Management", "init --api ocm my-fleet"),
    ),
)
@click.option(
    "--api",
    type=click.Choice(list(list_starters())),
    help="The policy API of the files; by default that of the documents in the repository, else karmada. gitsched reads the policies of "
    "all APIs.",
)
@click.option("--commit", "commits", is_flag=True, help="Commit the files, after `git init` if there is no repository.")
@click.argument(
    "directory", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".", callback=options.read_location
)
def command() -> None:
    """Write a small fleet into DIRECTORY, the top of a repository: clusters, a workload, a policy and gitsched.yaml.

    In a repository with workloads, clusters or policies, write only what is missing. In one with kustomizations, Helm charts, or a layout
    of Flux or Argo CD, write Bundles for what it deploys, a policy that places them as they are deployed now, and the clusters that it
    names. Existing files are not changed.

    For editors, write a schema of all kinds to .gitsched/schema.json, which Git ignores.
    """
