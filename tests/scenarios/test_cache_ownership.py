"""Caches that another user or a commit could have written are not used."""

from __future__ import annotations

import json
import logging
import sqlite3
from hashlib import blake2b
from pathlib import Path

import pytest

from gitsched.model.errors import Permanent
from tests.scenarios.conftest import Fleet, cluster, deployment


def forge(cache: Path) -> None:
    """Set 99 replicas in every cached Deployment, with valid digests, as an attacker with write access could."""
    (path,) = cache.glob("parsed-*.sqlite3")
    with sqlite3.connect(path) as connection:
        for key, row in connection.execute("SELECT key, value FROM rows").fetchall():
            text = row[32:].replace('"replicas":2', '"replicas":99')
            digest = blake2b(f"{key}\n{text}".encode(), digest_size=16).hexdigest()
            connection.execute("UPDATE rows SET value = ? WHERE key = ?", (digest + text, key))
    for plan in cache.glob("plan-*.sqlite3"):
        plan.unlink()


def decide(fleet: Fleet) -> int:
    """Return the number of replicas in the next plan."""
    fleet.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")})
    fleet.reconcile()
    replicas: int = fleet.binding("web-deployment")["spec"]["replicas"]
    return replicas


def test_a_forged_cache_entry_is_used_if_the_user_owns_it(pair: Fleet) -> None:
    """Verify that the forged entries of the other tests are valid."""
    pair.reconcile()
    forge(pair.cache)
    assert decide(pair) == 99


@pytest.mark.parametrize("writable", ["directory", "file"])
def test_cache_files_that_others_can_write_are_not_used(pair: Fleet, writable: str, caplog: pytest.LogCaptureFixture) -> None:
    pair.reconcile()
    forge(pair.cache)
    (file,) = pair.cache.glob("parsed-*.sqlite3")
    before = file.read_bytes()
    (pair.cache if writable == "directory" else file).chmod(0o777)
    with caplog.at_level(logging.WARNING, "gitsched"):
        assert decide(pair) == 2
    assert [record.message for record in caplog.records if "others can write to the cache" in record.message]
    assert file.read_bytes() == before


def test_cache_files_are_private_to_the_user(pair: Fleet) -> None:
    pair.reconcile()
    assert {path.name[:5]: path.stat().st_mode & 0o077 for path in pair.cache.iterdir()} == {"parse": 0, "plan-": 0}


@pytest.mark.parametrize("kind", ["directory", "link", "link on the way"])
def test_a_committed_cache_is_refused(pair: Fleet, kind: str) -> None:
    """In a checkout, the files of a committed cache belong to the user."""
    pair.reconcile()
    forge(pair.cache)
    files = {path.name: path.read_bytes() for path in pair.cache.iterdir()}
    place = pair.path / ".cache"
    if kind == "directory":
        pair.commit({f".cache/gitsched/{name}": data for name, data in files.items()})
    else:
        (pair.path / "hidden" / "gitsched").mkdir(parents=True)
        target = Path("hidden") if kind == "link on the way" else Path("../hidden/gitsched")
        (place if kind == "link on the way" else place / "gitsched").parent.mkdir(exist_ok=True)
        (place if kind == "link on the way" else place / "gitsched").symlink_to(target)
        pair.commit({f"hidden/gitsched/{name}": data for name, data in files.items()})
    with pytest.raises(Permanent, match=r"cache directory .* is part of the commit that is checked out in .*--cache-dir"):
        pair.preview(cache=place / "gitsched")


def test_an_uncommitted_cache_in_the_worktree_is_accepted(pair: Fleet) -> None:
    pair.commit({".gitignore": ".cache/\n", "apps/api.yaml": deployment("api")})
    assert pair.reconcile(cache=pair.path / ".cache" / "gitsched").after
    assert json.loads(pair.read("gitsched.json"))
    assert pair.preview(cache=pair.path / ".cache" / "gitsched").changed is False
