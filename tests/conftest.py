"""Common fixtures: reproducible examples, a neutral environment, and skips for missing programs."""

from __future__ import annotations

import functools
import gc
import itertools
import logging
import os
import sysconfig
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

import pygit2
import pytest
import yaml
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from pygit2.enums import ConfigLevel

import gitsched.decide.registry  # registers the policy APIs, as every command does
from gitsched.build import helm, kustomize, scratch
from gitsched.decide.garbage_collection import collect_garbage
from gitsched.manifests import parser
from gitsched.reconcile import package_digest
from tests.builders.remembered_results import RememberedFiles, remember_builds, remember_digest
from tests.metrics.conftest import Server
from tests.programs import explain_missing
from tests.search_depth import count_examples

# The health check that measures time fails on a busy machine, so it is off.
_STEADY = [HealthCheck.too_slow]
settings.register_profile("default-run", derandomize=True, deadline=None, max_examples=15, suppress_health_check=_STEADY)
settings.register_profile("deep", deadline=None, max_examples=count_examples(100), print_blob=True, suppress_health_check=_STEADY)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default-run")
settings.load_profile(_PROFILE)
if _PROFILE == "default-run":
    # Hypothesis draws constants from the modules of gitsched: each worker would parse all of them, and examples would depend on which ones
    # are loaded.
    setattr(providers, "_get_local_constants", lambda: providers._local_constants)  # noqa: B010

# Tests read and write thousands of documents; libyaml takes a tenth of the time of PyYAML's parser in Python. gitsched uses none of these.
yaml.safe_load = functools.partial(yaml.load, Loader=yaml.CSafeLoader)
yaml.safe_load_all = functools.partial(yaml.load_all, Loader=yaml.CSafeLoader)
yaml.safe_dump = functools.partial(yaml.dump, Dumper=yaml.CSafeDumper)
yaml.safe_dump_all = functools.partial(yaml.dump_all, Dumper=yaml.CSafeDumper)


_COMMITS = {
    "GIT_AUTHOR_NAME": "Ada Author",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Carl Committer",
    "GIT_COMMITTER_EMAIL": "carl@example.com",
    "GIT_AUTHOR_DATE": "1772442000 +0000",
    "GIT_COMMITTER_DATE": "1772442000 +0000",
}
"""Who commits, and when, in tests that do not say it: no test depends on the clock of the machine."""
_GIT_CONFIG = """\
[gc]
auto = 0
[maintenance]
auto = false
[core]
fsync = none
[init]
templateDir = {template}
"""
"""Without a check for maintenance after each commit, waits for the disk, and examples of hooks in each new repository."""
_REQUIRE_ALL = os.environ.get("GITSCHED_REQUIRE_ALL") == "1"
os.environ["PATH"] = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
"""The programs of the virtual environment come first, as in an activated one: the kubectl of a distribution may be years old."""
_caches = itertools.count()
_files = RememberedFiles(parser.parse_file)


gc.disable()  # until the tests are collected: they and their data stay


def pytest_collection_finish() -> None:
    """Let the garbage collector skip what pytest keeps for each of the tests, and run less often: gitsched collects garbage after a run."""
    collect_garbage()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the marker needs(PROGRAM...) where a program is missing; GITSCHED_REQUIRE_ALL=1 fails it instead."""
    reason = explain_missing(tuple(name for marker in item.iter_markers("needs") for name in marker.args))
    if reason and _REQUIRE_ALL:
        pytest.fail(f"{reason}, and GITSCHED_REQUIRE_ALL=1 allows no skip", pytrace=False)
    if reason:
        pytest.skip(reason)
    code = getattr(getattr(item, "function", None), "__code__", None)
    replaces = code is not None and "monkeypatch" in code.co_varnames[: code.co_argcount]
    replaces = replaces or item.get_closest_marker("replaces_parsing") is not None
    _files.active = not replaces and "benchmarks" not in item.path.parts  # which count calls


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    """Remove configuration, credentials, variables of Git hooks and colours of the user. TZ and LANG stay."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("GIT_", "GITSCHED_")) or name in {"FORCE_COLOR", "CLICOLOR_FORCE", "SSH_AUTH_SOCK", "GNUPGHOME"}:
                patch.delenv(name)
        home = tmp_path_factory.mktemp("home")
        patch.setenv("HOME", str(home))
        # A file, not /dev/null: git replaces the file that it writes a setting to, and root could replace /dev/null.
        (home / "gitconfig").write_text(_GIT_CONFIG.format(template=tmp_path_factory.mktemp("template")))
        patch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
            pygit2.settings.search_path[level] = str(home)  # libgit2 has looked up the home directory when it was loaded
        if os.environ.get("PYTHONDONTWRITEBYTECODE") and not Path(cache_from_source(gitsched.__file__)).exists():
            # Without bytecode each process of a test compiles gitsched again, which takes half of its time. `make test` has compiled it.
            patch.delenv("PYTHONDONTWRITEBYTECODE")
            patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        patch.setenv("GIT_TERMINAL_PROMPT", "0")
        for name, value in _COMMITS.items():
            patch.setenv(name, value)
        yield patch


@pytest.fixture(scope="session", autouse=True)
def _builds() -> Iterator[None]:
    """Build and parse the same files once, but in tests/build and tests/manifests, and read those of gitsched once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "parse_file", _files)
        run = remember_builds(scratch.run_on_files)
        patch.setattr(kustomize, "run_on_files", run)
        patch.setattr(helm, "run_on_files", run)
        patch.setattr(package_digest, "digest_package", remember_digest(package_digest.digest_package))
        yield


@pytest.fixture
def local_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator allows metrics providers and forges on this machine."""
    monkeypatch.setenv("GITSCHED_METRICS_HOSTS", "127.0.0.1,localhost")
    monkeypatch.setenv("GITSCHED_STATUSES_HOSTS", "127.0.0.1")


@pytest.fixture(autouse=True)
def _logging() -> None:
    """Reset the log after commands that ran in this process and wrote it to the outputs of their tests."""
    logger = logging.getLogger("gitsched")
    logger.handlers, logger.propagate = [], True
    logger.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def _cache(_environment: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a separate cache directory for each test; the first write creates it."""
    directory = tmp_path_factory.getbasetemp() / "cache" / str(next(_caches))
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory))
    return directory


@pytest.fixture
def server() -> Iterator[Server]:
    """An HTTP server that responds like the metrics providers."""
    server = Server()
    yield server
    server.close()
