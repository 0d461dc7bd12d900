"""gitsched init: the two files to start from."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gitsched.cli import exit_codes, output

CONFIG = """\
# yaml-language-server: $schema={schema}
# Settings of gitsched. Everything has a default; this file could be empty, or missing.
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata:
  name: gitsched
spec:
  output:
    branch: placements # where decisions are committed; never the source branch
  karmada:
    taintEviction: true # a committed NoExecute taint moves what does not tolerate it
    missingFacts: assume # a Cluster written by hand serves every API and has room
"""
POLICY = """\
# yaml-language-server: $schema={schema}
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
SCHEMAS = "../gitsched/schemas"
"""A clone of gitsched beside the repository: a path of this machine would be wrong on every other."""
FILES = {
    "gitsched.yaml": CONFIG.format(schema=f"{SCHEMAS}/gitsched.io/v1alpha1/Config.json"),
    "policies/example.yaml": POLICY.format(schema=f"../{SCHEMAS}/policy.karmada.io/v1alpha1/PropagationPolicy.json"),
}
NEXT = """
Next:
  describe your clusters    kind: Cluster, apiVersion: cluster.karmada.io/v1alpha1, with labels that policies choose by
  gitsched validate         every mistake with file, line and column
  gitsched plan --worktree  what would be placed where; writes nothing
  git add . && git commit   decisions are made from commits
  gitsched reconcile        commits the decisions to the branch `placements`
"""


@click.command("init")
@click.argument("directory", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".")
def command(directory: Path) -> int:
    """Write gitsched.yaml and policies/example.yaml into DIRECTORY; files that exist stay as they are."""
    lines = [f"{'wrote' if write(directory / name, text) else 'kept '} {name}" for name, text in FILES.items()]
    output.show("\n".join(lines) + "\n" + NEXT)
    return exit_codes.DONE


def write(path: Path, text: str) -> bool:
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
