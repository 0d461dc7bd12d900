"""The installed version of PyYAML finds in generated texts what the versions before have found."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice

from gitsched.manifests.parsed_file import ParsedFile
from gitsched.manifests.parser import parse_file

from .yaml_versions import generate_hostile_texts, generate_texts

RECORDED = ("a85918cbeb70", "b1cf326c69e3", "a944ad10b082", "cc83237016a8", "f638cae0f0c7")
"""Digests of what 100 texts each have. Record them anew after a change of what is read or generated; after an update of PyYAML compare
the versions first, with `make pyyaml`."""


def parse(text: str) -> ParsedFile:
    return parse_file(text.encode("utf-8", "surrogatepass"), path="a.yaml", validate=None)


def describe(text: str) -> str:
    file = parse(text)
    names = [document.body["metadata"]["name"] for document in file.documents]
    return repr((file.status, names, file.others, [(issue.code, issue.line, issue.column) for issue in file.issues]))


def test_generated_texts_have_the_recorded_findings() -> None:
    texts = generate_hostile_texts(0)
    found = tuple(sha256("\n".join(map(describe, islice(texts, 100))).encode()).hexdigest()[:12] for _ in RECORDED)
    assert found == RECORDED


def test_every_error_in_generated_texts_is_known() -> None:
    refused = [text for text in islice(generate_texts(1), 200) if any(issue.code == "yaml-refused" for issue in parse(text).issues)]
    assert refused == []
