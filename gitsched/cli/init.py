"""gitsched init: write gitsched.yaml and an example policy for the chosen policy API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import click

from gitsched.cli import exit_codes, output
from gitsched.cli.validate import find_worktree_root

SCHEMA_DIRECTORY = "../gitsched/schemas"
"""A clone of gitsched beside the repository: a path of this machine would be wrong on every other."""
_CONFIG = f"""\
# yaml-language-server: $schema={SCHEMA_DIRECTORY}/gitsched.io/v1alpha1/Config.json
# Settings of gitsched. Everything has a default; this file could be empty, or missing.
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata:
  name: gitsched
spec:
  output:
    branch: placements # where decisions are committed; never the source branch
"""
_KARMADA = f"""\
# yaml-language-server: $schema=../{SCHEMA_DIRECTORY}/policy.karmada.io/v1alpha1/PropagationPolicy.json
# Every Deployment of the namespace `default` runs on the first group of clusters that can take it: private ones, else the cloud.
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: example
  namespace: default
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
  placement:
    clusterAffinities:
      - affinityName: private
        labelSelector:
          matchLabels:
            ownership: private
      - affinityName: cloud
        labelSelector:
          matchLabels:
            ownership: cloud
"""
_OCM = """\
# Whatever has the annotation `cluster.open-cluster-management.io/placement: example` in the namespace `default` runs on the best two
# clusters with the label env=prod.
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: example
  namespace: default
spec:
  numberOfClusters: 2
  predicates:
    - requiredClusterSelector:
        labelSelector:
          matchLabels:
            env: prod
---
# A namespace chooses from the cluster sets that are bound to it. This one has all clusters.
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata:
  name: global
  namespace: default
spec:
  clusterSet: global
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata:
  name: global
spec:
  clusterSelector:
    selectorType: LabelSelector
    labelSelector: {}
"""
_KRAKE = """\
# An application goes to one cluster of its namespace: here the best one with the label location=DE.
api: kubernetes
kind: Application
metadata:
  name: example
  namespace: tenant-a
spec:
  manifest:
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: example
  constraints:
    cluster:
      labels: ["location is DE"]
    migration: true
"""
_KNATIVE = """\
# The consumers of an event source are spread over the pods of a StatefulSet.
apiVersion: sources.knative.dev/v1beta1
kind: KafkaSource
metadata:
  name: example
  namespace: default
spec:
  consumers: 4
"""


class StarterFiles(NamedTuple):
    """Files by their path, how to describe what is chosen from, and the page of the documentation."""

    files: dict[str, str]
    fleet_hint: str
    docs_page: str


STARTERS = {
    "karmada": StarterFiles(
        {
            "gitsched.yaml": f"""\
{_CONFIG}  karmada:
    taintEviction: true # a committed NoExecute taint moves what does not tolerate it
    missingFacts: assume # a Cluster written by hand serves every API and has room
""",
            "policies/example.yaml": _KARMADA,
        },
        "kind: Cluster, apiVersion: cluster.karmada.io/v1alpha1, with labels that policies choose by",
        "docs/karmada.md",
    ),
    "ocm": StarterFiles(
        {"gitsched.yaml": _CONFIG, "policies/example.yaml": _OCM},
        "kind: ManagedCluster, apiVersion: cluster.open-cluster-management.io/v1, with labels that Placements choose by",
        "docs/ocm.md",
    ),
    "krake": StarterFiles(
        {"gitsched.yaml": _CONFIG, "applications/example.yaml": _KRAKE},
        "kind: Cluster, api: kubernetes, in the namespace of its applications, with labels and status.state: ONLINE",
        "docs/krake.md",
    ),
    "knative": StarterFiles(
        {
            "gitsched.yaml": f"""\
{_CONFIG}  knative:
    capacity: 20 # consumers that a pod holds
    cluster: events # where the StatefulSet runs
    statefulSet: knative-eventing/kafkasource-mt-adapter
""",
            "sources/example.yaml": _KNATIVE,
        },
        "the StatefulSet, its Pods and their Nodes, as `kubectl get -o yaml` prints them",
        "docs/knative.md",
    ),
}


NEXT_STEPS = """
Next:
{git}  describe the fleet        {describe}
  gitsched validate         every mistake with file, line and column
  gitsched plan --worktree  what would be placed where; writes nothing
  git add . && git commit   decisions are made from commits
  gitsched reconcile        commits the decisions to the branch `placements`

{page} of gitsched says more. Policies of {others} have starts of their own: --api.
"""


@click.command("init")
@click.option(
    "--api",
    type=click.Choice(list(STARTERS)),
    default="karmada",
    show_default=True,
    help="Whose policies to begin with; all of them are read, whichever it is.",
)
@click.argument("directory", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".")
def command(api: str, directory: Path) -> int:
    """Write gitsched.yaml and an example of a policy into DIRECTORY; files that exist stay as they are."""
    starter = STARTERS[api]
    lines = [f"{'wrote' if write_new_file(directory / name, text) else 'kept '} {name}" for name, text in starter.files.items()]
    git = (
        ""
        if find_worktree_root(str(directory))
        else "  git init                  decisions are made from the commits of a repository\n"
    )
    *others, last = (name for name in STARTERS if name != api)
    told = NEXT_STEPS.format(git=git, describe=starter.fleet_hint, page=starter.docs_page, others=f"{', '.join(others)} and {last}")
    output.show("\n".join(lines) + "\n" + told)
    return exit_codes.DONE


def write_new_file(path: Path, text: str) -> bool:
    """Whether the file was written: one that exists, even as a dangling link, is never touched."""
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
