"""Importing gitsched.git loads neither libgit2 nor other heavy modules."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gitsched.git


def test_importing_the_package_loads_neither_libgit2_nor_its_modules():
    script = "import gitsched.git, sys; print([name for name in sys.modules if name.startswith(('pygit2', 'gitsched.git.'))])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("directory", ["", "/nonexistent"])
def test_libgit2_needs_no_certificates_and_ssl_stays_as_it_is(directory, monkeypatch):
    monkeypatch.setenv("SSL_CERT_DIR", directory)
    script = (
        "from gitsched.git.pygit2_loader import load_pygit2\n"
        "import sys\n"
        "load_pygit2().Signature('a', 'a@example.com')\n"
        "assert 'ssl' not in sys.modules\n"
        "import ssl\n"
        "assert ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_lazy_name_is_in_its_module():
    for name in gitsched.git._LAZY_MODULES:
        assert getattr(gitsched.git, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        _ = gitsched.git.nothing
