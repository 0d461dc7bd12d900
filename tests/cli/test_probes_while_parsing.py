"""A real watch process answers probes while it parses a large hostile file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Process
from tests.cli.test_service import Site
from tests.fuzz.yaml_inputs import CONSTRUCTS

SIZE = int(os.environ.get("GITSCHED_PROBE_SIZE", "150000"))
"""Bytes of each file; the variable is for larger ones."""
NAMES = os.environ.get("GITSCHED_PROBE_CONSTRUCTS", "tag directives,anchors,comments").split(",")


def test_healthz_answers_within_a_second_while_hostile_files_are_parsed(
    fleet: Path, tmp_path: Path, commit: Callable[..., None], git: Callable[..., str], watcher: Callable[..., Process]
) -> None:
    site = Site(watcher(tmp_path, "-C", str(fleet), "--listen", "127.0.0.1:0", "--interval", "0.2"))
    site.process.wait_for(lambda: site.process.events("run") != [])
    slowest = {}
    for name in NAMES:
        commit(fleet, hostile=CONSTRUCTS[name](SIZE))
        head = git("rev-parse", "HEAD", at=fleet)
        slowest[name] = 0.0
        deadline = time.monotonic() + 120
        while site.process.events("run")[-1]["source"] != head:
            assert time.monotonic() < deadline, name
            start = time.monotonic()
            assert site.send_request("GET", "/healthz") == (200, "ok\n")
            slowest[name] = max(slowest[name], time.monotonic() - start)
            time.sleep(0.02)
    assert max(slowest.values()) < 1, slowest
