"""pygit2, for modules that work with repositories; see `gitsched.git.pygit2_loader` for how it is loaded."""

from __future__ import annotations

from gitsched.git.pygit2_loader import load_pygit2

load_pygit2()  # first, so that the import finds the module that this has loaded

import pygit2  # noqa: E402

__all__ = ["pygit2"]
