"""Fetch objects by id into one repository, with the refs and the configuration of another one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.git.failures import make_failure, recognize_damage
from gitsched.git.transport import PROTOCOL_2, TRANSFER_TIMEOUT, run_transport
from gitsched.git.urls import redact

if TYPE_CHECKING:
    from gitsched.git.repository import Repository

NO_COLLECTION = (("gc.auto", "0"), ("maintenance.auto", "false"))
"""Git commands that run with the objects of one repository and the refs of another must not remove what has no ref."""
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")


def fetch_objects(into: Repository, settings: Repository, url: str, oids: Sequence[str], *, known: bool = True) -> None:
    """Fetch objects by id, with all that they refer to. Git runs with the configuration of `settings`, which stays as it is.

    Unless commits of `settings` are `known` to the server, it sends objects that these commits have, too.

    What `settings` has already, as a mirror has, is copied from there: git would not ask the remote for it.
    """
    if not all(_OBJECT_ID.fullmatch(oid) for oid in oids):
        raise ValueError(f"not object ids: {oids}")
    options = ["--no-tags", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet"]
    if into is not settings and all(map(settings.has, oids)):
        url, settings = settings.path, into
    done = run_transport(
        ["fetch", *options, "--stdin", "--end-of-options", url],
        url,
        settings,
        TRANSFER_TIMEOUT,
        separate_objects(into, settings),
        config=(*NO_COLLECTION, PROTOCOL_2, *(() if known else (("fetch.negotiationAlgorithm", "noop"),))),
        data="".join(f"{oid}\n" for oid in oids),
    )
    if done.exit_code != 0:
        raise recognize_damage(make_failure(f"cannot fetch from {redact(url)}", done.stderr), into)


def separate_objects(into: Repository, settings: Repository) -> dict[str, str]:
    """Return the environment in which git has the refs and settings of one repository, and writes objects into another one."""
    if into is settings:
        return {}
    own, other = (str(Path(repository.common_dir, "objects")) for repository in (into, settings))
    inherited = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
    return {"GIT_OBJECT_DIRECTORY": own, "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(filter(None, (other, inherited)))}
