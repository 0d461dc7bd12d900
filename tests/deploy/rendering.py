"""What the manifests and the chart in deploy/ contain, as the real kubectl and helm print it."""

from __future__ import annotations

import functools
import re
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from os import environ, pathsep
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
KUSTOMIZE, CHART = ROOT / "deploy" / "kustomize", ROOT / "deploy" / "helm" / "gitsched"
VALUES = sorted((CHART / "ci").glob("*.yaml"))
PATH = pathsep.join((sysconfig.get_path("scripts"), environ.get("PATH", "")))

Manifest = dict[str, Any]


def run(*command: str, data: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment of the tests, or else of this machine."""
    return subprocess.run(command, input=data, env={**environ, "PATH": PATH}, capture_output=True, text=True, check=False)


@functools.cache
def build(directory: Path) -> tuple[Manifest, ...]:
    """Return the objects that kubectl builds from a kustomization."""
    done = run("kubectl", "kustomize", str(directory))
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


@functools.cache
def render_file(path: Path) -> tuple[Manifest, ...]:
    """Return the objects that helm renders from a file with values."""
    return render(path)


def render(values: Mapping[str, Any] | Path, release: str = "gitsched") -> tuple[Manifest, ...]:
    """Return the objects that helm renders from values, or from a file with values."""
    done = try_to_render(values, release)
    assert done.returncode == 0, done.stderr
    return tuple(body for body in yaml.safe_load_all(done.stdout) if body)


def try_to_render(values: Mapping[str, Any] | Path, release: str = "gitsched") -> subprocess.CompletedProcess[str]:
    """Return what helm prints for these values."""
    given = None if isinstance(values, Path) else yaml.safe_dump(dict(values))
    file = str(values) if isinstance(values, Path) else "-"
    return run("helm", "template", release, str(CHART), "--namespace", "gitsched", "--values", file, data=given)


def find(objects: Sequence[Manifest], kind: str, name: str = "") -> Manifest:
    """Return the only object of a kind, or the one whose name begins with `name`."""
    (found,) = (body for body in objects if body["kind"] == kind and body["metadata"]["name"].startswith(name))
    return found


def get_pod_template(body: Manifest) -> Manifest | None:
    """Return the pod template of a Deployment or CronJob, None for other objects."""
    spec = body.get("spec", {})
    template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
    return template if template and "containers" in template.get("spec", {}) else None


def normalize(objects: Sequence[Manifest]) -> dict[tuple[str, str], Manifest]:
    """Return the objects by kind and name without what kustomize and helm add by themselves: the hash in the names of ConfigMaps, by which
    kustomize replaces pods, and the labels and the annotation of helm, which has the same purpose."""
    found = {}
    for original in objects:
        text = re.sub(r"\b(gitsched-(?:environment|settings))-[a-z0-9]{10}\b", r"\1", yaml.safe_dump(original))
        body = yaml.safe_load(text)
        for metadata in filter(None, (body["metadata"], (get_pod_template(body) or {}).get("metadata"))):
            for name in ("app.kubernetes.io/managed-by", "helm.sh/chart"):
                metadata.get("labels", {}).pop(name, None)
            metadata.get("annotations", {}).pop("checksum/config", None)
            if not metadata.get("annotations"):
                metadata.pop("annotations", None)
        found[body["kind"], body["metadata"]["name"]] = body
    return found
