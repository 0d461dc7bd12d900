"""gitsched.json and hydrator.metadata: parsed back, deterministic and without credentials."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, Location
from gitsched.model.urls import strip_credentials
from gitsched.render.format_versions import FORMAT_VERSION
from gitsched.render.run_metadata import GITATTRIBUTES, RunMetadata, parse_run_metadata, write_hydrator_metadata, write_run_metadata
from tests.tables import each_row

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
VALUES = st.none() | st.text(max_size=8) | st.integers() | st.dictionaries(st.text(max_size=8), st.booleans(), max_size=3)
FULL = RunMetadata(
    source="a" * 40,
    version="0.1.0",
    time=NOON,
    source_tree="b" * 40,
    observations={"GlobalMetricsProvider//p/latency": 0.5, "heat": None},
    observed_at=NOON,
    findings=(
        Finding("error", "duplicate-key", "twice:\n“x”", Location("a/b.yaml", 3, 7), ("Deployment", "shop", "web")),
        Finding("info", "unclaimed", "2 objects"),
    ),
    next_wakeup=NOON,
    input_digest="c" * 64,
    retiring={"us-1": NOON},
    workloads={"pending": 1, "placed": 2},
)


def test_complete_run_metadata() -> None:
    text = write_run_metadata(FULL).data.decode().replace("a" * 40, "COMMIT").replace("b" * 40, "TREE").replace("c" * 64, "DIGEST")
    text = text.replace(f'"formatVersion": {FORMAT_VERSION},', '"formatVersion": VERSION,')
    assert (
        text
        == """\
{
  "findings": [
    {"code": "duplicate-key", "column": 7, "line": 3, "message": "twice:\\n\\u201cx\\u201d", "path": "a/b.yaml", \
"resource": {"kind": "Deployment", "name": "web", "namespace": "shop"}, "severity": "error"},
    {"code": "unclaimed", "message": "2 objects", "severity": "info"}
  ],
  "formatVersion": VERSION,
  "inputDigest": "DIGEST",
  "nextWakeup": "2026-01-02T12:00:00Z",
  "observations": {
    "GlobalMetricsProvider//p/latency": 0.5,
    "heat": null
  },
  "observedAt": "2026-01-02T12:00:00Z",
  "retiring": {
    "us-1": "2026-01-02T12:00:00Z"
  },
  "source": "COMMIT",
  "sourceTree": "TREE",
  "time": "2026-01-02T12:00:00Z",
  "version": "0.1.0",
  "workloads": {
    "pending": 1,
    "placed": 2
  }
}
"""
    )


def test_run_metadata_is_parsed_back() -> None:
    assert parse_run_metadata(write_run_metadata(FULL).data) == FULL
    empty = RunMetadata("a" * 40, "0.1.0")
    assert parse_run_metadata(write_run_metadata(empty).data) == empty


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_observations_with_any_name_are_parsed_back(observations: dict[str, object]) -> None:
    data = write_run_metadata(FULL._replace(observations=observations)).data
    assert parse_run_metadata(data).observations == observations
    assert data == write_run_metadata(FULL._replace(observations=dict(reversed(observations.items())))).data


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"formatVersion": 99}', b"{}", b"[" * 100_000], ids=repr)
def test_unreadable_run_metadata_is_an_error(data: bytes) -> None:
    with pytest.raises(Permanent, match=r"gitsched\.json"):
        parse_run_metadata(data)


def test_invalid_members_are_ignored() -> None:
    mangled = {
        "formatVersion": FORMAT_VERSION,
        "findings": [1, {"severity": "?", "resource": [], "line": "x"}],
        "time": 3,
        "observations": [],
        "retiring": {"a": 1},
    }
    read = parse_run_metadata(json.dumps(mangled).encode())
    assert read == RunMetadata("", "", findings=(Finding("error", "", ""),))


def test_hydrator_metadata_has_the_documented_members() -> None:
    data = write_hydrator_metadata("a" * 40, "https://x:tok@example.com/r.git", "Mend\nit", "Ada <ada@example.com>", NOON).data
    assert json.loads(data) == {
        "author": "Ada <ada@example.com>",
        "date": "2026-01-02T12:00:00Z",
        "drySha": "a" * 40,
        "repoURL": "https://example.com/r.git",
        "subject": "Mend\nit",
    }
    assert "repoURL" not in json.loads(write_hydrator_metadata("a" * 40, None, "s", "a", NOON).data)


@each_row(
    ("url", "shown"),
    [
        ("https://github.com/a/b.git", "https://github.com/a/b.git"),
        ("https://token@github.com/a/b", "https://github.com/a/b"),
        ("https://user:pass@git.example:8443/a?private_token=x#y", "https://git.example:8443/a"),
        ("ssh://git:pass@git.example:2222/a/b", "ssh://git@git.example:2222/a/b"),
        ("https://[::1]/a", "https://[::1]/a"),
        ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ("file:///home/me/repo", None),
        ("/home/me/repo", None),
        ("../repo", None),
        ("C:/repo", None),
        ("https://host:port/a", None),
        ("https://[bad/a", None),
        ("https://a\nb/c", None),
        ("", None),
        (None, None),
    ],
)
def test_credentials_and_local_paths_are_removed_from_urls(url: str | None, shown: str | None) -> None:
    assert strip_credentials(url) == shown


def test_gitattributes_mark_files_as_generated() -> None:
    assert GITATTRIBUTES.data == b"* linguist-generated=true gitlab-generated\n"
