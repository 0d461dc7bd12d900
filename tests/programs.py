"""Programs that some tests need besides Python, git and make."""

from __future__ import annotations

import shutil

ALTERNATIVES = {"browser": ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")}
"""What a test names as a program → programs, one of which is enough."""


def find_program(name: str) -> str | None:
    """Return the path of a program, or of the first of its alternatives that is installed."""
    return next(filter(None, map(shutil.which, ALTERNATIVES.get(name, (name,)))), None)


def explain_missing(names: tuple[str, ...]) -> str | None:
    """Return why a test that needs these programs cannot run, or None."""
    missing = [" or ".join(ALTERNATIVES.get(name, (name,))) for name in names if find_program(name) is None]
    return f"needs {', '.join(missing)}, not installed" if missing else None
