"""Commands that need no Git do not pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gitsched.git


def test_importing_the_room_loads_neither_libgit2_nor_a_module_of_it():
    script = "import gitsched.git, sys; print([name for name in sys.modules if name.startswith(('pygit2', 'gitsched.git.'))])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_name_is_found_where_the_room_says():
    for name in gitsched.git._LAZY_MODULES:
        assert getattr(gitsched.git, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        _ = gitsched.git.nothing
