"""Import pygit2.

It is imported without its TLS set-up: it reads the certificates of the system, and fetch and push are left to the git executable.

A program that imports `ssl` or pygit2 before gitsched has the usual set-up; one that imports pygit2 afterwards calls
`pygit2.settings.set_ssl_cert_locations` before it connects.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from gitsched.named_tuples import NamedTuple


class DefaultVerifyPaths(NamedTuple):
    """The part of `ssl.DefaultVerifyPaths` that pygit2 reads. OpenSSL searches a directory only when it verifies a certificate."""

    cafile: str | None
    capath: str


def _get_default_verify_paths() -> DefaultVerifyPaths:
    return DefaultVerifyPaths(None, os.environ.get("SSL_CERT_DIR") or "/etc/ssl/certs")


def load_pygit2() -> ModuleType:
    """Return pygit2. Where this process has not loaded `ssl` and has one thread, pygit2 finds a module in its place that names no file."""
    if "pygit2" not in sys.modules and "ssl" not in sys.modules and threading.active_count() == 1:
        replacement = ModuleType("ssl")
        replacement.__dict__.update(DefaultVerifyPaths=DefaultVerifyPaths, get_default_verify_paths=_get_default_verify_paths)
        sys.modules["ssl"] = replacement
        try:
            import_module("pygit2")
        finally:
            del sys.modules["ssl"]
    return import_module("pygit2")


def load_extension() -> ModuleType:
    """Return the extension module of pygit2 alone, which lists refs. The rest of the package takes twice as long to import; where it is
    needed later, it uses this module."""
    spec = find_spec("pygit2")
    if "pygit2" in sys.modules or spec is None:
        return import_module("pygit2._pygit2")
    package = ModuleType("pygit2")
    package.__path__ = list(spec.submodule_search_locations or ())
    sys.modules["pygit2"] = package
    try:
        return import_module("pygit2._pygit2")
    finally:
        del sys.modules["pygit2"]
